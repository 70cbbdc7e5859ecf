// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// to is an answer that hands the conversation over.
func to(agent, name string) scripted.Answer {
	return scripted.Answer{Agent: agent, Calls: []scripted.Call{{Name: "transfer_to_agent", Args: map[string]any{"agent_name": name}}}}
}

func by(agent, text string) scripted.Answer { return scripted.Answer{Agent: agent, Text: text} }

// addresses is where events were said.
func addresses(evs []*session.Event) []string {
	var all []string
	for _, ev := range evs {
		all = append(all, string(ev.Address))
	}
	return all
}

// A12: an agent hands the conversation to another one, which answers in its
// place, now and when the user writes again.
func TestTransfer(t *testing.T) {
	rec := record(script(t, to("desk", "billing"), by("billing", "It is paid."), by("billing", "In May."), to("billing", "desk"), by("desk", "Hello again.")))
	billing := newAgent(t, llmagent.Config{Name: "billing", Description: "Knows\n  invoices.", Model: rec, OutputKey: "bill"})
	desk := newAgent(t, llmagent.Config{
		Name: "desk", Description: "Greets.", Model: rec, OutputKey: "greeting", GlobalInstruction: "Be kind.",
		SubAgents: []agent.Agent{billing, newAgent(t, llmagent.Config{Name: "travel", Model: rec})},
	})
	th := newThread(t, desk)

	evs, err := th.ask(t.Context(), "Is it paid?")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"desk: call transfer_to_agent", "desk: answer transfer_to_agent map[]", "billing: It is paid."}
	if diff := cmp.Diff(want, lines(evs)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"desk", "desk", "desk/billing"}, addresses(evs)); diff != "" || evs[1].Actions.TransferToAgent != "billing" {
		t.Errorf("%s, actions %+v", diff, evs[1].Actions)
	}
	if th.state("bill") != "It is paid." || th.state("greeting") != nil {
		t.Errorf("state %v, %v", th.state("bill"), th.state("greeting"))
	}
	told := "Other agents work with you:\n- billing: Knows invoices.\n- travel\n" +
		"Answer what is yours to answer, going by your description. What another agent is better at is not for you: call transfer_to_agent with its name, and say nothing else."
	if got := rec.system(0); !strings.HasSuffix(got, "\n\n"+told) || !strings.HasPrefix(got, "Be kind.") {
		t.Errorf("desk is told %q", got)
	}
	if got := rec.system(1); !strings.HasSuffix(got, " What is neither yours nor theirs goes to desk, who is above you.") || !strings.HasPrefix(got, "Be kind.") {
		t.Errorf("billing is told %q", got)
	}
	heard := []string{
		"user: Is it paid?",
		"user: For context: | [desk] called tool `transfer_to_agent` with parameters: {\"agent_name\":\"billing\"}",
		"user: For context: | [desk] `transfer_to_agent` tool returned result: {}",
	}
	if diff := cmp.Diff(heard, rec.heard(1)); diff != "" {
		t.Error(diff)
	}

	evs, err = th.ask(t.Context(), "When?")
	if diff := cmp.Diff([]string{"billing: In May."}, lines(evs)); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	evs, err = th.ask(t.Context(), "Thanks, and hello")
	want = []string{"billing: call transfer_to_agent", "billing: answer transfer_to_agent map[]", "desk: Hello again."}
	if diff := cmp.Diff(want, lines(evs)); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	if got := evs[2].Address; got != "billing/desk" {
		t.Errorf("desk speaks at %q", got)
	}
}

// With context none, what the other agent is asked is what the user has said,
// not that it was handed the conversation.
func TestTransferWithContextNone(t *testing.T) {
	rec := record(script(t, to("desk", "billing"), by("billing", "It is paid.")))
	billing := newAgent(t, llmagent.Config{Name: "billing", Model: rec, IncludeContents: llmagent.IncludeContentsNone})
	newThread(t, newAgent(t, llmagent.Config{Name: "desk", Model: rec, SubAgents: []agent.Agent{billing}})).must("Is it paid?")
	if heard := rec.heard(1); len(heard) == 0 || heard[0] != "user: Is it paid?" {
		t.Errorf("billing hears %q", heard)
	}
}

