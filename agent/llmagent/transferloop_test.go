// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
)

// In a loop a step may hand over to its own sub-agents; one of those may end
// the loop for it.
func TestTransferInALoop(t *testing.T) {
	m := script(t, to("critic", "expert"), by("expert", "not yet"), by("editor", "better"), to("critic", "expert"),
		scripted.Answer{Agent: "expert", Calls: []scripted.Call{{Name: "exit_loop"}}})
	expert := newAgent(t, llmagent.Config{Name: "expert", Model: m, Tools: []tool.Tool{exitTool(t)}})
	critic := newAgent(t, llmagent.Config{Name: "critic", Model: m, SubAgents: []agent.Agent{expert}})
	editor := newAgent(t, llmagent.Config{Name: "editor", Model: m})
	th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 5, Rules: loop.Plan{CanExit: []string{"critic"}}}, critic, editor))
	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"refine[1]/critic", "refine[1]/critic", "refine[1]/critic/expert", "refine[1]/editor",
		"refine[2]/critic", "refine[2]/critic", "refine[2]/critic/expert", "refine[2]/critic/expert",
	}
	if diff := cmp.Diff(want, addresses(evs)); diff != "" {
		t.Error(diff)
	}
	if x := evs[7].Actions.Exit; x == nil || x.By != "expert" || x.HandledBy != "refine" {
		t.Errorf("it ended by %+v", x)
	}
}

// A loop may be handed the conversation; the next message is for the agent that
// did so.
func TestTransferToALoop(t *testing.T) {
	m := script(t, to("desk", "refine"), by("writer", "one"), by("writer", "two"), by("desk", "You are welcome."))
	refine := newLoop(t, loopagent.Config{MaxIterations: 2}, newAgent(t, llmagent.Config{Name: "writer", Model: m}))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "desk", Model: m, SubAgents: []agent.Agent{refine}}))
	evs, err := th.ask(t.Context(), "go")
	if diff := cmp.Diff([]string{"desk", "desk", "desk/refine[1]/writer", "desk/refine[2]/writer"}, addresses(evs)); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	if diff := cmp.Diff([]string{"desk: You are welcome."}, th.must("thanks")); diff != "" {
		t.Error(diff)
	}
}

// What goes wrong with the other one ends the run; a consumer that leaves hears
// no more.
func TestTransferThatFails(t *testing.T) {
	m := script(t, to("desk", "billing"), scripted.Answer{Agent: "billing", Error: &scripted.Failure{Status: 500}})
	var after []string
	done := func(ctx agent.Context) (*genai.Content, error) {
		after = append(after, ctx.AgentName())
		return nil, nil
	}
	desk := newAgent(t, llmagent.Config{
		Name: "desk", Model: m, AfterAgentCallbacks: []agent.AfterAgentCallback{done},
		SubAgents: []agent.Agent{newAgent(t, llmagent.Config{Name: "billing", Model: m, AfterAgentCallbacks: []agent.AfterAgentCallback{done}})},
	})
	_, err := newThread(t, desk).ask(t.Context(), "go")
	step, ok := errors.AsType[*agent.StepError](err)
	if !ok || step.Address != "desk/billing" || len(after) > 0 {
		t.Errorf("got %v, after callbacks %v", err, after)
	}
	for stop := 1; stop <= 3; stop++ {
		th := newThread(t, newAgent(t, llmagent.Config{
			Name: "desk", Model: script(t, to("desk", "billing")),
			SubAgents: []agent.Agent{newAgent(t, llmagent.Config{Name: "billing", Model: script(t, says("one"))})},
		}))
		n := 0
		for range th.runner.Run(context.Background(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), th.cfg) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("got %d events", n)
		}
	}
}

// Who asks to leave the loop, or asks a person, does not hand over besides.
func TestLeavingComesBeforeATransfer(t *testing.T) {
	for name, want := range map[string]string{"exit_loop": "", "delete": "", "look": "billing"} {
		turn := to("desk", "billing")
		turn.Calls = append(turn.Calls, scripted.Call{Name: name})
		m := script(t, turn, by("billing", "hello"))
		desk := newAgent(t, llmagent.Config{
			Name: "desk", Model: m, Tools: []tool.Tool{exitTool(t), answering(t, "look", "x")}, Toolsets: []tool.Toolset{guarded(t, "delete")},
			SubAgents: []agent.Agent{newAgent(t, llmagent.Config{Name: "billing", Model: m})},
		})
		evs, err := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 1}, desk)).ask(t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		spoke := slices.Contains(lines(evs), "billing: hello")
		if got := evs[1].Actions.TransferToAgent; got != want || spoke != (want != "") {
			t.Errorf("%s: transfer to %q, billing spoke: %v", name, got, spoke)
		}
	}
}
