// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// LOOP 33: a second Run in a session in which one is under way gets an error that names
// the first, changes nothing, and the first goes on. When it is over the next may run.
func TestSecondRunInASessionIsRefused(t *testing.T) {
	for _, durable := range []bool{false, true} {
		svc := session.InMemoryService()
		cfg := runner.Config{SessionService: svc, AutoCreateSession: true, Durable: durable}
		cfg.Agent = speaker(t, "b", "mine")
		other := newRunner(t, cfg)
		a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
			yield(says("one"), nil)
			said, err := collect(t, ask(t.Context(), other, "me too"))
			busy, ok := errors.AsType[*runner.BusyError](err)
			if !ok || busy.RunID != ctx.InvocationID() || !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), ctx.InvocationID()) || len(said) > 0 {
				t.Errorf("the second run: %q, %v", said, err)
			}
			yield(says("two"), nil)
		})
		cfg.Agent = a
		first := newRunner(t, cfg)
		if _, err := collect(t, ask(t.Context(), first, "Hello")); err != nil {
			t.Fatal(err)
		}
		for ev, err := range ask(t.Context(), other, "leaves") {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Mark == nil {
				break // and gives the session back
			}
		}
		if _, err := collect(t, ask(t.Context(), other, "now")); err != nil {
			t.Errorf("after the first: %v", err)
		}
		var said []string
		for ev := range get(t, svc).Events().All() {
			if ev.Mark == nil {
				said = append(said, line(ev))
			}
		}
		if diff := cmp.Diff([]string{"user: Hello", "a: one", "a: two", "user: leaves", "b: mine", "user: now", "b: mine"}, said); diff != "" {
			t.Error(diff)
		}
	}
}

// LOOP 20, 30: an event that cannot be stored ends the run, whatever the loop does about
// failures. The loop says why it stopped and what it came to, to OnStop and, if the
// store works again, to the log; and the run can be resumed.
func TestAppendErrorIsUnderNoPolicy(t *testing.T) {
	errDisk := errors.New("the disk is full")
	for _, policy := range []loop.ErrorPolicy{loop.StopOnError, loop.SkipStep, loop.NextIteration} {
		for _, kind := range []string{"words", string(mark.KindStepStarted), string(mark.KindIterationFinished)} {
			broken := 0
			svc := &failing{Service: session.InMemoryService()}
			svc.onAppend = func(ev *session.Event) error {
				is := ev.Iteration == 2 && ev.Address.Agent() == "b" && (kind == "words" && ev.Mark == nil || ev.Mark != nil && string(ev.Mark.Kind) == kind)
				if kind == string(mark.KindIterationFinished) {
					is = ev.Mark != nil && string(ev.Mark.Kind) == kind && broken == 0
				}
				if is && broken == 0 {
					broken++
					return errDisk
				}
				return nil
			}
			ran := 0
			var rec *loop.StopRecord
			grow := func() agent.Agent {
				b := custom(t, "b", func(_ agent.InvocationContext, yield yield) {
					ran++
					yield(says("b"), nil)
				})
				a, err := loopagent.New(loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{speaker(t, "a", "a"), b}}, MaxIterations: 3,
					Rules: loop.Plan{
						OnError: policy,
						Steps:   []loop.Step{{Name: "b", Retry: &loop.Retry{Attempts: 3}}},
					}, OutputKey: "result",
					OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r },
				})
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			id := ""
			var failed error
			for ev, err := range ask(t.Context(), newRunner(t, durable(grow(), svc)), "go") {
				if failed = err; ev != nil {
					id = ev.InvocationID
				}
			}
			name := string(policy) + ", " + kind
			if _, ok := errors.AsType[*agent.LogError](failed); !ok || !errors.Is(failed, errDisk) {
				t.Errorf("%s: got error %v", name, failed)
			}
			if rec == nil || rec.Reason != loop.ReasonError || !strings.Contains(rec.Detail, errDisk.Error()) || rec.Result.Source == "" {
				t.Fatalf("%s: stopped by %+v", name, rec)
			}
			if ran > 2 {
				t.Errorf("%s: the step ran %d times", name, ran)
			}
			stops := 0
			for ev := range get(t, svc).Events().All() {
				if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
					stops++
				}
			}
			if v, _ := get(t, svc).State().Get("result"); stops != 1 || v != "b" && v != "a" {
				t.Errorf("%s: %d stop records, result %v", name, stops, v)
			}
			if err := resumed(t, grow(), svc, id, nil); err != nil {
				t.Errorf("%s: resumed: %v", name, err)
			}
			if rec.Reason != loop.ReasonMaxIterations || rec.Iterations != 3 {
				t.Errorf("%s: resumed, stopped by %+v", name, rec)
			}
		}
	}
}
