// SPDX-License-Identifier: Apache-2.0

package model

import (
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
)

// Tokens returns the number of tokens that a provider reports for a request; zeros if u is nil. Input
// includes the cached tokens and the results of tools that the provider ran. Output includes thoughts, and
// tokens that only the total has. All sums of these counts are computed here.
func Tokens(u *genai.GenerateContentResponseUsageMetadata) (input, cached, output int64) {
	if u == nil {
		return 0, 0, 0
	}
	input = max(0, int64(u.PromptTokenCount)+int64(u.ToolUsePromptTokenCount))
	output = max(0, int64(u.CandidatesTokenCount)+int64(u.ThoughtsTokenCount), int64(u.TotalTokenCount)-input)
	return input, max(0, int64(u.CachedContentTokenCount)), output
}

// The modalities under which CacheTokensDetails has the tokens that a provider wrote into its cache, for
// five minutes and for an hour. genai has no field for them, as Google does not charge for them; Anthropic
// does.
const (
	ModalityCacheWrite   genai.MediaModality = "CACHE_WRITE"
	ModalityCacheWrite1h genai.MediaModality = "CACHE_WRITE_1H"
)

// SetCacheWrites sets in u how many tokens the provider wrote into its cache, for five minutes and for
// an hour. [Used] reads them. If both are 0, u stays as it is.
func SetCacheWrites(u *genai.GenerateContentResponseUsageMetadata, fiveMinutes, hour int64) {
	for _, d := range []genai.ModalityTokenCount{
		{Modality: ModalityCacheWrite, TokenCount: int32(fiveMinutes)},
		{Modality: ModalityCacheWrite1h, TokenCount: int32(hour)},
	} {
		if d.TokenCount > 0 {
			u.CacheTokensDetails = append(u.CacheTokensDetails, &d)
		}
	}
}

// Used returns the usage that a provider reports for a request, without calls and cost; the zero value if
// u is nil.
func Used(u *genai.GenerateContentResponseUsageMetadata) budget.Usage {
	var used budget.Usage
	if u == nil {
		return used
	}
	used.InputTokens, used.CachedTokens, used.OutputTokens = Tokens(u)
	for _, d := range u.CacheTokensDetails {
		switch {
		case d == nil:
		case d.Modality == ModalityCacheWrite:
			used.CacheWriteTokens += max(0, int64(d.TokenCount))
		case d.Modality == ModalityCacheWrite1h:
			used.CacheWrite1hTokens += max(0, int64(d.TokenCount))
		}
	}
	return used
}

// ThoughtTokens returns how many of a request's output tokens were thoughts; 0 if u is nil.
func ThoughtTokens(u *genai.GenerateContentResponseUsageMetadata) int64 {
	if u == nil {
		return 0
	}
	return max(0, int64(u.ThoughtsTokenCount))
}
