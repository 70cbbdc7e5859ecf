// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// world is where steps always do the same in the same place: what one leaves
// follows from the iteration, the step, how often it was run there, and the
// state that it found. So two plans that go the same way see the same.
type world struct {
	seed   uint64
	p      *loop.Plan
	state  map[string]any
	saved  map[int]map[string]any // after an iteration
	tried  map[[2]int]uint64
	now    time.Time
	strict bool // refuses calls beyond the budget
	calls  int64
}

// live runs a plan in a world.
func live(t *testing.T, p *loop.Plan, seed uint64, strict bool) (outcomes []loop.Outcome, stop *loop.StopRecord) {
	t.Helper()
	w := &world{
		seed: seed, p: p, strict: strict, state: map[string]any{"n": 0, "score": 2.0, "text": "", "done": false}, saved: map[int]map[string]any{}, tried: map[[2]int]uint64{},
		now: time.Unix(int64(seed), 0).UTC(),
	}
	w.saved[0] = maps.Clone(w.state)
	var u loop.Tally
	for range 2000 {
		d := p.Next(&u)
		if d.Ended.Number > 0 {
			w.saved[d.Ended.Number] = maps.Clone(w.state)
		}
		if d.Action == loop.Stop {
			return outcomes, d.Stop
		}
		o := w.carryOut(d)
		outcomes = append(outcomes, o)
		p.Add(&u, o)
	}
	t.Fatalf("seed %d: does not stop", seed)
	return nil, nil
}

func (w *world) carryOut(d loop.Decision) loop.Outcome {
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: w.now, Finished: w.now, Waited: d.Wait}
	switch {
	case d.Action == loop.Rollback:
		w.state, o.RolledBack = maps.Clone(w.saved[d.To]), true
	case d.Action == loop.Finalize: // in no time, at no cost: a back-test has none
	case d.Refuse != nil:
		o.Failure = d.Refuse
	default:
		w.work(&o, d)
	}
	o.State = maps.Clone(w.state)
	o.StateSize = int64(10 * w.state["n"].(int))
	w.now = o.Finished
	return o
}

func (w *world) work(o *loop.Outcome, d loop.Decision) {
	key := [2]int{d.Iteration, d.Step}
	w.tried[key]++
	n := w.state["n"].(int)
	r := rand.New(rand.NewPCG(w.seed, uint64(n)<<32|uint64(d.Iteration)<<16|uint64(d.Step)<<8|w.tried[key]))
	took := time.Duration(secs(float64(1 + r.IntN(5))))
	kind, message := "", "broken"
	if one(r, 9) {
		kind = pick(r, loop.Failed, loop.Panicked)
	}
	calls, cost := int64(r.IntN(4)), float64(r.IntN(20))/100
	if d.Timeout > 0 && took > d.Timeout {
		took, kind, message = d.Timeout, d.TimeoutKind, fmt.Sprintf("%s is cut short after %s", w.p.Steps[d.Step].Name, brief.Clock(d.Timeout))
	} else if b := w.p.Budget; w.strict && b != nil && b.Calls > 0 && w.calls+calls > b.Calls-w.p.Reserved().Calls {
		kind, message = loop.BudgetSpent, "it does not fit"
	}
	o.Finished = w.now.Add(d.Wait + took)
	if kind != "" {
		o.Failure = &loop.Failure{Kind: kind, Message: message}
		return
	}
	w.calls += calls
	o.Usage = loop.Usage{Calls: calls, InputTokens: calls * 100, Cost: &cost}
	o.Fingerprint = pick(r, "x", "x", "y", "z")
	if one(r, 15) && d.Iteration > 0 {
		o.Exit = &loop.Exit{Reason: "enough"}
	}
	w.state["n"], w.state["text"], w.state["done"] = n+1, o.Fingerprint, one(r, 20)
	w.state["score"] = min(10, max(0, w.state["score"].(float64)+float64(r.IntN(9)-3)/4))
}

// loose is a plan that goes on for long.
func loose(r *rand.Rand) *loop.Plan {
	p := &loop.Plan{
		Steps: steps("a", "b", "c")[:1+r.IntN(3)], MaxIterations: 12, OnError: pick(r, loop.SkipStep, loop.NextIteration), CanExit: pick(r, nil, []string{}, []string{"a"}),
		DelayAfter: maybe(r, 4, secs(1)), Score: &loop.Score{Key: "score"}, OnRegression: pick(r, loop.KeepBest, loop.RollbackOnWorse),
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Retry = maybe(r, 4, &loop.Retry{Attempts: 3, Backoff: secs(1)})
		s.Timeout = maybe(r, 6, secs(4))
		s.Circuit = maybe(r, 6, &loop.Circuit{Failures: 2, Cooldown: secs(9)})
		s.AdaptiveTimeout = maybe(r, 6, &loop.AdaptiveTimeout{Max: secs(9), After: 3, Factor: 1})
	}
	if one(r, 2) {
		p.Steps = append(p.Steps, loop.Step{Name: "final", Finalizer: true})
	}
	if one(r, 2) {
		p.Score.Judge = &loop.Judge{Step: p.Steps[0].Name, Samples: pick(r, 1, uint(2))}
		p.Version = pick(r, 0, p.Current())
	}
	p.IterationTimeout = maybe(r, 6, secs(20))
	if one(r, 3) {
		p.Score.Baseline, p.Score.Scorers = true, []string{p.Steps[0].Name}
	}
	return p
}

