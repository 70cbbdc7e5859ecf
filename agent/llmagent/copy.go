// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"maps"
	"reflect"
	"slices"

	"google.golang.org/genai"
)

// copyConfig returns a copy of a config that a callback or a tool may edit, because all requests of
// the agent share the original. The copy shares schemas, which are never edited in place.
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

// copyContent returns a copy of a content that callbacks may edit. The copy shares the bytes of
// images and the like, which are never edited in place.
func copyContent(c *genai.Content) *genai.Content {
	if c = copied(c); c != nil {
		c.Parts = copyEach(c.Parts, copyPart)
	}
	return c
}

func copyContents(list []*genai.Content) []*genai.Content { return copyEach(list, copyContent) }

func copyPart(p *genai.Part) *genai.Part {
	if p = copied(p); p == nil {
		return nil
	}
	p.InlineData, p.FileData, p.SpeechMetadata = copied(p.InlineData), copied(p.FileData), copied(p.SpeechMetadata)
	p.ExecutableCode, p.CodeExecutionResult = copied(p.ExecutableCode), copied(p.CodeExecutionResult)
	p.PartMetadata = copyObject(p.PartMetadata)
	if p.FunctionCall = copied(p.FunctionCall); p.FunctionCall != nil {
		f := p.FunctionCall
		f.Args, f.WillContinue = copyObject(f.Args), copied(f.WillContinue)
		f.PartialArgs = copyEach(f.PartialArgs, func(a *genai.PartialArg) *genai.PartialArg {
			if a = copied(a); a != nil {
				a.BoolValue, a.NumberValue, a.WillContinue = copied(a.BoolValue), copied(a.NumberValue), copied(a.WillContinue)
			}
			return a
		})
	}
	if p.FunctionResponse = copied(p.FunctionResponse); p.FunctionResponse != nil {
		f := p.FunctionResponse
		f.Response, f.WillContinue = copyObject(f.Response), copied(f.WillContinue)
		f.Parts = copyEach(f.Parts, func(p *genai.FunctionResponsePart) *genai.FunctionResponsePart {
			if p = copied(p); p != nil {
				p.InlineData, p.FileData = copied(p.InlineData), copied(p.FileData)
			}
			return p
		})
	}
	if p.ToolCall = copied(p.ToolCall); p.ToolCall != nil {
		p.ToolCall.Args = copyObject(p.ToolCall.Args)
	}
	if p.ToolResponse = copied(p.ToolResponse); p.ToolResponse != nil {
		p.ToolResponse.Response = copyObject(p.ToolResponse.Response)
	}
	if p.MediaResolution = copied(p.MediaResolution); p.MediaResolution != nil {
		p.MediaResolution.NumTokens = copied(p.MediaResolution.NumTokens)
	}
	if p.VideoMetadata = copied(p.VideoMetadata); p.VideoMetadata != nil {
		p.VideoMetadata.FPS = copied(p.VideoMetadata.FPS)
	}
	if p.AudioTranscription = copied(p.AudioTranscription); p.AudioTranscription != nil {
		p.AudioTranscription.Words = copyEach(p.AudioTranscription.Words, copied)
	}
	return p
}

// copyEach is a slice of copies; nil for nil.
func copyEach[T any](list []*T, each func(*T) *T) []*T {
	own := slices.Clone(list)
	for i, v := range own {
		own[i] = each(v)
	}
	return own
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
	return copyOther(v)
}

// copyOther copies a map or a slice of another type, as a tool in Go may return it.
func copyOther(v any) any {
	switch of := reflect.ValueOf(v); {
	case of.Kind() == reflect.Map && !of.IsNil():
		own := reflect.MakeMapWithSize(of.Type(), of.Len())
		for key, v := range of.Seq2() {
			own.SetMapIndex(key, otherCopy(v))
		}
		return own.Interface()
	case of.Kind() == reflect.Slice && !of.IsNil() && of.Type().Elem().Kind() != reflect.Uint8:
		own := reflect.MakeSlice(of.Type(), of.Len(), of.Len())
		for i := range of.Len() {
			own.Index(i).Set(otherCopy(of.Index(i)))
		}
		return own.Interface()
	}
	return v
}

func otherCopy(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface && v.IsNil() {
		return v
	}
	return reflect.ValueOf(copyValue(v.Interface()))
}

// copied is a pointer to a copy; nil for nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}
