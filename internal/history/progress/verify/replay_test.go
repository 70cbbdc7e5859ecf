// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 30, G9: a resumed run that is canceled again before it has come to the end of its
// log seals what the log has of its loop, not what it has read of it.
func TestVerifyOfARunThatIsCanceledWhileItReadsItsLog(t *testing.T) {
	say, err := agent.New(agent.Config{Name: "say", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText("hm", genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	var cancelIn int
	var cancel context.CancelFunc
	root, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{say}}, MaxIterations: 5,
		BeforeIteration: []loopagent.BeforeIterationCallback{func(_ agent.Context, n int) error {
			if n == cancelIn {
				cancel()
			}
			return nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "a", Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	part := func(in int, run func(ctx context.Context) iter.Seq2[*session.Event, error]) {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		cancelIn = in
		for ev, err := range run(ctx) {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if ev != nil {
				id = ev.InvocationID
			}
		}
	}
	part(4, func(ctx context.Context) iter.Seq2[*session.Event, error] {
		return r.Run(ctx, "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{})
	})
	for _, in := range []int{1, 2, 3, 4, 0} {
		part(in, func(ctx context.Context) iter.Seq2[*session.Event, error] {
			return r.Resume(ctx, "u", "s", id, agent.RunConfig{})
		})
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	log := slices.Collect(session.ViewOf(got.Session).Log().All())
	seals := verify.Of(slices.Values(log)).Loops()
	if len(seals) < 3 {
		t.Fatalf("%d stop records are too few for this test", len(seals))
	}
	for _, s := range seals {
		if s.Problem != "" {
			t.Errorf("event %d: %s", s.Seq, s.Problem)
		}
	}
}
