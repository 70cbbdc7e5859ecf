// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
)

// everything is a plan with all its conditions on, none of which ever holds.
func everything(when loop.Condition) *loop.Plan {
	return &loop.Plan{
		Steps: steps("writer", "final"), MaxIterations: 1 << 30, CanExit: []string{},
		StopWhen: &when,
		Score:    &loop.Score{Key: "score", Target: new(1e9), MinDelta: new(0.1), MinDeltaPercent: new(1e-9), Patience: 3},
		Timeout:  loop.Duration(1 << 60), IterationTimeout: loop.Duration(time.Hour),
		Budget:     &loop.Budget{Calls: 1 << 40, Tokens: 1 << 50, Cost: new(1e9)},
		NoProgress: &loop.NoProgress{}, NotWorth: &loop.NotWorth{Gain: 1e-12, Per: loop.PerMinute},
		QualityGate: new(-1.0), MaxConsecutiveFailures: 3, StateLimit: 1 << 40, OnError: loop.SkipStep,
	}
}

// driven is a loop that has come some way. Its scores go up and up, but not
// evenly, so that no condition holds and nothing stays the same.
type driven struct {
	plan   *loop.Plan
	tally  loop.Tally
	state  map[string]any
	scores []any // boxed before anything is measured
	texts  []string
	n      int
}

func drive(plan *loop.Plan, iterations, more int) *driven {
	d := &driven{plan: plan, state: map[string]any{"failed": 1, "verdict": "draft"}}
	for i := range iterations + more {
		d.scores = append(d.scores, float64(i)+float64(i%7)/10)
		d.texts = append(d.texts, fmt.Sprintf("%032x", i))
	}
	for range iterations {
		d.step()
	}
	return d
}

var (
	cost  = 0.01
	start = time.Unix(1e9, 0)
	end   = start.Add(time.Second)
)

func (d *driven) step() loop.Decision {
	next := d.plan.Next(&d.tally)
	d.state["score"] = d.scores[d.n]
	d.plan.Add(&d.tally, loop.Outcome{
		Iteration: next.Iteration, Step: next.Step, Started: start, Finished: end, State: d.state, StateSize: 1000,
		Usage: loop.Usage{Calls: 1, InputTokens: 900, OutputTokens: 100, Cost: &cost}, Fingerprint: d.texts[d.n],
	})
	d.n++
	return next
}

const typical = "state.score >= 1000000.0 && state.failed == 0"

// What a decision costs does not depend on how many there were.
func TestNextAndAddAllocateTheSameAfterManyIterations(t *testing.T) {
	longtest.WithoutRace(t) // with the race detector sync.Pool forgets at random
	for name, when := range map[string]loop.Condition{
		"typical":    {Expr: typical},
		"comparison": {Expr: "state.score >= 1000000.0"},
		"several":    {Any: []loop.Condition{{Expr: "state.failed == 0", For: 2}, {Expr: "score != null && score > 1000000.0"}, {Expr: "has(state.gone)"}}},
	} {
		allocations := func(iterations int) float64 {
			d := drive(everything(when), iterations, 100)
			if err := d.plan.Check(); err != nil {
				t.Fatal(err)
			}
			return testing.AllocsPerRun(50, func() {
				if next := d.step(); next.Action != loop.RunStep {
					t.Fatalf("%s: %v", name, next.Stop)
				}
			})
		}
		if few, many := allocations(10), allocations(10_000); many > few+1 || many > 100 {
			t.Errorf("%s: %v allocations after 10 iterations, %v after 10,000", name, few, many)
		}
	}
}

func BenchmarkNextAdd(b *testing.B) {
	for _, when := range []string{typical, "worth", "state.score >= 1000000.0", `state.verdict == "approved"`, "scores.size() > 100"} {
		for _, iterations := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s/after %d", when, iterations), func(b *testing.B) {
				p := everything(loop.Condition{Expr: when})
				if when == "worth" {
					p.StopWhen.Expr = typical
				} else {
					p.NotWorth = nil
				}
				d := drive(p, iterations, 1000)
				saved, n := d.tally, d.n
				b.ReportAllocs()
				for b.Loop() {
					if d.n == len(d.scores) {
						d.tally, d.n = saved, n
					}
					if next := d.step(); next.Action != loop.RunStep {
						b.Fatal(next.Stop)
					}
				}
			})
		}
	}
}
