// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// M15, X1, K9: what cannot be predicted is not, and a loop that nothing ends is told.
func TestEstimateIsHonest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		plan   loop.Plan
		scores []float64 // of one that runs there is none yet
		want   string
	}{
		{"too few scores", loop.Plan{MaxIterations: 5, Score: &loop.Score{Key: "s"}}, []float64{1, 2}, "not predictable yet: 2 scores, three are needed; at most 3 more iterations"},
		{"no limit", loop.Plan{Score: &loop.Score{Key: "s"}}, []float64{1}, "not predictable yet: 1 score, three are needed"},
		{"no score", loop.Plan{MaxIterations: 5}, nil, "not predictable yet: the loop is not scored; at most 5 more iterations"},
		{"no course", loop.Plan{MaxIterations: 9, Score: &loop.Score{Key: "s"}}, []float64{1, 9, 2, 8, 1, 9}, "not predictable: the scores follow no course; at most 3 more iterations"},
		{"the limit", loop.Plan{MaxIterations: 5, Score: &loop.Score{Key: "s", Target: new(100.0)}}, []float64{1, 2, 3}, "2 more iterations, until max iterations"},
		{"in an iteration", loop.Plan{MaxIterations: 6, Score: &loop.Score{Key: "s", Target: new(100.0)}}, []float64{1, 2, 3, math.NaN()}, "2 more iterations, until max iterations"},
		{"in the last iteration", loop.Plan{MaxIterations: 4, Score: &loop.Score{Key: "s", Target: new(100.0)}}, []float64{1, 2, 3, math.NaN()}, "none after this iteration, until max iterations"},
		{"nothing ends it", loop.Plan{Score: &loop.Score{Key: "s", Target: new(1e9)}}, []float64{1, 2, 3}, "nothing is expected to end the loop within 100 iterations"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &progress.Loop{Plan: &tt.plan}
			for i, s := range tt.scores {
				if math.IsNaN(s) {
					l.Iterations = append(l.Iterations, &progress.Iteration{Number: i + 1, Status: progress.StatusRunning})
					continue
				}
				l.Iterations = append(l.Iterations, &progress.Iteration{
					Number: i + 1, Status: progress.StatusCompleted,
					Record: &loop.IterationRecord{Number: i + 1, Score: &s, Complete: true},
				})
			}
			if got := prose.Estimate(l, 0); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// C31: a score is provisional from the moment that it is written until its iteration
// ends, and none of an iteration before is taken for it.
func TestProvisionalScore(t *testing.T) {
	for _, score := range []*loop.Score{{Key: "s"}, {Expr: "state.s * 1.0"}} {
		t.Run(score.Key+score.Expr, func(t *testing.T) {
			var log []*session.Event
			synctest.Test(t, func(t *testing.T) {
				log = record(t, t.Context(), must(loopagent.New(loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
						timed("idle", 0, func(n int, ev *session.Event) error {
							ev.Actions.StateDelta = map[string]any{"other": n}
							return nil
						}),
						timed("judge", 0, func(n int, ev *session.Event) error {
							ev.Actions.StateDelta = map[string]any{"s": n}
							return nil
						}),
						timed("after", 0, func(int, *session.Event) error { return nil }),
					}},
					MaxIterations: 2, Rules: loop.Plan{Score: score},
				})))
			})
			live := new(progress.Live)
			var got []string
			for _, ev := range log {
				live.Add(ev)
				if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished || ev.Iteration == 0 {
					continue
				}
				it, s := live.Tree().Root.Loop.Current(), "none"
				if it.Provisional != nil {
					s = fmt.Sprint(*it.Provisional)
				}
				got = append(got, fmt.Sprintf("%d %s %s", it.Number, ev.Address.Agent(), s))
			}
			want := []string{"1 idle none", "1 judge 1", "1 after 1", "2 idle none", "2 judge 2", "2 after 2"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if it := live.Tree().Root.Loop.Current(); it.Provisional != nil || *it.Record.Score != 2 {
				t.Errorf("after the end: %+v", it)
			}
		})
	}
}
