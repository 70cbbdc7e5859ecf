// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/tool"
)

// A12: an agent with a model keeps the promises of every agent.
func TestAgent(t *testing.T) {
	agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
		m := fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			if req.Contents[len(req.Contents)-1].Parts[0].FunctionResponse != nil {
				yield(response("I see."), nil)
				return
			}
			call := &genai.Part{FunctionCall: &genai.FunctionCall{Name: "look"}}
			yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{call}}}, nil)
		})
		return newAgent(t, llmagent.Config{Name: "looker", Model: m, OutputKey: "seen", Tools: []tool.Tool{answering(t, "look", "a cat")}})
	})
}

func TestNewRefuses(t *testing.T) {
	m := script(t, says("hi"))
	for want, cfg := range map[string]llmagent.Config{
		"has no name":                 {Model: m},
		"instruction: 1:1":            {Name: "a", Model: m, Instruction: "{{#open}}"},
		"global instruction: 1:1":     {Name: "a", Model: m, GlobalInstruction: "{{#open}}"},
		"a tool or toolset is nil":    {Name: "a", Model: m, Tools: []tool.Tool{nil}},
		"unknown context policy":      {Name: "a", Model: m, Context: llmagent.ContextConfig{Policy: "some"}},
		"needs Last, how many":        {Name: "a", Model: m, Context: llmagent.ContextConfig{Policy: llmagent.ContextLast}},
		"has a negative value":        {Name: "a", Model: m, RequestRetry: llmagent.RequestRetry{Attempts: -1}},
		"1m, is longer than the":      {Name: "a", Model: m, RequestRetry: llmagent.RequestRetry{Backoff: time.Minute, MaxBackoff: time.Second}},
		`agent cannot be named "use`:  {Name: "user", Model: m},
		"output schema: ":             {Name: "a", Model: m, OutputSchema: &genai.Schema{Type: genai.TypeString, Pattern: "("}},
		`input schema: its type is "`: {Name: "a", Model: m, InputSchema: &genai.Schema{Type: genai.TypeString}},
	} {
		if a, err := llmagent.New(cfg); err == nil || a != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %v", want, a, err)
		}
	}
}

// As in ADK, an agent without a model can be made, to be looked at; running it is
// the error.
func TestAgentWithoutAModelFailsWhenItRuns(t *testing.T) {
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a"}))
	if evs, err := th.ask(t.Context(), "go"); !errors.Is(err, llmagent.ErrNoModel) || len(evs) > 0 {
		t.Errorf("got %v and %d events, want ErrNoModel", err, len(evs))
	}
}

func TestKind(t *testing.T) {
	a := newAgent(t, llmagent.Config{Name: "a", Model: script(t, says("hi")), OutputKey: "k"})
	if agent.TypeOf(a) != agent.TypeLLM {
		t.Errorf("got type %q", agent.TypeOf(a))
	}
	if la, ok := a.(*llmagent.Agent); !ok || la.Config().OutputKey != "k" {
		t.Errorf("got a %T", a)
	}
}

// D1, C33: what is said last goes into the output key; words beside a call, and
// what has no words, do not.
func TestOutputKey(t *testing.T) {
	thought := scripted.Answer{Thought: "hm"}
	for _, tt := range []struct {
		name    string
		answers []scripted.Answer
		want    any
	}{
		{"the final answer", []scripted.Answer{says("new")}, "new"},
		{"after a tool", []scripted.Answer{{Text: "let me look", Calls: []scripted.Call{{Name: "look"}}}, says("new")}, "new"},
		{"a thought is no answer", []scripted.Answer{{Thought: "hm", Text: "new"}}, "new"},
		{"only thoughts, and then an answer", []scripted.Answer{thought, says("new")}, "new"},
		{"only space", []scripted.Answer{says(" \n")}, "old"},
		{"a stop call", []scripted.Answer{{Text: "that is it", Calls: []scripted.Call{{Name: "exit_loop"}}}}, "old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgent(t, llmagent.Config{
				Name: "a", Model: script(t, tt.answers...), OutputKey: "doc",
				Tools: []tool.Tool{answering(t, "look", "x"), exitTool(t)},
			})
			th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 1}, a))
			th.must("go", runner.WithStateDelta(map[string]any{"doc": "old"}))
			if got := th.state("doc"); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// A piece of a stream is shown and not stored; the whole comes last.
