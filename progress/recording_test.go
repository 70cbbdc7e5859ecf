// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// erratic writes scores, fails, and asks to leave, as the dice say.
func erratic(t *testing.T, name string, dice *rand.Rand) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText(fmt.Sprint(name, dice.IntN(3)), genai.RoleModel)
			ev.Actions.StateDelta = map[string]any{"score": dice.IntN(10), "iteration:by": name}
			if dice.IntN(12) == 0 {
				ev.Actions.Escalate = true
				ev.Actions.Exit = &session.Exit{Reason: "enough"}
			}
			if !yield(ev, nil) {
				return
			}
			if dice.IntN(6) == 0 {
				yield(nil, errors.New("broken"))
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func erraticLoop(t *testing.T, name string, dice *rand.Rand, subs ...agent.Agent) agent.Agent {
	t.Helper()
	cfg := loopagent.Config{
		AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxIterations: uint(1 + dice.IntN(6)),
		OnError: []loop.ErrorPolicy{loop.SkipStep, loop.NextIteration}[dice.IntN(2)],
		Score:   &loop.Score{Key: "score", Target: new(9.0)},
	}
	switch dice.IntN(4) {
	case 0:
		cfg.OnRegression = loop.RollbackOnWorse
	case 1:
		cfg.StopWhen = &loop.Condition{Expr: "state.score == 7"}
		cfg.StopCheck = loop.EachStep
	case 2:
		cfg.NoProgress = &loop.NoProgress{Repeats: 2}
		cfg.CanExit = []string{}
	case 3:
		cfg.Steps = map[string]loopagent.StepPolicy{subs[0].Name(): {Retry: &loop.Retry{Attempts: 3}, Circuit: &loop.Circuit{Failures: 2, Cooldown: loop.Duration(time.Microsecond)}}}
		cfg.Finalizer = subs[len(subs)-1].Name()
	}
	a, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A back-test of a recorded run by its own plan gives the record that
// the run has left, for every loop in it.
func TestRecordedRunsAreTheirOwnBacktest(t *testing.T) {
	loops, seeds := 0, longtest.N[uint64](60, 300)
	for seed := range seeds {
		dice := rand.New(rand.NewPCG(seed, 4))
		inner := erraticLoop(t, "inner", dice, erratic(t, "a", dice), erratic(t, "b", dice))
		outer := erraticLoop(t, "outer", dice, erratic(t, "c", dice), inner, erratic(t, "d", dice))
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
		recs, err := progress.Recordings(evs)
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
