// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
)

// a copy, and where there is room it is left alone.
func TestOutputIsBoundedByWhatRemains(t *testing.T) {
	given := &genai.GenerateContentConfig{MaxOutputTokens: 1000}
	thinking := &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingBudget: new(int32(500))}}
	brief := &genai.GenerateContentConfig{MaxOutputTokens: 300, ThinkingConfig: thinking.ThinkingConfig}
	for _, tt := range []struct {
		name  string
		limit budget.Limits
		cfg   *genai.GenerateContentConfig
		want  []int32 // MaxOutputTokens of each request
	}{
		{"nothing remains for the third", budget.Limits{Tokens: 2000}, given, []int32{1000, 900}},
		{"of its own", budget.Limits{Tokens: 2000}, nil, []int32{1900, 900}},
		{"with room", budget.Limits{Tokens: llmagent.DefaultOutputTokens + 1050}, nil, []int32{0, 4030, 3030, 2030, 1030}},
		{"calls alone", budget.Limits{Calls: 2}, nil, []int32{0, 0}},
		{"cost", budget.Limits{Cost: new(0.095)}, given, []int32{937}},
		{"no room for thoughts", budget.Limits{Tokens: 2000}, thinking, []int32{1900, 900}},
		{"no room for more thoughts", budget.Limits{Tokens: 1600}, thinking, []int32{1500}},
		{"thoughts besides the answer", budget.Limits{Tokens: 700}, brief, []int32{600}},
		{"room for both", budget.Limits{Tokens: 920}, brief, []int32{300}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := looking(t, &scripted.Usage{Prompt: 100, Output: 900})
			s := newSpender(t, tt.limit, insistent(t, m, llmagent.Config{GenerateContentConfig: tt.cfg}))
			s.spend()
			if len(m.requests) != len(tt.want) {
				t.Fatalf("%d requests, want %d", len(m.requests), len(tt.want))
			}
			for i, req := range m.requests { // the input is an estimate
				got, want := req.Config.MaxOutputTokens, tt.want[i]
				if got > want+50 || got < want-120 || (want == 0) != (got == 0) || want == 1000 && got != want {
					t.Errorf("request %d is bounded to %d, want about %d", i+1, got, want)
				}
			}
		})
	}
	if given.MaxOutputTokens != 1000 || thinking.MaxOutputTokens != 0 {
		t.Error("the agent's own config was changed")
	}
}

// LOOP 23: a config that a callback has put into the request may be another's.
func TestCallbacksConfigIsNotChanged(t *testing.T) {
	own := &genai.GenerateContentConfig{MaxOutputTokens: 1000}
	m := looking(t, &scripted.Usage{Prompt: 100, Output: 400})
	newSpender(t, budget.Limits{Tokens: 700}, insistent(t, m, llmagent.Config{BeforeModelCallbacks: []llmagent.BeforeModelCallback{
		func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
			req.Config = own
			return nil, nil
		},
	}})).spend()
	if got := m.requests[0].Config.MaxOutputTokens; got >= 700 || own.MaxOutputTokens != 1000 {
		t.Errorf("the request is bounded to %d, the callback's own config to %d", got, own.MaxOutputTokens)
	}
}

// LOOP 23: an agent whose answers are long gets room for long ones.
func TestRoomForTheLongestAnswer(t *testing.T) {
	m := looking(t, &scripted.Usage{Prompt: 100, Output: 6000})
	newSpender(t, budget.Limits{Tokens: 11_300}, insistent(t, m, llmagent.Config{})).spend()
	// Of the 5200 that remain, 4096 would fit.
	if len(m.requests) != 2 || m.requests[0].Config.MaxOutputTokens != 0 || m.requests[1].Config.MaxOutputTokens < 4900 {
		t.Errorf("%d requests, the last bounded to %d", len(m.requests), m.requests[len(m.requests)-1].Config.MaxOutputTokens)
	}
}

