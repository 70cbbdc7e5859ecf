// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/jsonschema"
)

// params puts a request in OpenAI's words. Settings that Chat Completions has
// no word for, such as TopK and safety settings, are left out.
func (m *llm) params(req *model.LLMRequest) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: m.name}
	if req.Model != "" {
		p.Model = req.Model
	}
	cfg := req.Config
	if cfg == nil {
		cfg = &genai.GenerateContentConfig{}
	}
	var err error
	if p.Messages, err = messages(cfg.SystemInstruction, req.Contents); err != nil {
		return p, err
	}
	if p.Tools, err = tools(cfg.Tools); err != nil {
		return p, err
	}
	if len(p.Tools) > 0 && cfg.ToolConfig != nil {
		p.ToolChoice = toolChoice(cfg.ToolConfig.FunctionCallingConfig)
	}
	if p.ResponseFormat, err = responseFormat(cfg); err != nil {
		return p, err
	}
	m.sampling(&p, cfg)
	return p, nil
}

func (m *llm) sampling(p *openai.ChatCompletionNewParams, cfg *genai.GenerateContentConfig) {
	p.Temperature = float(cfg.Temperature)
	p.TopP = float(cfg.TopP)
	p.PresencePenalty = float(cfg.PresencePenalty)
	p.FrequencyPenalty = float(cfg.FrequencyPenalty)
	if cfg.Seed != nil {
		p.Seed = param.NewOpt(int64(*cfg.Seed))
	}
	if cfg.MaxOutputTokens > 0 {
		if m.cfg.TokensField == "max_tokens" {
			p.MaxTokens = param.NewOpt(int64(cfg.MaxOutputTokens))
		} else {
			p.MaxCompletionTokens = param.NewOpt(int64(cfg.MaxOutputTokens))
		}
	}
	if len(cfg.StopSequences) > 0 {
		p.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: cfg.StopSequences}
	}
	p.ReasoningEffort = effort(cfg.ThinkingConfig)
}

func float(f *float32) param.Opt[float64] {
	if f == nil {
		return param.Opt[float64]{}
	}
	// By its decimal digits: 0.7 is to arrive as 0.7, not as 0.699999988.
	d, _ := strconv.ParseFloat(strconv.FormatFloat(float64(*f), 'g', -1, 32), 64)
	return param.NewOpt(d)
}

// effort says a thinking level in OpenAI's word. A budget of tokens becomes the
// effort that Google's own OpenAI endpoint takes it for: up to 1024 low, up to
// 8192 medium, above high; 0 is none. A budget of -1 leaves it to the model.
func effort(t *genai.ThinkingConfig) shared.ReasoningEffort {
	if t == nil {
		return ""
	}
	if t.ThinkingLevel != "" && t.ThinkingLevel != genai.ThinkingLevelUnspecified {
		return shared.ReasoningEffort(strings.ToLower(string(t.ThinkingLevel)))
	}
	if t.ThinkingBudget == nil || *t.ThinkingBudget < 0 {
		return ""
	}
	switch n := *t.ThinkingBudget; {
	case n == 0:
		return "none"
	case n <= 1024:
		return shared.ReasoningEffortLow
	case n <= 8192:
		return shared.ReasoningEffortMedium
	}
	return shared.ReasoningEffortHigh
}

func tools(list []*genai.Tool) ([]openai.ChatCompletionToolUnionParam, error) {
	var out []openai.ChatCompletionToolUnionParam
	for _, t := range list {
		if t == nil {
			continue
		}
		if len(t.FunctionDeclarations) == 0 {
			return nil, fmt.Errorf("a tool without function declarations: Chat Completions has only functions")
		}
		for _, f := range t.FunctionDeclarations {
			schema, err := jsonschema.Parameters(f)
			if err != nil {
				return nil, err
			}
			def := shared.FunctionDefinitionParam{Name: f.Name, Parameters: schema}
			if f.Description != "" {
				def.Description = param.NewOpt(f.Description)
			}
			out = append(out, openai.ChatCompletionFunctionTool(def))
		}
	}
	return out, nil
}

func toolChoice(c *genai.FunctionCallingConfig) openai.ChatCompletionToolChoiceOptionUnionParam {
	var choice openai.ChatCompletionToolChoiceOptionUnionParam
	if c == nil {
		return choice
	}
	mode := "auto"
	switch c.Mode {
	case genai.FunctionCallingConfigModeNone:
		choice.OfAuto = param.NewOpt("none")
		return choice
	case genai.FunctionCallingConfigModeAny:
		mode = "required"
	case genai.FunctionCallingConfigModeAuto:
	default:
		return choice
	}
	switch names := c.AllowedFunctionNames; {
	case len(names) == 0:
		choice.OfAuto = param.NewOpt(mode)
	case len(names) == 1 && mode == "required":
		choice.OfFunctionToolChoice = &openai.ChatCompletionNamedToolChoiceParam{
			Function: openai.ChatCompletionNamedToolChoiceFunctionParam{Name: names[0]},
		}
	default:
		allowed := openai.ChatCompletionAllowedToolsParam{Mode: openai.ChatCompletionAllowedToolsMode(mode)}
		for _, name := range names {
			allowed.Tools = append(allowed.Tools, map[string]any{"type": "function", "function": map[string]any{"name": name}})
		}
		choice.OfAllowedTools = &openai.ChatCompletionAllowedToolChoiceParam{AllowedTools: allowed}
	}
	return choice
}

func responseFormat(cfg *genai.GenerateContentConfig) (openai.ChatCompletionNewParamsResponseFormatUnion, error) {
	var format openai.ChatCompletionNewParamsResponseFormatUnion
	schema, err := jsonschema.Answer(cfg, jsonschema.Closed)
	if err != nil {
		return format, err
	}
	switch {
	case schema != nil:
		js := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: schema}
		if cfg.ResponseJsonSchema == nil && cfg.ResponseSchema.Type == genai.TypeObject && jsonschema.Strict(cfg.ResponseSchema) {
			js.Strict = param.NewOpt(true)
		}
		format.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: js}
	case cfg.ResponseMIMEType == "application/json":
		format.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}
	return format, nil
}
