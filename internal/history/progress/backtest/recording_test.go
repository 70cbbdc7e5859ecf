// SPDX-License-Identifier: Apache-2.0

package backtest_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/internal/history/progress/internal/erratictest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// A back-test of a recorded run by its own plan gives the record that
// the run has left, for every loop in it.
func TestRecordedRunsAreTheirOwnBacktest(t *testing.T) {
	loops, seeds := 0, longtest.N[uint64](60, 300)
	for seed := range seeds {
		dice := rand.New(rand.NewPCG(seed, 4))
		inner := erratictest.Loop(t, "inner", dice, erratictest.Agent(t, "a", dice), erratictest.Agent(t, "b", dice))
		outer := erratictest.Loop(t, "outer", dice, erratictest.Agent(t, "c", dice), inner, erratictest.Agent(t, "d", dice))
		svc := session.InMemoryService()
		r, err := runner.New(runner.Config{AppName: "a", Agent: outer, SessionService: svc, AutoCreateSession: true, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		var evs []*session.Event
		for range 2 { // the second finds what the first has left
			for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
				if err != nil { // nothing in it has worked
					if !strings.Contains(err.Error(), loop.NoneSucceeded) {
						t.Fatal(err)
					}
					break
				}
				evs = append(evs, ev)
			}
		}
		recs, err := backtest.Recordings(evs)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			loops++
			got := rec.Plan.Backtest(rec.Outcomes)
			if rec.Stop == nil || got.Stop == nil {
				t.Fatalf("seed %d, %s: recorded %v, back-test %v (%s)", seed, rec.Loop, rec.Stop, got.Stop, got.Note)
			}
			if r := &rec.Stop.Result; r.Source == loop.FromLast && r.Iteration < got.Stop.Result.Iteration {
				got.Stop.Result = *r // outcomes do not tell that an iteration said nothing, so that an earlier one's text was handed back
			}
			if diff := cmp.Diff(rec.Stop, got.Stop, cmpopts.IgnoreFields(loop.StopRecord{}, "Events", "Digest")); diff != "" {
				t.Fatalf("seed %d, %s (-recorded +back-test):\n%s", seed, rec.Loop, diff)
			}
		}
	}
	if loops < 2*int(seeds) {
		t.Errorf("%d loops recorded", loops)
	}
}

// noisyLoop returns a loop whose judge is off by chance, and asked about the start, three times about each version, and
// again after a rollback.
func noisyLoop(t *testing.T, dice *rand.Rand) agent.Agent {
	t.Helper()
	step := func(name string, write func() map[string]any) agent.Agent {
		a, err := agent.New(agent.Config{Name: name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := &session.Event{}
				ev.Actions.StateDelta = write()
				ev.Content = genai.NewContentFromText(fmt.Sprint(ev.Actions.StateDelta), genai.RoleModel)
				yield(ev, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	worth := 5.0
	writer := step("writer", func() map[string]any {
		worth += dice.Float64()*2 - 1
		return map[string]any{"draft": fmt.Sprint(dice.Float64())}
	})
	judge := step("judge", func() map[string]any { return map[string]any{"score": worth + dice.NormFloat64()/2} })
	a, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer, judge}}, MaxIterations: 8,
		Rules: loop.Plan{
			CanExit: []string{}, OnRegression: loop.RollbackOnWorse,
			Score: &loop.Score{Key: "score", MinDelta: new(0.1), Patience: 2, Baseline: true, Judge: &loop.Judge{Step: "judge", Samples: 3}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// LOOP 14, 14a: the log of a run whose start was scored, and whose judge was asked again after rollbacks, is its own back-test. With fewer
// iterations it saves the steps that were left, also those of the judge.
func TestRecordedRunsWithRejudging(t *testing.T) {
	again := 0
	for seed := range longtest.N[uint64](20, 100) {
		root := noisyLoop(t, rand.New(rand.NewPCG(seed, 14)))
		r, err := runner.New(runner.Config{AppName: "a", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		var evs []*session.Event
		for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			evs = append(evs, ev)
		}
		recs, err := backtest.Recordings(evs)
		if err != nil || len(recs) != 1 {
			t.Fatalf("%d loops, %v", len(recs), err)
		}
		rec := recs[0]
		got := rec.Plan.BacktestOf(rec.Plan, rec.Outcomes)
		if diff := cmp.Diff(rec.Stop, got.Stop, cmpopts.IgnoreFields(loop.StopRecord{}, "Events", "Digest")); diff != "" || got.SavedSteps != 0 || got.Unasked != 0 {
			t.Fatalf("seed %d: saved %d steps, unasked %d (-recorded +back-test):\n%s", seed, got.SavedSteps, got.Unasked, diff)
		}
		asked := 0
		for _, it := range got.Records {
			if it.Rejudged != nil {
				asked++
			}
		}
		again += asked
		_, trials := backtest.Run(recs, func(p *loop.Plan) (*loop.Plan, error) { return p.With("max_iterations", "1") })
		if trials[0].Verdict == backtest.VerdictUnknown || trials[0].Stops != 1 {
			t.Errorf("seed %d, one iteration: %+v", seed, trials[0])
		}
		// By the rules before, the mean of the best stays where it was, so the run may go another way from there.
		if before, err := rec.Plan.With("rules", "2"); err != nil {
			t.Error(err)
		} else if was := before.BacktestOf(rec.Plan, rec.Outcomes); asked == 0 && !cmp.Equal(was.Stop, got.Stop) || was.Unasked != 0 {
			t.Errorf("seed %d, by version 2: %+v", seed, was)
		}
	}
	if again < 10 {
		t.Errorf("the judge was asked again %d times", again)
	}
}
