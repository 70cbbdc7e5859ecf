// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// one is true in one of n cases.
func one(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// maybe is v in one of n cases, else nothing.
func maybe[T any](r *rand.Rand, n int, v T) (none T) {
	if one(r, n) {
		return v
	}
	return none
}

func between(r *rand.Rand, from, to float64) loop.Duration {
	return secs(from + float64(r.IntN(int(to-from)+1)))
}

// randomPlan is a plan that Check accepts, with any of the fields that there are.
func randomPlan(r *rand.Rand) *loop.Plan {
	policies := []loop.ErrorPolicy{"", loop.SkipStep, loop.SkipStep, loop.NextIteration, loop.StopOnError}
	p := &loop.Plan{
		Name: maybe(r, 2, "refine"), MaxIterations: pick(r, 1, 2, 5, 9, 20, uint(0)), OnError: pick(r, policies...),
		MaxConsecutiveFailures: pick(r, 0, 0, 2, uint(3)), Timeout: maybe(r, 4, between(r, 20, 90)), IterationTimeout: maybe(r, 4, between(r, 4, 20)),
		DelayBefore: maybe(r, 6, between(r, 1, 3)), DelayAfter: maybe(r, 6, between(r, 1, 3)), StateLimit: maybe(r, 8, int64(95)),
		StopCheck: pick(r, "", loop.EachIteration, loop.EachStep),
	}
	for i := range 1 + r.IntN(4) {
		p.Steps = append(p.Steps, randomStep(r, fmt.Sprintf("s%d", i), policies))
	}
	if one(r, 3) {
		for _, i := range r.Perm(len(p.Steps)) {
			p.Order = append(p.Order, p.Steps[i].Name)
		}
	}
	if one(r, 2) {
		f := randomStep(r, "f", policies)
		f.Finalizer, f.Retry = true, nil
		at := r.IntN(len(p.Steps) + 1)
		p.Steps = append(p.Steps[:at:at], append([]loop.Step{f}, p.Steps[at:]...)...)
		if p.FinalizeEach = one(r, 4); !p.FinalizeEach {
			p.FinalizerReserve = pick(r, 0, 0.25)
		}
	}
	p.CanExit = pick(r, nil, nil, []string{}, []string{"s0"}, []string{"s1", "f"})
	if one(r, 3) {
		p.Budget = &loop.Budget{Calls: pick(r, 0, 4, 12, int64(40)), Tokens: pick(r, 0, 0, int64(2500)), Cost: pick(r, nil, nil, new(1.2))}
	}
	if p.IterationTimeout > p.Timeout && p.Timeout > 0 {
		p.IterationTimeout = p.Timeout
	}
	if one(r, 4) {
		p.NoProgress = &loop.NoProgress{Repeats: pick(r, 0, 2, uint(4)), Swings: pick(r, 0, 1, uint(2)), Keys: pick(r, nil, nil, []string{"text"})}
	}
	if one(r, 2) {
		p.StopWhen = randomCondition(r, 2)
	}
	if one(r, 3) {
		return p
	}
	randomScore(r, p)
	return p
}

func randomStep(r *rand.Rand, name string, policies []loop.ErrorPolicy) loop.Step {
	s := loop.Step{
		Name: name, OnError: pick(r, append(policies, "", "", "", "")...), Timeout: maybe(r, 5, between(r, 2, 6)),
		DelayBefore: maybe(r, 8, between(r, 1, 3)), DelayAfter: maybe(r, 8, between(r, 1, 3)),
	}
	if one(r, 4) {
		s.Retry = &loop.Retry{Attempts: pick(r, 1, 2, uint(4)), Backoff: pick(r, 0, secs(1)), MaxBackoff: pick(r, 0, secs(2))}
	}
	if one(r, 6) {
		s.AdaptiveTimeout = &loop.AdaptiveTimeout{Factor: pick(r, 0, 1.5), Min: pick(r, 0, secs(1)), Max: secs(8), After: pick(r, 0, 1, uint(3))}
	}
	switch r.IntN(12) {
	case 0, 1:
		s.Circuit = &loop.Circuit{Failures: pick(r, 1, uint(2)), Cooldown: pick(r, secs(3), secs(30))}
	case 2, 3: // one of those that steps share
		s.Circuit = pick(r, &loop.Circuit{Failures: 2, Cooldown: secs(12), Endpoint: "search"}, &loop.Circuit{Failures: 1, Cooldown: secs(5), Endpoint: "store"})
	}
	return s
}

func randomScore(r *rand.Rand, p *loop.Plan) {
	s := &loop.Score{
		Key: "score", LowerIsBetter: one(r, 3), Target: maybe(r, 3, new(9.0)), MinDelta: maybe(r, 4, new(0.2)), MinDeltaPercent: maybe(r, 4, new(3.0)),
		DimensionTarget: maybe(r, 8, new(4.0)),
	}
	if one(r, 3) {
		s.Key, s.Expr = "", "state.score"
	}
	if s.MinDelta != nil || s.MinDeltaPercent != nil {
		s.Patience = pick(r, 0, 1, uint(2))
	}
	if s.LowerIsBetter && s.Target != nil {
		s.Target = new(1.0)
	}
	if one(r, 3) {
		var names []string
		for _, step := range p.Steps {
			if !step.Finalizer {
				names = append(names, step.Name)
			}
		}
		s.Judge = &loop.Judge{Step: pick(r, names...), Samples: pick(r, 0, 1, 2, uint(3))}
		p.Version = pick(r, 0, 2, 3, uint(3))
		if s.Target != nil && one(r, 2) {
			s.Judge.Max = max(1, s.Judge.Samples) + uint(r.IntN(6))
		}
	}
	if one(r, 4) {
		s.Baseline, s.Scorers = true, []string{p.Steps[len(p.Steps)-1].Name}
		if p.Steps[len(p.Steps)-1].Finalizer {
			s.Scorers = []string{p.Steps[0].Name, p.Steps[len(p.Steps)-2].Name}
		}
		s.Baseline = s.Judge != nil || !slices.ContainsFunc(p.Steps, func(step loop.Step) bool { return step.Finalizer && slices.Contains(s.Scorers, step.Name) })
	}
	p.Score = s
	p.QualityGate = maybe(r, 5, new(5.0))
	p.BestOnExit = one(r, 3)
	p.OnRegression = pick(r, "", loop.KeepBest, loop.RollbackOnWorse, loop.RollbackOnWorse)
	if one(r, 5) {
		p.NotWorth = &loop.NotWorth{Gain: pick(r, 0.05, 0.7), Per: pick(r, "", loop.PerIteration, loop.PerMinute, loop.PerKTokens, loop.PerCost)}
		if one(r, 2) {
			p.Version = 4
		}
	}
	if s.MinDelta != nil || s.MinDeltaPercent != nil || p.NotWorth != nil {
		for range r.IntN(4) {
			p.OnPlateau = append(p.OnPlateau, pick(r, loop.Leg{Model: "other"}, loop.Leg{Fresh: true}, loop.Leg{Thinking: "high", Fresh: one(r, 2)}))
		}
	}
}

func randomCondition(r *rand.Rand, depth int) *loop.Condition {
	c := &loop.Condition{For: pick(r, 0, 0, 0, 1, uint(2))}
	some := func() (cs []loop.Condition) {
		for range 1 + r.IntN(3) {
			cs = append(cs, *randomCondition(r, depth-1))
		}
		return cs
	}
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		c.Any = some()
	case n == 1 && depth > 0:
		c.All = some()
	case n == 2 && depth > 0:
		c.Not = randomCondition(r, depth-1)
	default:
		c.Expr = pick(r, leaves...)
	}
	return c
}

