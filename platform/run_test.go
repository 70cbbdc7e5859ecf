// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// twice runs a loop of two iterations, with an hour in each, and returns its log.
func twice(ctx context.Context, t *testing.T) []*session.Event {
	t.Helper()
	step, err := agent.New(agent.Config{Name: "step", Run: func(inv agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := session.NewEvent(inv, inv.InvocationID())
			ev.Content = genai.NewContentFromText("done", genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	root, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "loop", SubAgents: []agent.Agent{step}}, MaxIterations: 2,
		Rules: loop.Plan{DelayBefore: loop.Duration(time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(ctx, "ana", "s-1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := svc.Get(ctx, &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	var all []*session.Event
	for ev := range got.Session.Events().All() {
		all = append(all, ev)
	}
	return all
}

// The events of a run are of the provider's time, marks too, but for those that measure steps; a delay takes no time in
// a bubble of synctest.
func TestEventsOfARunHaveTheTimeOfTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon := time.Date(2031, 1, 1, 12, 0, 0, 0, time.UTC)
		begun := time.Now()
		all := twice(platform.WithTimeProvider(t.Context(), func() time.Time { return noon }), t)
		marks, at := 0, begun
		for _, ev := range all {
			switch {
			case ev.Mark != nil && (ev.Mark.Kind == mark.KindStepStarted || ev.Mark.Kind == mark.KindStepFinished):
				at = ev.Timestamp // of the bubble
			case !ev.Timestamp.Equal(noon):
				t.Errorf("event %d by %q, mark %v, is of %s", ev.Seq, ev.Author, ev.Mark, ev.Timestamp)
			case ev.Mark != nil:
				marks++
			}
		}
		if marks == 0 || at.Sub(begun) != 2*time.Hour {
			t.Errorf("the log has %d other marks; its last step ended after %s", marks, at.Sub(begun))
		}
	})
}
