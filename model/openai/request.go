// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/genaischema"
	"github.com/refrain-dev/refrain/model"
)

// request returns a request in OpenAI's format. Settings that Chat Completions lacks, such as
// TopK and safety settings, are left out.
func (m *llm) request(req *model.LLMRequest, hint *model.CacheHint) (*chatRequest, error) {
	p := &chatRequest{Model: m.name}
	if req.Model != "" {
		p.Model = req.Model
	}
	cfg := req.Config
	if cfg == nil {
		cfg = &genai.GenerateContentConfig{}
	}
	var err error
	if p.Messages, err = messages(cfg.SystemInstruction, req.Contents); err != nil {
		return nil, err
	}
	if p.Tools, err = tools(cfg.Tools); err != nil {
		return nil, err
	}
	if len(p.Tools) > 0 && cfg.ToolConfig != nil {
		p.ToolChoice = toolChoice(cfg.ToolConfig.FunctionCallingConfig)
	}
	if p.ResponseFormat, err = format(cfg); err != nil {
		return nil, err
	}
	m.sampling(p, cfg)
	if hint != nil {
		p.CacheKey, p.CacheRetention = hint.Key, hint.Retention
	}
	return p, nil
}

// asksForCache reports whether p has the fields of OpenAI's caches. The caches themselves are automatic, from
// 1024 tokens on, in steps of 128. The key sends requests that begin in the same way to the same machine, and
// the retention says how long it keeps them. See https://platform.openai.com/docs/guides/prompt-caching.
func (p *chatRequest) asksForCache() bool { return p.CacheKey != "" || p.CacheRetention != "" }

func (m *llm) sampling(p *chatRequest, cfg *genai.GenerateContentConfig) {
	p.Temperature, p.TopP = cfg.Temperature, cfg.TopP
	p.PresencePenalty, p.FrequencyPenalty = cfg.PresencePenalty, cfg.FrequencyPenalty
	p.Seed, p.Stop = cfg.Seed, cfg.StopSequences
	switch most := max(cfg.MaxOutputTokens, 0); m.cfg.TokensField {
	case "max_tokens":
		p.MaxTokens = most
	default:
		p.MaxCompletionTokens = most
	}
	p.ReasoningEffort = effort(cfg.ThinkingConfig)
}

// effort returns a thinking level in OpenAI's term. A budget of tokens becomes the effort that
// Google's own OpenAI endpoint takes it for: up to 1024 low, up to 8192 medium, above high; 0
// is none. A budget of -1 leaves it to the model.
func effort(t *genai.ThinkingConfig) string {
	if t == nil {
		return ""
	}
	if t.ThinkingLevel != "" && t.ThinkingLevel != genai.ThinkingLevelUnspecified {
		return strings.ToLower(string(t.ThinkingLevel))
	}
	if t.ThinkingBudget == nil || *t.ThinkingBudget < 0 {
		return ""
	}
	switch n := *t.ThinkingBudget; {
	case n == 0:
		return "none"
	case n <= 1024:
		return "low"
	case n <= 8192:
		return "medium"
	}
	return "high"
}

func tools(list []*genai.Tool) ([]tool, error) {
	functions, err := genaischema.Functions(list)
	if err != nil {
		return nil, err
	}
	var out []tool
	for _, f := range functions {
		schema, err := genaischema.Parameters(f)
		if err != nil {
			return nil, err
		}
		own := function{Name: f.Name, Description: f.Description, Parameters: schema}
		out = append(out, tool{Type: "function", Function: own})
	}
	return out, nil
}

// toolChoice returns nil for the API's own default, else a string or a *choice.
func toolChoice(c *genai.FunctionCallingConfig) any {
	if c == nil {
		return nil
	}
	mode := "auto"
	switch c.Mode {
	case genai.FunctionCallingConfigModeNone:
		return "none"
	case genai.FunctionCallingConfigModeAny:
		mode = "required"
	case genai.FunctionCallingConfigModeAuto:
	default:
		return nil
	}
	var allowed []choice
	for _, name := range c.AllowedFunctionNames {
		allowed = append(allowed, choice{Type: "function", Function: &function{Name: name}})
	}
	switch {
	case len(allowed) == 0:
		return mode
	case len(allowed) == 1 && mode == "required":
		return &allowed[0]
	}
	return &choice{Type: "allowed_tools", AllowedTools: &allowedTools{mode, allowed}}
}

// format returns nil for an answer of any form.
func format(cfg *genai.GenerateContentConfig) (*responseFormat, error) {
	schema, err := genaischema.Answer(cfg, genaischema.Closed)
	switch {
	case err != nil:
		return nil, err
	case schema != nil:
		own := &jsonSchema{Name: "answer", Schema: schema}
		if s := cfg.ResponseSchema; cfg.ResponseJsonSchema == nil {
			own.Strict = s.Type == genai.TypeObject && genaischema.Strict(s)
		}
		return &responseFormat{Type: "json_schema", JSONSchema: own}, nil
	case cfg.ResponseMIMEType == "application/json":
		return &responseFormat{Type: "json_object"}, nil
	}
	return nil, nil
}
