// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// An agent may yield an event of an agent that it runs once more: it is stored twice. In
// a run that is resumed it is known again, wherever the run was cut off.
func TestEventOfAChildYieldedTwice(t *testing.T) {
	grow := func() agent.Agent {
		child := speaker(t, "child", "one", "two")
		a, err := agent.New(agent.Config{Name: "a", SubAgents: []agent.Agent{child}, Run: body(func(ctx agent.InvocationContext, yield yield) {
			var last *session.Event
			for ev, err := range drive.Run(ctx, child) {
				if !yield(ev, err) || err != nil {
					return
				}
				if ev.Mark == nil {
					last = ev
				}
			}
			for range 2 {
				if !yield(last, nil) {
					return
				}
			}
		})})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := []string{"user: go", "child: one", "child: two", "child: two", "child: two"}
	said := func(svc session.Service) []string {
		all := []string{}
		for ev := range get(t, svc).Events().All() {
			if ev.Mark == nil {
				all = append(all, line(ev))
			}
		}
		return all
	}
	cutOffAnywhere(t, grow, said, want)
}

// LOOP 30: an agent may yield twice whatever an agent that it runs yields, with the marks
// of a durable run among it. Words said again are the agent's own, and a mark stays one: the
// run goes on wherever it was cut off. Where the child is made again, its words may come
// after those that were said again.
func TestAllOfAChildYieldedTwice(t *testing.T) {
	grow := func() agent.Agent {
		child := speaker(t, "child", "one", "two")
		a, err := agent.New(agent.Config{Name: "a", SubAgents: []agent.Agent{child}, Run: body(func(ctx agent.InvocationContext, yield yield) {
			for ev, err := range drive.Run(ctx, child) {
				if !yield(ev, err) || err != nil || !yield(ev, nil) {
					return
				}
			}
			for ev := range ctx.Session().Events().All() {
				if ev.Mark != nil && !yield(ev, nil) {
					return
				}
			}
		})})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	log := func(svc session.Service) (all []string) {
		for ev := range get(t, svc).Events().All() {
			switch {
			case ev.Mark == nil:
				all = append(all, string(ev.Address)+" "+line(ev))
			case ev.Mark.Kind == mark.KindStepFinished:
				all = append(all, string(ev.Address)+" ends")
			}
		}
		slices.Sort(all)
		return all
	}
	want := []string{" user: go", "a child: one", "a child: two", "a ends", "a/child child: one", "a/child child: two", "a/child ends"}
	cutOffAnywhere(t, grow, log, want)
}

// cutOffAnywhere runs a tree, whole and cut off after each of its events and resumed: each
// time its log has to come to what is wanted.
func cutOffAnywhere(t *testing.T, grow func() agent.Agent, log func(session.Service) []string, want []string) {
	t.Helper()
	svc, events := session.InMemoryService(), 0
	for _, err := range ask(t.Context(), newRunner(t, durable(grow(), svc)), "go") {
		if err != nil {
			t.Fatal(err)
		}
		events++
	}
	if diff := cmp.Diff(want, log(svc)); diff != "" {
		t.Error(diff)
	}
	for cut := 1; cut < events; cut++ {
		svc, id, n := session.InMemoryService(), "", 0
		for ev, err := range ask(t.Context(), newRunner(t, durable(grow(), svc)), "go") {
			if err != nil {
				t.Fatal(err)
			}
			if id, n = ev.InvocationID, n+1; n == cut {
				break
			}
		}
		if err := resumed(t, grow(), svc, id, nil); err != nil {
			t.Errorf("cut off after %d: %v", cut, err)
		}
		if diff := cmp.Diff(want, log(svc)); diff != "" {
			t.Errorf("cut off after %d: %s", cut, diff)
		}
	}
}

func body(run func(agent.InvocationContext, yield)) func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { run(ctx, yield) }
	}
}