// successors is to whom an agent may hand over, as its model is told.
func successors(t *testing.T, req *model.LLMRequest) []string {
	t.Helper()
	f, ok := req.Tools["transfer_to_agent"].(tool.Function)
	if !ok {
		for _, tl := range req.Config.Tools {
			for _, d := range tl.FunctionDeclarations {
				if d.Name == "transfer_to_agent" {
					t.Error("declared and not there")
				}
			}
		}
		if strings.Contains(req.Config.SystemInstruction.Parts[0].Text, "transfer") {
			t.Error("told of it and not given it")
		}
		return nil
	}
	return f.Declaration().Parameters.Properties["agent_name"].Enum
}

// Down, to the agent above and to those beside, if the one above asks a model.
// T11: a critic in a loop sees no transfer_to_agent.
func TestWhoMayTransferToWhom(t *testing.T) {
	rec := record(fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		yield(response("x"), nil)
	}))
	llm := func(name string, change func(*llmagent.Config), subs ...agent.Agent) agent.Agent {
		cfg := llmagent.Config{Name: name, Model: rec, SubAgents: subs}
		if change != nil {
			change(&cfg)
		}
		return newAgent(t, cfg)
	}
	noParent := func(c *llmagent.Config) { c.DisallowTransferToParent = true }
	noPeers := func(c *llmagent.Config) { c.DisallowTransferToPeers = true }
	neither := func(c *llmagent.Config) { noParent(c); noPeers(c) }
	root := llm("root", nil,
		llm("free", nil), llm("up", noPeers), llm("side", noParent), llm("shut", neither, llm("below", nil)),
		newLoop(t, loopagent.Config{MaxIterations: 1}, llm("critic", nil), llm("editor", nil, llm("helper", nil))))
	want := map[string][]string{
		"root":   {"free", "up", "side", "shut", "refine"},
		"free":   {"root", "up", "side", "shut", "refine"},
		"up":     {"root"},
		"side":   {"free", "up", "shut", "refine"},
		"shut":   {"below"},
		"below":  {"shut"},
		"critic": nil,
		"editor": {"helper"},
		"helper": {"editor"},
	}
	tree, err := drive.NewTree(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(func(y func(string) bool) {
		for n := range want {
			if !y(n) {
				return
			}
		}
	}) {
		ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{}),
			UserContent: genai.NewContentFromText("go", genai.RoleUser)})
		drive.NewStep(ctx, drive.StepConfig{Agent: tree.Find(name), Tree: tree}).Run(func(*session.Event) bool { return true })
		if diff := cmp.Diff(want[name], successors(t, rec.requests[len(rec.requests)-1])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// T11: nor does it in a loop that is the root, whatever its tools are.
func TestCriticOfALoopCannotTransfer(t *testing.T) {
	rec := record(script(t, says("fine"), says("done")))
	step := func(name string) agent.Agent {
		return newAgent(t, llmagent.Config{Name: name, Model: rec, Tools: []tool.Tool{exitTool(t)}})
	}
	newThread(t, newLoop(t, loopagent.Config{MaxIterations: 1}, step("critic"), step("editor"))).must("go")
	for i, req := range rec.requests {
		if got := successors(t, req); got != nil {
			t.Errorf("request %d: %v", i, got)
		}
		if names := req.Config.Tools[0].FunctionDeclarations; len(names) != 1 || names[0].Name != "exit_loop" {
			t.Errorf("request %d declares %d functions", i, len(names))
		}
	}
}

// An agent that is not there, or may not go on, is an answer to the model. A
// tool of the program's may name anybody in the tree.
func TestTransferThatCannotBe(t *testing.T) {
	names := func(name string, quiet bool) tool.Tool {
		return function(t, "hand_"+name, func(ctx tool.Context) (map[string]any, error) {
			ctx.Actions().TransferToAgent, ctx.Actions().SkipSummarization = name, quiet
			return map[string]any{"to": name}, nil
		})
	}
	for _, tt := range []struct {
		name string
		call scripted.Answer
		want string // the tool's answer
		last string
	}{
		{"misspelt", to("", "biling"), `there is no agent "biling" to transfer to; did you mean "billing"?`, "desk: then I"},
		{"nothing like it", to("", "weather"), `there is no agent "weather" to transfer to; there are: billing, line`, "desk: then I"},
		{"no name", scripted.Answer{Calls: []scripted.Call{{Name: "transfer_to_agent"}}}, `agent_name is missing; give one of: billing, line`, "desk: then I"},
		{"deeper down, by the model", to("", "expert"), `there is no agent "expert" to transfer to; there are: billing, line`, "desk: then I"},
		{"deeper down, by a tool", calls("hand_expert"), `map[to:expert]`, "expert: I know"},
		{"by a tool, misspelt", calls("hand_experd"), `there is no agent "experd" to transfer to; did you mean "expert"?`, "desk: then I"},
		{"to itself", calls("hand_desk"), `"desk" is you: answer yourself, or transfer to another agent`, "desk: then I"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := script(t, tt.call, by("desk", "then I"), by("expert", "I know"))
			llm := func(name string, subs ...agent.Agent) agent.Agent {
				return newAgent(t, llmagent.Config{
					Name: name, Model: m, SubAgents: subs,
					Tools: []tool.Tool{names("expert", true), names("experd", false), names("desk", false)},
				})
			}
			line, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "line", SubAgents: []agent.Agent{llm("expert")}}})
			if err != nil {
				t.Fatal(err)
			}
			evs, err := newThread(t, llm("desk", llm("billing"), line)).ask(t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			got := lines(evs)
			if len(got) != 3 || !strings.Contains(got[1], tt.want) || got[2] != tt.last {
				t.Errorf("got %q", got)
			}
			if failed := strings.Contains(got[1], "error"); failed != (evs[1].Actions.TransferToAgent == "") {
				t.Errorf("actions %+v", evs[1].Actions)
			}
		})
	}
}

