// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// LOOP 23: runs share a budget. Each counts in it once, however often it is cut off and resumed, and what the earlier
// ones have left is what the last one has.
func TestRunsShareABudget(t *testing.T) {
	prices := budget.Prices{"scripted": {Input: 1e6, Output: 1e6}}
	var rec *loop.StopRecord
	tree := func() agent.Agent {
		llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "ok", Repeat: true}}})
		if err != nil {
			t.Fatal(err)
		}
		step, err := llmagent.New(llmagent.Config{Name: "ask", Model: llm, Instruction: "Go."})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{step}},
			MaxIterations: 4, OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	svc := session.InMemoryService()
	// life drives a run to its end, and cuts it off each time that cut reports true.
	life := func(id string, cfg agent.RunConfig, cut func(n int, ev *session.Event) bool, again func(*agent.RunConfig)) {
		t.Helper()
		msg := genai.NewContentFromText("go", genai.RoleUser)
		events, n := newRunner(t, durable(tree(), svc)).Run(t.Context(), "ana", id, msg, cfg), 0
		for over := false; !over; {
			over = true
			for ev, err := range events {
				if err != nil {
					t.Fatal(err)
				}
				if n++; cut(n, ev) {
					over = false
					break
				}
			}
			if !over {
				again(&cfg)
				events = newRunner(t, durable(tree(), svc)).Resume(t.Context(), "ana", id, "", cfg)
			}
		}
	}
	never := func(int, *session.Event) bool { return false }
	same := func(*agent.RunConfig) {}
	finished := func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished }

	whole := budget.New(budget.Limits{}, prices)
	life("whole", agent.RunConfig{Meter: whole}, never, same)
	want := whole.Used()
	if want.Calls != 4 || want.Cost == nil || *want.Cost == 0 {
		t.Fatalf("a whole run uses %+v", want)
	}
	check := func(name string, m *budget.Meter) {
		t.Helper()
		if got := m.Used(); got.Calls != want.Calls || got.InputTokens != want.InputTokens || got.Cost == nil || *got.Cost != *want.Cost {
			t.Errorf("%s: used %+v, want %+v", name, got, want)
		}
	}
	for _, every := range []int{2, 3, 5} {
		m := budget.New(budget.Limits{}, prices)
		life(fmt.Sprint("cut", every), agent.RunConfig{Meter: m}, func(n int, ev *session.Event) bool { return n%every == 0 && n < 20 && finished(ev) }, same)
		check(fmt.Sprint("resumed in this process, cut at each ", every), m)
	}
	// Another process: its meter learns of all of the run.
	var next *budget.Meter
	life("elsewhere", agent.RunConfig{Meter: budget.New(budget.Limits{}, prices)}, func(n int, _ *session.Event) bool { return n == 12 },
		func(cfg *agent.RunConfig) { next = budget.New(budget.Limits{}, prices); cfg.Meter = next })
	if got := next.Used(); got.Calls != want.Calls { // the tokens of what the model did not report are estimated again
		t.Errorf("resumed in another process: used %+v, want %+v", got, want)
	}

	tonight := budget.New(budget.Limits{Calls: 6}, prices)
	life("one", agent.RunConfig{Meter: tonight}, never, same)
	life("two", agent.RunConfig{Meter: tonight, Budget: &budget.Limits{Calls: 100}}, never, same)
	if rec.Reason != loop.ReasonBudget || tonight.Used().Calls != 6 {
		t.Errorf("the second run stopped by %+v; used %+v", rec, tonight.Used())
	}
}
