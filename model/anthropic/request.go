// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/genaischema"
	"github.com/refrain-dev/refrain/model"
)

// request returns a request in Anthropic's format. Settings that the API lacks, such as
// penalties, seed and safety settings, are left out.
func (m *llm) request(req *model.LLMRequest, hint *model.CacheHint) (*apiRequest, error) {
	p := &apiRequest{Model: m.name, MaxTokens: m.cfg.MaxTokens}
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
		return nil, err
	}
	if p.Tools, err = tools(cfg.Tools); err != nil {
		return nil, err
	}
	if cfg.ToolConfig != nil && len(p.Tools) > 0 {
		if p.Tools, p.ToolChoice, err = choose(cfg.ToolConfig.FunctionCallingConfig, p.Tools); err != nil {
			return nil, err
		}
	}
	var output outputConfig
	schema, err := genaischema.Answer(cfg, genaischema.Bare)
	if err != nil {
		return nil, err
	}
	if schema != nil {
		output.Format = &outputFormat{Type: "json_schema", Schema: schema}
	}
	if cfg.MaxOutputTokens > 0 {
		p.MaxTokens = int(cfg.MaxOutputTokens)
	}
	p.Temperature, p.TopP, p.StopSequences = cfg.Temperature, cfg.TopP, cfg.StopSequences
	if cfg.TopK != nil {
		p.TopK = new(int(*cfg.TopK))
	}
	p.think(cfg.ThinkingConfig, &output)
	if output != (outputConfig{}) {
		p.OutputConfig = &output
	}
	p.mark(hint)
	return p, nil
}

// think asks for thoughts. A budget is the budget, to which the bound of the
// answer is added if it does not leave room; 0 is none; -1, and a level, let
// the model decide, which newer models want.
func (p *apiRequest) think(t *genai.ThinkingConfig, output *outputConfig) {
	if t == nil {
		return
	}
	display := ""
	if t.IncludeThoughts {
		display = "summarized"
	}
	switch t.ThinkingLevel {
	case genai.ThinkingLevelMinimal, genai.ThinkingLevelLow:
		output.Effort = "low"
	case genai.ThinkingLevelMedium:
		output.Effort = "medium"
	case genai.ThinkingLevelHigh:
		output.Effort = "high"
	}
	adaptive := &thinking{Type: "adaptive", Display: display}
	switch {
	case output.Effort != "":
		p.Thinking = adaptive
	case t.ThinkingBudget == nil:
		if t.IncludeThoughts {
			p.Thinking = adaptive
		}
	case *t.ThinkingBudget < 0:
		p.Thinking = adaptive
	case *t.ThinkingBudget == 0:
		p.Thinking = &thinking{Type: "disabled"}
	default:
		budget := max(int(*t.ThinkingBudget), 1024) // the API takes no less
		if p.MaxTokens <= budget {
			p.MaxTokens += budget
		}
		p.Thinking = &thinking{Type: "enabled", BudgetTokens: budget, Display: display}
	}
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
		if schema["type"] == nil {
			schema["type"] = "object"
		}
		out = append(out, tool{Name: f.Name, Description: f.Description, InputSchema: schema})
	}
	return out, nil
}

// choose says which tools may and must be called. The API can force one tool or
// any: of several, the others are not offered.
func choose(c *genai.FunctionCallingConfig, offered []tool) ([]tool, *toolChoice, error) {
	if c == nil {
		return offered, nil, nil
	}
	if len(c.AllowedFunctionNames) > 0 && c.Mode != genai.FunctionCallingConfigModeNone {
		offered = slices.DeleteFunc(offered, func(t tool) bool {
			return !slices.Contains(c.AllowedFunctionNames, t.Name)
		})
		if len(offered) == 0 {
			return nil, nil, fmt.Errorf("none of the allowed functions %q is declared", c.AllowedFunctionNames)
		}
	}
	switch c.Mode {
	case genai.FunctionCallingConfigModeNone:
		return offered, &toolChoice{Type: "none"}, nil
	case genai.FunctionCallingConfigModeAuto:
		return offered, &toolChoice{Type: "auto"}, nil
	case genai.FunctionCallingConfigModeAny:
		if len(offered) == 1 {
			return offered, &toolChoice{Type: "tool", Name: offered[0].Name}, nil
		}
		return offered, &toolChoice{Type: "any"}, nil
	}
	return offered, nil, nil
}