func TestStreaming(t *testing.T) {
	a := newAgent(t, llmagent.Config{Name: "a", OutputKey: "doc", Model: script(t, scripted.Answer{Chunks: []string{"one ", "two"}})})
	th := newThread(t, a)
	th.cfg.StreamingMode = agent.StreamingModeSSE
	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a: one ", "a: two", "a: one two"}, lines(evs)); diff != "" {
		t.Error(diff)
	}
	for i, ev := range evs {
		if ev.Partial != (i < 2) || ev.Partial == (ev.Seq > 0) || ev.Partial && ev.Actions.StateDelta != nil {
			t.Errorf("event %d: partial %v, seq %d, delta %v", i, ev.Partial, ev.Seq, ev.Actions.StateDelta)
		}
	}
	if n := th.session().Events().Len(); n != 2 || th.state("doc") != "one two" {
		t.Errorf("stored %d events, doc %v", n, th.state("doc"))
	}
}

func TestStreamThatEndsWithAPieceFails(t *testing.T) {
	m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		resp := response("half")
		resp.Partial = true
		yield(resp, nil)
	})
	_, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m})).ask(t.Context(), "go")
	if err == nil || !strings.Contains(err.Error(), `model "fake" ended its stream with a partial response`) {
		t.Errorf("got %v", err)
	}
}

// The author of a response may keep it, in a cache for one: it is not changed.
func TestResponsesAreNotChanged(t *testing.T) {
	kept := &model.LLMResponse{Content: &genai.Content{Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "look"}}}}}
	m := fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		if n := len(req.Contents); n > 1 && req.Contents[n-1].Parts[0].FunctionResponse != nil {
			yield(&model.LLMResponse{Content: &genai.Content{Parts: []*genai.Part{{Text: "done"}}}}, nil)
			return
		}
		yield(kept, nil)
	})
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, Tools: []tool.Tool{answering(t, "look", "x")}}))
	want := []string{"a: call look", "a: answer look map[text:x]", "a: done"}
	if diff := cmp.Diff(want, th.must("go")); diff != "" {
		t.Error(diff)
	}
	if kept.Content.Role != "" || kept.Content.Parts[0].FunctionCall.ID != "" {
		t.Errorf("the response was changed: %+v", kept.Content)
	}
	ids := map[string]bool{}
	for ev := range th.session().Events().All() {
		for _, p := range ev.Content.Parts {
			if p.FunctionCall != nil {
				ids[p.FunctionCall.ID] = true
			} else if p.FunctionResponse != nil && !ids[p.FunctionResponse.ID] {
				t.Errorf("an answer has the ID %q of no call", p.FunctionResponse.ID)
			}
		}
		if ev.Content.Role == "" {
			t.Error("a content has no role")
		}
	}
	if ids[""] || len(ids) != 1 {
		t.Errorf("calls have the IDs %v", ids)
	}
}

func TestModelErrorIsWrapped(t *testing.T) {
	m := script(t, scripted.Answer{Error: &scripted.Failure{Status: 400, Message: "no"}})
	_, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m})).ask(t.Context(), "go")
	api, ok := errors.AsType[*model.APIError](err)
	step, isStep := errors.AsType[*agent.StepError](err)
	if !ok || api.Status != 400 || !isStep || step.Address != "a" || !strings.Contains(err.Error(), `ask model "scripted"`) {
		t.Errorf("got %v", err)
	}
}