// LOOP 23: a picture is not counted by its bytes.
func TestPictureIsEstimatedAsOne(t *testing.T) {
	m := looking(t, &scripted.Usage{Prompt: 100, Output: 4000})
	s := newSpender(t, budget.Limits{Tokens: 4000}, insistent(t, m, llmagent.Config{}))
	msg := genai.NewContentFromParts([]*genai.Part{
		{Text: "What is this?"}, {InlineData: &genai.Blob{MIMEType: "image/png", Data: make([]byte, 200_000)}},
	}, genai.RoleUser)
	var err error
	for _, err = range s.runner.Run(t.Context(), "ana", "s1", msg, s.cfg) {
	}
	if len(m.requests) != 1 {
		t.Fatalf("%d requests: %v", len(m.requests), err)
	}
	if got := m.requests[0].Config.MaxOutputTokens; got > 2400 || got < 2100 {
		t.Errorf("%d tokens are left for the answer", got)
	}
}

// mapped is a tool with a schema that is a map, as an MCP server's is.
type mapped struct {
	tool.Function
	schema map[string]any
}

func (m mapped) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: m.Name(), ParametersJsonSchema: m.schema}
}

// Tools are estimated by their declarations as JSON.
func TestToolsAreEstimatedAsJSON(t *testing.T) {
	inner := answering(t, "find", "x").(tool.Function)
	tools := []tool.Tool{
		exitTool(t), answering(t, "look", "x"),
		mapped{inner, map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}},
	}
	const limit = 4000
	rec := record(script(t, scripted.Answer{Text: "done", Repeat: true}))
	s := newSpender(t, budget.Limits{Tokens: limit}, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: tools}))
	s.must("Hello")
	cfg := rec.requests[0].Config
	const around = 12 // bytes of each content
	bytes := 2*around + len("Hello") + len(rec.system(0)) + len(toJSON(t, cfg.Tools))
	if got, want := int(cfg.MaxOutputTokens), limit-(bytes+2)/3; got != want {
		t.Errorf("%d tokens are left for the answer, want %d", got, want)
	}
}

// LOOP 23: the estimate of the input learns from what the provider reports.
func TestEstimateFollowsTheProvider(t *testing.T) {
	for _, reported := range []int32{600, 5000} { // less than a token in three bytes, and more
		m := looking(t, &scripted.Usage{Prompt: reported, Output: 1})
		s := newSpender(t, budget.Limits{Tokens: 100_000}, insistent(t, m, llmagent.Config{
			Instruction: strings.Repeat("word ", 600), GenerateContentConfig: &genai.GenerateContentConfig{MaxOutputTokens: 100},
		}))
		s.cfg.Budget.Calls = 2
		s.spend()
		// A third call of about the same size: what it would be refused for says
		// what it is estimated at.
		s.cfg.Budget = &budget.Limits{Tokens: 300}
		e, ok := errors.AsType[*budget.ExceededError](s.spend())
		least := float64(reported)*1.1 + llmagent.MinOutputTokens
		if !ok || e.Asked < least || e.Asked > least+300 {
			t.Errorf("%d tokens were reported: asked for %v, want a little over %v", reported, e.Asked, least)
		}
	}
}

// there were: each content is counted once, also when a loop runs the agent anew.
func TestContentsAreCountedOnce(t *testing.T) {
	long := map[string]any{"text": strings.Repeat("word ", 100)}
	look := function(t, "look", func(tool.Context) (map[string]any, error) { return long, nil })
	perTurn := func(turns uint) float64 {
		asked := 0
		m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			if asked++; asked%2 == 0 {
				yield(response("done"), nil)
				return
			}
			call := &genai.Part{FunctionCall: &genai.FunctionCall{ID: fmt.Sprint("c", asked), Name: "look"}}
			yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{call}}}, nil)
		})
		root := newLoop(t, loopagent.Config{MaxIterations: turns / 2}, newAgent(t, llmagent.Config{Name: "a", Model: m, Tools: []tool.Tool{look}}))
		s := newSpender(t, budget.Limits{Tokens: 1 << 40}, root)
		s.cfg.MaxLLMCalls = -1
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.must("go")
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(turns)
	}
	perTurn(10)
	few, many := perTurn(100), perTurn(800)
	if many > few*1.25 {
		t.Errorf("a turn of 100 makes %.0f allocations, a turn of 800 %.0f", few, many)
	}
}
