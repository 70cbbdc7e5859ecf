// SPDX-License-Identifier: Apache-2.0

package model

import "google.golang.org/genai"

// Tokens returns the number of tokens that a provider reports for a request; zeros if u is nil. Input
// includes the cached tokens and the results of tools that the provider ran. Output includes thoughts, and
// tokens that only the total has. It is the one place where these counts are added up.
func Tokens(u *genai.GenerateContentResponseUsageMetadata) (input, cached, output int64) {
	if u == nil {
		return 0, 0, 0
	}
	input = max(0, int64(u.PromptTokenCount)+int64(u.ToolUsePromptTokenCount))
	output = max(0, int64(u.CandidatesTokenCount)+int64(u.ThoughtsTokenCount), int64(u.TotalTokenCount)-input)
	return input, max(0, int64(u.CachedContentTokenCount)), output
}