// A call that is cut off ends the run with the cause, whatever
// callbacks have in store.
func TestCancelDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, llmagent.Config{
			Name: "a", Model: script(t, scripted.Answer{Hang: true}),
			OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{
				func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
					return response("never mind"), nil
				},
			},
		})
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { synctest.Wait(); cancel(cause) }()
		if evs, err := newThread(t, a).ask(ctx, "go"); err != cause || len(evs) != 0 {
			t.Errorf("got %q, %v", lines(evs), err)
		}
	})
}

func TestAModelThatSaysNothing(t *testing.T) {
	m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{}, nil)
	})
	a := newAgent(t, llmagent.Config{Name: "a", Model: m, OutputKey: "doc", BeforeModelCallbacks: []llmagent.BeforeModelCallback{
		func(ctx agent.CallbackContext, _ *model.LLMRequest) (*model.LLMResponse, error) {
			return nil, ctx.State().Set("asked", true)
		},
	}})
	th := newThread(t, a)
	th.must("go")
	if th.state("asked") != true || th.state("doc") != nil {
		t.Errorf("what the callback did is stored, and no more: asked %v, doc %v", th.state("asked"), th.state("doc"))
	}
}

func TestOutputSchema(t *testing.T) {
	schema := &genai.Schema{Type: genai.TypeObject}
	given := &genai.GenerateContentConfig{Temperature: new(float32(0.5)), Labels: map[string]string{"a": "b"},
		HTTPOptions: &genai.HTTPOptions{APIVersion: "v9"}}
	rec := record(script(t, scripted.Answer{JSON: map[string]any{"n": 1}}))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, OutputSchema: schema, OutputKey: "doc",
		GenerateContentConfig: given}))
	th.must("go")
	cfg := rec.requests[0].Config
	if cfg.ResponseSchema != schema || cfg.ResponseMIMEType != "application/json" || *cfg.Temperature != 0.5 ||
		cfg.HTTPOptions.APIVersion != "v9" {
		t.Errorf("got %+v", cfg)
	}
	if th.state("doc") != `{"n":1}` {
		t.Errorf("the answer is stored as it came, got %v", th.state("doc"))
	}
	if given.SystemInstruction != nil || given.ResponseSchema != nil {
		t.Error("the given config was changed")
	}
}

// LOOP 23 (model calls): a model that calls a tool for ever is stopped. The error names the limit, and the call if it
// was the same again and again.
func TestModelCallsAreLimited(t *testing.T) {
	for _, tt := range []struct {
		limit, want int
		said        string
	}{{0, agent.DefaultMaxLLMCalls, "500, the default"}, {3, 3, "3"}} {
		rec := record(script(t, scripted.Answer{Calls: []scripted.Call{{Name: "look"}}, Repeat: true}))
		th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{answering(t, "look", "x")}}))
		th.cfg.MaxLLMCalls = tt.limit
		_, err := th.ask(t.Context(), "go")
		if !errors.Is(err, agent.ErrTooManyModelCalls) || len(rec.requests) != tt.want {
			t.Errorf("limit %d: %d calls, %v", tt.limit, len(rec.requests), err)
		}
		want := fmt.Sprintf("the limit is %s; raise it with max_model_calls, in Go agent.RunConfig.MaxLLMCalls; each of the last %d "+
			"turns called look()",
			tt.said, tt.want)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("limit %d: %v, want %s", tt.limit, err, want)
		}
	}
}

// Calls with other arguments are no repetition, and neither are a few of them.
func TestLimitNamesOnlyCallsThatRepeat(t *testing.T) {
	look := func(n int) scripted.Answer {
		return scripted.Answer{Calls: []scripted.Call{{Name: "look", Args: map[string]any{"n": n}}}}
	}
	for name, answers := range map[string][]scripted.Answer{
		"other arguments": {look(1), look(2), look(3), look(4), look(5)},
		"a few":           {look(1), look(2), look(3), look(4), look(4)},
	} {
		th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, answers...), Tools: []tool.Tool{answering(t, "look", "x")}}))
		th.cfg.MaxLLMCalls = 5
		if _, err := th.ask(t.Context(), "go"); !errors.Is(err, agent.ErrTooManyModelCalls) || strings.Contains(err.Error(), "turns called") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
