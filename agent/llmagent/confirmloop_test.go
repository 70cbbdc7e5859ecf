// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// LOOP 9, 32: in a loop, a question ends the run: every loop around it stops,
// blocked, and nothing is kept to go on from. (A sequence around the loops goes
// on to its next step, as after any exit.) The answer runs the agent that has
// asked, alone, and in no iteration; the loops stay stopped. The next message
// begins them anew.
func TestQuestionInALoop(t *testing.T) {
	rec := record(script(t,
		scripted.Answer{Agent: "writer", Text: "draft 1"},
		scripted.Answer{Agent: "publisher", Calls: []scripted.Call{{Name: "publish"}}},
		scripted.Answer{Agent: "after", Text: "so far"},
		scripted.Answer{Agent: "publisher", Text: "published"},
		scripted.Answer{Agent: "writer", Text: "draft 2"},
		scripted.Answer{Agent: "publisher", Text: "nothing to publish"},
		scripted.Answer{Agent: "reader", Text: "nice"},
		scripted.Answer{Agent: "after", Text: "all"},
	))
	step := func(name string) llmagent.Config {
		return llmagent.Config{Name: name, Model: rec, OutputKey: name + "_out"}
	}
	publisher := step("publisher")
	publisher.Toolsets = []tool.Toolset{guarded(t, "publish")}
	publisher.Instruction = "This is iteration {{iteration}}."
	var stops []*loop.StopRecord
	note := func(_ agent.InvocationContext, rec *loop.StopRecord) { stops = append(stops, rec) }
	// Nobody may end the loops: a question needs no permission.
	inner := newLoop(t, loopagent.Config{MaxIterations: 1, Rules: loop.Plan{CanExit: []string{}}, OnStop: note}, newAgent(t, step("writer")),
		newAgent(t, publisher), newAgent(t, step("reader")))
	outer, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "outer", SubAgents: []agent.Agent{inner}}, MaxIterations: 1,
		Rules: loop.Plan{CanExit: []string{}}, OnStop: note})
	if err != nil {
		t.Fatal(err)
	}
	root, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "all", SubAgents: []agent.Agent{outer, newAgent(t, step("after"))}}})
	if err != nil {
		t.Fatal(err)
	}
	th := newThread(t, root)

	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	pending := `publisher: answer publish map[error:error tool "publish" requires confirmation, please approve or reject]`
	want := []string{"writer: draft 1", "publisher: call publish", pending, "publisher: call adk_request_confirmation", "after: so far"}
	if diff := cmp.Diff(want, lines(evs)); diff != "" {
		t.Fatal(diff)
	}
	x := evs[3].Actions.Exit
	if x == nil || x.Status != session.ExitBlocked || x.By != "publisher" || x.HandledBy != "all/outer" {
		t.Errorf("the question leaves by %+v", x)
	}
	if len(stops) != 2 {
		t.Fatalf("%d loops stopped", len(stops))
	}
	for _, rec := range stops {
		if rec.Reason != loop.ReasonBlocked || !strings.Contains(rec.String(), "waits for a person to confirm publish") {
			t.Errorf("the loop stopped because of %s: %s", rec.Reason, rec)
		}
	}

	evs, err = th.send(yes(questions(evs)[0]))
	want = []string{"publisher: answer publish map[args:map[] call:call_publisher_1_1 payload:<nil>]", "publisher: published"}
	if diff := cmp.Diff(want, lines(evs)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if len(stops) != 2 || th.state("publisher_out") != "published" || evs[0].Address != "publisher" || evs[0].Iteration != 0 {
		t.Errorf("%d loops stopped, state %v, address %q, iteration %d", len(stops), th.state("publisher_out"), evs[0].Address, evs[0].Iteration)
	}
	if system := rec.system(3); !strings.HasPrefix(system, "This is iteration .") {
		t.Errorf("asked on with %q", system)
	}

	want = []string{"writer: draft 2", "publisher: nothing to publish", "reader: nice", "after: all"}
	if diff := cmp.Diff(want, th.must("again")); diff != "" {
		t.Error(diff)
	}
}

// Agents in different branches may ask in one run; each is answered by itself.
func TestQuestionsOfTwoAgents(t *testing.T) {
	m := script(t, scripted.Answer{Agent: "a", Calls: []scripted.Call{{Name: "delete"}}}, scripted.Answer{Agent: "b", Calls: []scripted.Call{{Name: "delete"}}},
		scripted.Answer{Agent: "a", Text: "a is done"}, scripted.Answer{Agent: "b", Text: "b is done"})
	var subs []agent.Agent
	for _, name := range []string{"a", "b"} {
		subs = append(subs, newAgent(t, llmagent.Config{Name: name, Model: m, Toolsets: []tool.Toolset{guarded(t, "delete")}}))
	}
	root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	th := newThread(t, root)
	by := make(map[string]*genai.FunctionCall)
	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range evs {
		for _, q := range questions([]*session.Event{ev}) {
			by[ev.Author] = q
		}
	}
	if _, err := th.send(yes(by["a"]), yes(by["b"])); err == nil || !strings.Contains(err.Error(), "answer them in two messages") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"b", "a"} {
		evs, err := th.send(yes(by[name]))
		if err != nil || len(evs) != 2 || lines(evs)[1] != name+": "+name+" is done" {
			t.Errorf("got %q, %v", lines(evs), err)
		}
	}
}

// A consumer that leaves, or a context that ends, is told no more.
func TestLeavingAtAConfirmation(t *testing.T) {
	for stop := 1; stop <= 3; stop++ {
		th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: script(t, calls("delete"), says("x")), Toolsets: []tool.Toolset{guarded(t, "delete")}}))
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