// leaves are the conditions that the model understands.
var leaves = []string{"state.score > 8.0", "state.done", "iteration >= 4", "state.gone > 1", "score != null && score >= 9.0",
	"usage.calls > 12", "elapsed >= 40"}

// driver carries out decisions as a real one would, with steps that do
// anything. A strict one refuses what does not fit into the budget.
type driver struct {
	r, watched *rand.Rand
	lines      int // that differ from the base
	p          *loop.Plan
	strict     bool
	now        time.Time
	used, last loop.Usage // all, and by finalizers
	undoing    time.Duration
	reopened   int
}

func (w *driver) carryOut(d loop.Decision) loop.Outcome {
	r := w.r
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: w.now, Waited: d.Wait, StateSize: int64(r.IntN(100))}
	took := time.Duration(secs(float64(r.IntN(4))))
	if one(r, 10) {
		took = time.Duration(secs(float64(r.IntN(12))))
	}
	o.State = map[string]any{"score": randomValue(r), "done": one(r, 8), "text": pick(r, "a", "b")}
	if o.Wrote = pick(r, nil, []string{}, []string{"done"}, []string{"score"}, []string{"score", "text"}); one(r, 12) {
		delete(o.State, "score") // an earlier run has left it
	}
	w.watch(&o)
	switch {
	case d.Action == loop.Rollback || d.Action == loop.BeginLeg:
		o.RolledBack = true
		if one(r, 30) {
			o.RolledBack, o.Failure = false, &loop.Failure{Message: "no room"}
		} else if one(r, 30) {
			o.RolledBack, o.Canceled = false, "ctrl-c"
		}
		o.Finished = w.now.Add(took)
		w.undoing += took
		w.now = o.Finished
		return o
	case d.Refuse != nil:
		o.Failure, took = d.Refuse, 0
	case one(r, 80):
		o.Canceled = "ctrl-c"
		if one(r, 2) {
			o.Step = -1
			return o
		}
	default:
		w.work(&o, d, &took)
	}
	if d.Timeout > 0 {
		took = min(took, d.Timeout)
	}
	w.now = w.now.Add(d.Wait + took)
	o.Finished = w.now
	return o
}