// tighter is a plan that goes the same way, and stops no later.
func tighter(r *rand.Rand, p *loop.Plan) *loop.Plan {
	q := clone(p)
	for range 1 + r.IntN(3) {
		switch r.IntN(14) {
		case 0:
			q.MaxIterations = uint(1 + r.IntN(12))
		case 1:
			q.Score.Target = new(2 + 6*r.Float64())
		case 2:
			q.Score.MinDelta, q.Score.Patience = new(r.Float64()), uint(1+r.IntN(3))
		case 3:
			q.Score.MinDeltaPercent = new(9 * r.Float64())
		case 4:
			q.StopWhen, q.StopCheck = &loop.Condition{Expr: pick(r, "state.done", "state.score > 4.0", "iteration >= 7", "usage.calls > 14",
				"elapsed >= 60")}, pick(r, "", loop.EachStep)
		case 5:
			q.NoProgress = &loop.NoProgress{Repeats: uint(2 + r.IntN(2)), Keys: pick(r, nil, []string{"text"})}
		case 6:
			q.NotWorth = &loop.NotWorth{Gain: 0.3, Per: pick(r, loop.PerIteration, loop.PerMinute, loop.PerCost, loop.PerKTokens)}
			if q.Version == p.Current() && one(r, 2) {
				q.Version = q.Current()
			}
		case 7:
			q.Timeout = secs(30 + float64(r.IntN(90)))
		case 8:
			q.Budget = &loop.Budget{Calls: int64(5 + r.IntN(30))}
		case 9:
			q.Budget = &loop.Budget{Tokens: int64(500 + r.IntN(3000)), Cost: maybe(r, 2, new(r.Float64()+0.2))}
		case 10:
			q.MaxConsecutiveFailures = uint(1 + r.IntN(3))
		case 11:
			q.StateLimit = int64(50 + r.IntN(200))
		case 12:
			q.CanExit = nil
		case 13:
			q.OnError = loop.StopOnError
		}
	}
	if q.Timeout > 0 {
		q.IterationTimeout = min(q.IterationTimeout, q.Timeout)
	}
	return q
}

// other is a plan that goes its own way.
func other(r *rand.Rand, p *loop.Plan) *loop.Plan {
	q := tighter(r, p)
	s := &q.Steps[r.IntN(len(q.Steps))]
	if s.Finalizer {
		s = &q.Steps[0]
	}
	switch r.IntN(12) {
	case 0:
		s.Retry = pick(r, nil, &loop.Retry{Attempts: 2, Backoff: secs(2)})
	case 1:
		s.Timeout = pick(r, 0, secs(3), secs(5))
	case 2:
		s.Circuit = pick(r, nil, &loop.Circuit{Failures: 1, Cooldown: secs(20)})
	case 3:
		q.OnRegression = pick(r, loop.KeepBest, loop.RollbackOnWorse)
	case 4:
		q.IterationTimeout = pick(r, 0, secs(10))
	case 5:
		q.DelayBefore, s.DelayAfter = secs(3), secs(2)
	case 6:
		q.Score.LowerIsBetter = true
	case 7:
		q.QualityGate = new(3.0)
	case 8:
		q.MaxIterations = 20
	case 9:
		q.Score.Judge = &loop.Judge{Step: s.Name, Samples: pick(r, 1, uint(3))}
	case 10:
		q.CanExit = []string{}
	case 11:
		s.AdaptiveTimeout = pick(r, nil, &loop.AdaptiveTimeout{Max: secs(4)})
	}
	return q
}

func clone(p *loop.Plan) *loop.Plan {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	q := new(loop.Plan)
	if err := json.Unmarshal(b, q); err != nil {
		panic(err)
	}
	return q
}

// M18: a back-test of a recorded run is what a real run with that policy would
// have been, for every policy that stops no later: over a thousand recordings.
func TestBacktestIsWhatARealRunWouldBe(t *testing.T) {
	earlier, reasons := 0, map[loop.StopReason]int{}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := loose(r)
		recording, _ := live(t, p, seed, false)
		for range 4 {
			q := tighter(r, p)
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
			outcomes, want := live(t, q, seed, false)
			got := q.BacktestOf(p, recording)
			if got.Unknown {
				t.Fatalf("seed %d: %s\n%s\n%s, %v", seed, got.Note, asJSON(p), asJSON(q), want)
			}
			if diff := cmp.Diff(want, got.Stop); diff != "" {
				t.Fatalf("seed %d (-run +backtest):\n%s\n%s\n%s", seed, diff, asJSON(p), asJSON(q))
			}
			if len(outcomes) < len(recording) {
				earlier++
			}
			reasons[want.Reason]++
		}
	}
	t.Logf("%d of 4000 policies stopped earlier: %v", earlier, reasons)
	if earlier < 2000 || len(reasons) < 9 {
		t.Errorf("too few: %d, %v", earlier, reasons)
	}
}

// A plan that goes another way is either followed to the end or not at all.
func TestBacktestOfAnotherWay(t *testing.T) {
	known, notes := 0, map[string]int{}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 6))
		p := loose(r)
		strict := one(r, 2)
		if strict {
			p.Budget = &loop.Budget{Calls: 20}
		}
		recording, _ := live(t, p, seed, strict)
		for range 4 {
			q := other(r, p)
			if q.Budget = p.Budget; strict {
				q.Budget = &loop.Budget{Calls: pick(r, 20, int64(30))}
			}
			got := q.BacktestOf(p, recording)
			if got.Unknown {
				notes[got.Note[:min(len(got.Note), 14)]]++
				continue
			}
			known++
			if _, want := live(t, q, seed, strict); !cmp.Equal(want, got.Stop) {
				t.Fatalf("seed %d (-run +backtest):\n%s\n%s\n%s", seed, cmp.Diff(want, got.Stop), asJSON(p), asJSON(q))
			}
		}
	}
	t.Logf("%d of 4000 were followed, the others: %v", known, notes)
	if known < 1000 || known > 3500 {
		t.Errorf("%d were followed: %v", known, notes)
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
