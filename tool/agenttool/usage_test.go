// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
)

func view() *session.View {
	return session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"})
}

func spends(a scripted.Answer, in, out int) scripted.Answer {
	a.Usage = &scripted.Usage{Prompt: int32(in), Output: int32(out)}
	return a
}

func asks(names ...string) scripted.Answer {
	var a scripted.Answer
	for _, n := range names {
		a.Calls = append(a.Calls, scripted.Call{Name: n, Args: map[string]any{"request": "go"}})
	}
	return a
}

// nested is an agent that asks two others, one of which asks a third, each by
// its own model.
func nested(t *testing.T) agent.Agent {
	deep := llm(t, llmagent.Config{Name: "deep", Model: script(t, spends(scripted.Answer{Text: "deep"}, 1000, 200))})
	left := llm(t, llmagent.Config{
		Name: "left", Tools: []tool.Tool{agenttool.New(deep, nil)},
		Model: script(t, spends(asks("deep"), 100, 20), spends(scripted.Answer{Text: "left"}, 100, 20)),
	})
	right := llm(t, llmagent.Config{Name: "right", Model: script(t, spends(scripted.Answer{Text: "right"}, 10, 2))})
	return llm(t, llmagent.Config{
		Name: "boss", Tools: []tool.Tool{agenttool.New(left, nil), agenttool.New(right, nil)},
		Model: script(t, spends(asks("left", "right"), 1, 1), spends(scripted.Answer{Text: "done"}, 1, 1)),
	})
}

// ran runs a tree for a message and returns what was yielded.
func ran(t *testing.T, root agent.Agent, cfg agent.RunConfig) ([]*session.Event, error) {
	t.Helper()
	r, err := runner.NewInMemory("app", root)
	if err != nil {
		t.Fatal(err)
	}
	var evs []*session.Event
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg) {
		if err != nil {
			return evs, err
		}
		evs = append(evs, ev)
	}
	return evs, nil
}

// F10, LOOP 23: what agents spend in a tool call is on the event that answers
// the call. So the events of a log add up to what the run has spent, each token
// once.
func TestTokensOfInnerAgentsAreInTheLog(t *testing.T) {
	evs, err := ran(t, nested(t), agent.RunConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var each []int32
	var sum *genai.GenerateContentResponseUsageMetadata
	for _, ev := range evs {
		each = append(each, ev.UsageMetadata.TotalTokenCount)
		sum = tool.SumUsage(sum, ev.UsageMetadata)
	}
	if diff := cmp.Diff([]int32{2, 2*120 + 1200 + 12, 2}, each); diff != "" {
		t.Error(diff)
	}
	if sum.PromptTokenCount != 1212 || sum.CandidatesTokenCount != 244 {
		t.Errorf("all in all %+v", sum)
	}
}

// What an agent has spent before it failed is spent.
func TestTokensOfAFailedAgent(t *testing.T) {
	inner := llm(t, llmagent.Config{
		Name: "inner", Model: script(t, spends(asks("nothing"), 7, 3), scripted.Answer{Error: &scripted.Failure{Status: 500}}),
	})
	boss := llm(t, llmagent.Config{Name: "boss", Tools: []tool.Tool{agenttool.New(inner, nil)}, Model: script(t, asks("inner"), scripted.Answer{Text: "done"})})
	evs, err := ran(t, boss, agent.RunConfig{})
	if err != nil || evs[1].UsageMetadata == nil || evs[1].UsageMetadata.TotalTokenCount != 10 {
		t.Errorf("got %+v, %v", evs[1].UsageMetadata, err)
	}
}

// LOOP 23: the calls of models by inner agents are the run's. Here are six.
func TestModelCallsOfInnerAgentsCount(t *testing.T) {
	if _, err := ran(t, nested(t), agent.RunConfig{MaxLLMCalls: 6}); err != nil {
		t.Errorf("six are enough: %v", err)
	}
	if _, err := ran(t, nested(t), agent.RunConfig{MaxLLMCalls: 5}); !errors.Is(err, agent.ErrTooManyModelCalls) {
		t.Errorf("five are not: %v", err)
	}
}

// LOOP 32: a question inside a tool call is an error of the call. It ends no
// loop of the caller's.
func TestQuestionInsideACall(t *testing.T) {
	del := custom(t, "delete", nil)
	guarded := tool.WithConfirmation(tools{agenttool.New(del, nil)}, true, nil)
	inner := llm(t, llmagent.Config{Name: "inner", Toolsets: []tool.Toolset{guarded}, Model: script(t, asks("delete"))})
	boss := llm(t, llmagent.Config{Name: "boss", Tools: []tool.Tool{agenttool.New(inner, nil)},
		Model: script(t, asks("inner"), scripted.Answer{Text: "then not"})})
	loop, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{boss}}, MaxIterations: 1})
	if err != nil {
		t.Fatal(err)
	}
	evs, err := ran(t, loop, agent.RunConfig{})
	if err != nil || len(evs) != 3 || evs[2].Text() != "then not" || evs[1].Actions.Escalate || len(evs[1].LongRunningToolIDs) > 0 {
		t.Fatalf("%d events, %v", len(evs), err)
	}
	got, _ := evs[1].Content.Parts[0].FunctionResponse.Response["error"].(string)
	if !strings.Contains(got, "needs a person's consent") {
		t.Errorf("the model is told %q", got)
	}
}

type tools []tool.Tool

func (tools) Name() string                                       { return "tools" }
func (s tools) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s, nil }

// An agent in a tool call hands over to its own sub-agents and to nobody
// outside, though it be in the caller's tree as well.
func TestTransfersStayInsideACall(t *testing.T) {
	var given [][]string
	note := func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
		f, ok := req.Tools["transfer_to_agent"].(tool.Function)
		if ok {
			given = append(given, f.Declaration().Parameters.Properties["agent_name"].Enum)
		}
		return nil, nil
	}
	to := func(name string) scripted.Answer {
		return scripted.Answer{Calls: []scripted.Call{{Name: "transfer_to_agent", Args: map[string]any{"agent_name": name}}}}
	}
	expert := llm(t, llmagent.Config{Name: "expert", Model: script(t, scripted.Answer{Text: "I know"}), DisallowTransferToParent: true})
	helper := llm(t, llmagent.Config{Name: "helper", Model: script(t, to("expert")), SubAgents: []agent.Agent{expert},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{note}})
	boss := llm(t, llmagent.Config{
		Name: "boss", Model: script(t, asks("helper"), scripted.Answer{Text: "done"}),
		Tools: []tool.Tool{agenttool.New(helper, nil)}, SubAgents: []agent.Agent{helper},
	})
	evs, err := ran(t, boss, agent.RunConfig{})
	if err != nil || len(evs) != 3 || evs[1].Content.Parts[0].FunctionResponse.Response["result"] != "I know" || evs[1].Actions.TransferToAgent != "" {
		t.Fatalf("%d events, %v", len(evs), err)
	}
	if diff := cmp.Diff([][]string{{"expert"}}, slices.Clone(given)); diff != "" {
		t.Error(diff)
	}
}
