// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"fmt"
	"strconv"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/jsonschema"
)

// params puts a request in Anthropic's words. Settings that the API has no word
// for, such as penalties, seed and safety settings, are left out.
func (m *llm) params(req *model.LLMRequest) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: m.name}
	if req.Model != "" {
		p.Model = req.Model
	}
	cfg := req.Config
	if cfg == nil {
		cfg = &genai.GenerateContentConfig{}
	}
	var err error
	p.System = system(cfg.SystemInstruction)
	if p.Messages, err = messages(req.Contents); err != nil {
		return p, err
	}
	if p.Tools, err = tools(cfg.Tools); err != nil {
		return p, err
	}
	if cfg.ToolConfig != nil && len(p.Tools) > 0 {
		if p.Tools, p.ToolChoice, err = toolChoice(cfg.ToolConfig.FunctionCallingConfig, p.Tools); err != nil {
			return p, err
		}
	}
	schema, err := jsonschema.Answer(cfg, jsonschema.Bare)
	if err != nil {
		return p, err
	}
	p.OutputConfig.Format.Schema = schema
	p.MaxTokens = int64(m.cfg.MaxTokens)
	if cfg.MaxOutputTokens > 0 {
		p.MaxTokens = int64(cfg.MaxOutputTokens)
	}
	p.Temperature, p.TopP = float(cfg.Temperature), float(cfg.TopP)
	if cfg.TopK != nil {
		p.TopK = param.NewOpt(int64(*cfg.TopK))
	}
	p.StopSequences = cfg.StopSequences
	thinking(&p, cfg.ThinkingConfig)
	return p, nil
}

func float(f *float32) param.Opt[float64] {
	if f == nil {
		return param.Opt[float64]{}
	}
	// By its decimal digits: 0.7 is to arrive as 0.7, not as 0.699999988.
	d, _ := strconv.ParseFloat(strconv.FormatFloat(float64(*f), 'g', -1, 32), 64)
	return param.NewOpt(d)
}

// thinking asks for thoughts. A budget is the budget, to which the bound of the
// answer is added if it does not leave room; 0 is none; -1, and a level, let
// the model decide, which newer models want.
func thinking(p *anthropic.MessageNewParams, t *genai.ThinkingConfig) {
	if t == nil {
		return
	}
	adaptive := &anthropic.ThinkingConfigAdaptiveParam{}
	enabled := &anthropic.ThinkingConfigEnabledParam{}
	if t.IncludeThoughts {
		adaptive.Display = anthropic.ThinkingConfigAdaptiveDisplaySummarized
		enabled.Display = anthropic.ThinkingConfigEnabledDisplaySummarized
	}
	switch level := t.ThinkingLevel; level {
	case genai.ThinkingLevelMinimal, genai.ThinkingLevelLow:
		p.OutputConfig.Effort = anthropic.OutputConfigEffortLow
	case genai.ThinkingLevelMedium:
		p.OutputConfig.Effort = anthropic.OutputConfigEffortMedium
	case genai.ThinkingLevelHigh:
		p.OutputConfig.Effort = anthropic.OutputConfigEffortHigh
	}
	switch {
	case p.OutputConfig.Effort != "":
		p.Thinking.OfAdaptive = adaptive
	case t.ThinkingBudget == nil:
		if t.IncludeThoughts {
			p.Thinking.OfAdaptive = adaptive
		}
	case *t.ThinkingBudget < 0:
		p.Thinking.OfAdaptive = adaptive
	case *t.ThinkingBudget == 0:
		p.Thinking.OfDisabled = &anthropic.ThinkingConfigDisabledParam{}
	default:
		// The API takes no less than 1024.
		enabled.BudgetTokens = max(int64(*t.ThinkingBudget), 1024)
		if p.MaxTokens <= enabled.BudgetTokens {
			p.MaxTokens += enabled.BudgetTokens
		}
		p.Thinking.OfEnabled = enabled
	}
}

func tools(list []*genai.Tool) ([]anthropic.ToolUnionParam, error) {
	var out []anthropic.ToolUnionParam
	for _, t := range list {
		if t == nil {
			continue
		}
		if len(t.FunctionDeclarations) == 0 {
			return nil, fmt.Errorf("a tool without function declarations: only functions are supported")
		}
		for _, f := range t.FunctionDeclarations {
			schema, err := jsonschema.Parameters(f)
			if err != nil {
				return nil, err
			}
			if schema["type"] == nil {
				schema["type"] = "object"
			}
			tool := &anthropic.ToolParam{Name: f.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
			if f.Description != "" {
				tool.Description = param.NewOpt(f.Description)
			}
			out = append(out, anthropic.ToolUnionParam{OfTool: tool})
		}
	}
	return out, nil
}

// toolChoice says which tools may and must be called. The API can force one
// tool or any: of several, the others are not offered.
func toolChoice(c *genai.FunctionCallingConfig, offered []anthropic.ToolUnionParam) ([]anthropic.ToolUnionParam, anthropic.ToolChoiceUnionParam, error) {
	var choice anthropic.ToolChoiceUnionParam
	if c == nil {
		return offered, choice, nil
	}
	if len(c.AllowedFunctionNames) > 0 && c.Mode != genai.FunctionCallingConfigModeNone {
		allowed := make(map[string]bool)
		for _, name := range c.AllowedFunctionNames {
			allowed[name] = true
		}
		var some []anthropic.ToolUnionParam
		for _, t := range offered {
			if allowed[t.OfTool.Name] {
				some = append(some, t)
			}
		}
		if len(some) == 0 {
			return nil, choice, fmt.Errorf("none of the allowed functions %q is declared", c.AllowedFunctionNames)
		}
		offered = some
	}
	switch c.Mode {
	case genai.FunctionCallingConfigModeNone:
		choice.OfNone = &anthropic.ToolChoiceNoneParam{}
	case genai.FunctionCallingConfigModeAuto:
		choice.OfAuto = &anthropic.ToolChoiceAutoParam{}
	case genai.FunctionCallingConfigModeAny:
		if len(offered) == 1 {
			choice.OfTool = &anthropic.ToolChoiceToolParam{Name: offered[0].OfTool.Name}
		} else {
			choice.OfAny = &anthropic.ToolChoiceAnyParam{}
		}
	}
	return offered, choice, nil
}
