// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/deep"
)

// copyContents returns a copy of a conversation, because the log and other requests share its contents. Callbacks get
// one copy, which they may change and keep. The model gets a second copy of what they leave, so that a callback that
// changes its copy later changes neither the log nor a request that a model is still reading.
func copyContents(list []*genai.Content) []*genai.Content {
	own := make([]*genai.Content, len(list))
	for i, c := range list {
		if c == nil {
			continue
		}
		own[i] = &genai.Content{Role: c.Role}
		if c.Parts != nil {
			own[i].Parts = make([]*genai.Part, len(c.Parts))
		}
		for j, p := range c.Parts {
			if p != nil && isText(p) {
				own[i].Parts[j] = new(*p) // most parts are texts; deep.Copy uses reflection
			} else {
				own[i].Parts[j] = deep.Copy(p)
			}
		}
	}
	return own
}

// isText reports whether a part is nothing but text.
func isText(p *genai.Part) bool {
	return p.FunctionCall == nil && p.FunctionResponse == nil && p.ThoughtSignature == nil &&
		p.MediaResolution == nil && p.CodeExecutionResult == nil && p.ExecutableCode == nil && p.FileData == nil &&
		p.InlineData == nil && p.VideoMetadata == nil && p.ToolCall == nil && p.ToolResponse == nil &&
		p.PartMetadata == nil && p.AudioTranscription == nil && p.MediaProcessing == "" && p.SpeechMetadata == nil
}