// Agents that hand over to each other without end do so until the run has asked
// models often enough. Neither addresses nor the stack grow with it.
func TestTransfersWithoutEnd(t *testing.T) {
	n := 0
	m := fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		n++
		name := req.Tools["transfer_to_agent"].(tool.Function).Declaration().Parameters.Properties["agent_name"].Enum[0]
		part := genai.NewPartFromFunctionCall("transfer_to_agent", map[string]any{"agent_name": name})
		yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{part}}}, nil)
	})
	th := newThread(t, newAgent(t, llmagent.Config{Name: "ping", Model: m, SubAgents: []agent.Agent{newAgent(t, llmagent.Config{Name: "pong", Model: m})}}))
	th.cfg.MaxLLMCalls = 101
	evs, err := th.ask(t.Context(), "go")
	if !errors.Is(err, agent.ErrTooManyModelCalls) || n != 101 || len(evs) != 202 {
		t.Fatalf("%d calls, %d events, %v", n, len(evs), err)
	}
	if diff := cmp.Diff([]string{"ping", "ping", "ping/pong", "ping/pong", "ping/ping", "ping/ping", "ping/pong#2", "ping/pong#2"},
		addresses(evs[:8])); diff != "" {
		t.Error(diff)
	}
	if last := evs[201].Address; last != "ping/ping#50" {
		t.Errorf("the last address is %q", last)
	}
}

// An agent that runs without a tree knows its sub-agents at least.
func TestTransferWithoutATree(t *testing.T) {
	m := script(t, to("desk", "billing"), by("billing", "hello"))
	desk := newAgent(t, llmagent.Config{Name: "desk", Model: m, SubAgents: []agent.Agent{newAgent(t, llmagent.Config{Name: "billing", Model: m})}})
	view := session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"})
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: view, UserContent: genai.NewContentFromText("go", genai.RoleUser)})
	var got []string
	for ev, err := range drive.Run(ctx, desk) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(ev.Address))
	}
	if diff := cmp.Diff([]string{"desk", "desk", "desk/billing"}, got); diff != "" {
		t.Error(diff)
	}
}
