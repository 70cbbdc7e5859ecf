// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"maps"
	"slices"

	"google.golang.org/genai"
)

// copyConfig is a copy of a config that a callback or a tool may edit: what the
// config holds is shared by all requests of the agent. Schemas, which nobody
// edits in place, are not copied.
func copyConfig(c *genai.GenerateContentConfig) *genai.GenerateContentConfig {
	own := *c
	own.Labels = maps.Clone(c.Labels)
	own.StopSequences = slices.Clone(c.StopSequences)
	own.ResponseModalities = slices.Clone(c.ResponseModalities)
	own.Tools = slices.Clone(c.Tools)
	own.SafetySettings = slices.Clone(c.SafetySettings)
	for i, s := range own.SafetySettings {
		own.SafetySettings[i] = copied(s)
	}
	own.ThinkingConfig = copied(c.ThinkingConfig)
	if own.ToolConfig = copied(c.ToolConfig); own.ToolConfig != nil {
		own.ToolConfig.FunctionCallingConfig = copied(own.ToolConfig.FunctionCallingConfig)
	}
	if own.HTTPOptions = copied(c.HTTPOptions); own.HTTPOptions != nil {
		own.HTTPOptions.Headers = own.HTTPOptions.Headers.Clone()
		own.HTTPOptions.ExtraBody = copyObject(own.HTTPOptions.ExtraBody)
	}
	return &own
}

// copyContents is a copy of a conversation that callbacks may edit: contents are
// shared with the log. Bytes of images and the like, which nobody edits in place,
// are not copied.
func copyContents(list []*genai.Content) []*genai.Content {
	own := make([]*genai.Content, len(list), len(list)+1)
	for i, c := range list {
		if c = copied(c); c != nil {
			c.Parts = slices.Clone(c.Parts)
			for j, p := range c.Parts {
				c.Parts[j] = copyPart(p)
			}
		}
		own[i] = c
	}
	return own
}

func copyPart(p *genai.Part) *genai.Part {
	if p = copied(p); p == nil {
		return nil
	}
	p.InlineData, p.FileData = copied(p.InlineData), copied(p.FileData)
	p.ExecutableCode, p.CodeExecutionResult = copied(p.ExecutableCode), copied(p.CodeExecutionResult)
	if p.FunctionCall = copied(p.FunctionCall); p.FunctionCall != nil {
		p.FunctionCall.Args = copyObject(p.FunctionCall.Args)
	}
	if p.FunctionResponse = copied(p.FunctionResponse); p.FunctionResponse != nil {
		p.FunctionResponse.Response = copyObject(p.FunctionResponse.Response)
		p.FunctionResponse.Parts = slices.Clone(p.FunctionResponse.Parts)
	}
	return p
}

func copyObject(m map[string]any) map[string]any {
	m = maps.Clone(m)
	for k, v := range m {
		m[k] = copyValue(v)
	}
	return m
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copyObject(v)
	case []any:
		own := slices.Clone(v)
		for i := range own {
			own[i] = copyValue(own[i])
		}
		return own
	}
	return v
}

// copied is a pointer to a copy; nil for nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}