// work is what a step leaves that has run.
func (w *driver) work(o *loop.Outcome, d loop.Decision, took *time.Duration) {
	r := w.r
	o.Fingerprint = pick(r, "", "x", "x", "y", "y", "z")
	o.Cached = one(r, 20)
	if one(r, 11) {
		o.Failure = &loop.Failure{
			Kind: pick(r, "", loop.Failed, loop.Panicked), Message: pick(r, "", "broken"), Permanent: one(r, 5),
			RetryAfter: time.Duration(pick(r, 0, 0, secs(1), secs(3), secs(90))),
		}
	}
	if one(r, 20) {
		o.Exit = &loop.Exit{Status: pick(r, "", "", "blocked", "impossible"), Escalated: one(r, 3), Score: maybe(r, 3, new(float64(r.IntN(10))))}
	}
	if d.Timeout > 0 && *took > d.Timeout {
		*took, o.Exit = d.Timeout, nil
		o.Failure = &loop.Failure{Kind: d.TimeoutKind, Message: pick(r, "", "out of time")}
	}
	u := loop.Usage{Calls: int64(r.IntN(3)), InputTokens: int64(r.IntN(90)), OutputTokens: int64(r.IntN(10))}
	if u.Calls == 0 {
		u.InputTokens, u.OutputTokens = 0, 0
	} else if !one(r, 20) {
		u.Cost = new(float64(r.IntN(20)) / 100)
	}
	if w.strict && !w.fits(u, d.Action == loop.Finalize) {
		o.Failure, o.Exit = &loop.Failure{Kind: loop.BudgetSpent, Message: pick(r, "", "it does not fit")}, nil
		return
	}
	o.Usage = u
	w.used = sum(w.used, u)
	if d.Action == loop.Finalize {
		w.last = sum(w.last, u)
	}
}

func sum(a, b loop.Usage) loop.Usage {
	s := loop.Usage{Calls: a.Calls + b.Calls, InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens, Cost: new(0.0)}
	for _, u := range []loop.Usage{a, b} {
		if u.Cost != nil {
			*s.Cost += *u.Cost
		}
	}
	return s
}

// fits reports whether a call fits into what is left for it.
func (w *driver) fits(u loop.Usage, final bool) bool {
	b := w.p.Budget
	if b == nil {
		return true
	}
	held := w.p.Reserved()
	if final {
		held = loop.Budget{}
	}
	if held.Cost == nil {
		held.Cost = new(0.0)
	}
	all := sum(w.used, u)
	return (b.Calls == 0 || all.Calls <= b.Calls-held.Calls) &&
		(b.Tokens == 0 || all.InputTokens+all.OutputTokens <= b.Tokens-held.Tokens) &&
		(b.Cost == nil || math.Round(*all.Cost*1e6) <= math.Round((*b.Cost-*held.Cost)*1e6))
}

// watch adds values of what a plan watches.
func (w *driver) watch(o *loop.Outcome) {
	r := w.watched
	if w.p.Watch == nil {
		return
	}
	w.lines += r.IntN(9) - 1
	o.State["tests"] = pick[any](r, "none", nil, map[string]any{"total": "two"},
		map[string]any{"total": 1 + r.IntN(3), "skipped": float64(r.IntN(2)), "broken": r.IntN(6) / 5})
	if o.State["files"] = "none"; !one(r, 9) {
		o.State["files"] = map[string]any{"lines": w.lines, "protected": pick(r, "", "", "a_test.go")}
	}
	o.State["hidden"] = pick[any](r, "none", float64(r.IntN(10)), float64(r.IntN(10)))
	if o.Wrote != nil {
		o.Wrote = append(o.Wrote, pick(r, nil, []string{"tests"}, []string{"hidden", "files", "tests"})...)
	}
}

func randomValue(r *rand.Rand) any {
	f := float64(r.IntN(20)) / 2
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf(`{"score": %g, "dimensions": {"a": %d, "b": 5}}`, f, r.IntN(9))
	case 1:
		return map[string]any{"score": f, "dimensions": map[string]any{"a": r.IntN(9)}}
	case 2:
		return pick[any](r, "none", nil, "8.5/10", math.NaN(), math.Inf(1))
	}
	return f
}
