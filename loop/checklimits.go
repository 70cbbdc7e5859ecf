// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"slices"
)

// limits checks the limits of the loop and of its steps.
func (c *checker) limits(p *Plan) {
	if p.MaxIterations > math.MaxInt32 {
		c.add("max_iterations", fmt.Sprintf("max_iterations is %d", p.MaxIterations),
			fmt.Sprintf("give at most %d, or 0 for no limit", math.MaxInt32))
	}
	c.duration("timeout", p.Timeout)
	c.duration("iteration_timeout", p.IterationTimeout)
	c.duration("delay_before", p.DelayBefore)
	c.duration("delay_after", p.DelayAfter)
	if p.Timeout > 0 && p.IterationTimeout > p.Timeout {
		c.add("iteration_timeout", fmt.Sprintf("iteration_timeout %s is longer than timeout %s", p.IterationTimeout,
			p.Timeout), "an iteration could never run out of time")
	}
	if b := p.Budget; b != nil {
		if b.Calls < 0 || b.Tokens < 0 {
			c.add("budget", "budget has a negative limit", "0 sets no limit")
		}
		if c.finite("budget.cost", b.Cost) && b.Cost != nil && *b.Cost <= 0 {
			c.add("budget.cost", fmt.Sprintf("budget.cost is %v", *b.Cost), "give a positive number, or leave it out")
		}
		held := p.Held()
		if b.Calls > 0 && b.Calls <= held.Calls || b.Tokens > 0 && b.Tokens <= held.Tokens {
			c.add("budget", "budget is all kept for the finalizer", "raise it, or lower reserve")
		}
	}
	switch {
	case math.IsNaN(p.FinalizerReserve) || p.FinalizerReserve < 0 || p.FinalizerReserve >= 1:
		c.add("reserve", fmt.Sprintf("reserve is %v", p.FinalizerReserve), "give a share below 1, such as 0.1")
	case p.FinalizerReserve > 0 && p.Finalizer() < 0:
		c.add("reserve", "reserve is kept for a finalizer, but the loop has none", "")
	}
	if p.StateLimit < 0 {
		c.add("state_limit", fmt.Sprintf("state_limit is negative: %d", p.StateLimit), "")
	}
	for i := range p.Steps {
		c.stepLimits(fmt.Sprintf("steps[%d]", i), p, i)
	}
}

// stepLimits checks the delays, timeouts, retries and circuit of one step.
func (c *checker) stepLimits(field string, p *Plan, step int) {
	s, once := &p.Steps[step], step == p.Finalizer() // the finalizer runs once, after the last iteration
	c.duration(field+".timeout", s.Timeout)
	c.duration(field+".delay_before", s.DelayBefore)
	c.duration(field+".delay_after", s.DelayAfter)
	if r := s.Retry; r != nil {
		if r.Attempts == 0 {
			c.add(field+".retry.attempts", field+".retry has no attempts",
				"give how often the step runs in all, at least 2")
		}
		c.duration(field+".retry.backoff", r.Backoff)
		c.duration(field+".retry.max_backoff", r.MaxBackoff)
		if r.MaxBackoff > 0 && r.Backoff > r.MaxBackoff {
			c.add(field+".retry.max_backoff", fmt.Sprintf("%s.retry: backoff %s is above max_backoff %s", field,
				r.Backoff, r.MaxBackoff), "")
		}
		if once {
			c.add(field+".retry", "the finalizer is not run again", "leave retry out")
		}
	}
	if a := s.AdaptiveTimeout; a != nil {
		c.duration(field+".adaptive.min", a.Min)
		switch {
		case a.Max <= 0:
			c.add(field+".adaptive.max", field+".adaptive needs a max", "")
		case a.Min > a.Max:
			c.add(field+".adaptive.min", fmt.Sprintf("%s.adaptive: min %s is above max %s", field, a.Min, a.Max), "")
		}
		if a.Factor != 0 && !(a.Factor >= 1) || math.IsInf(a.Factor, 0) {
			c.add(field+".adaptive.factor", fmt.Sprintf("%s.adaptive.factor is %v", field, a.Factor), "give at least 1")
		}
		if a.After > maxTimes {
			c.add(field+".adaptive.after", fmt.Sprintf("%s.adaptive.after is %d", field, a.After),
				fmt.Sprintf("at most %d runs are remembered", maxTimes))
		}
	}
	if k := s.Circuit; k != nil {
		c.duration(field+".circuit.cooldown", k.Cooldown)
		if k.Failures == 0 {
			c.add(field+".circuit.failures", field+".circuit has no failures", "give how many running open it")
		}
		if k.Cooldown == 0 {
			c.add(field+".circuit.cooldown", field+".circuit has no cooldown",
				"give how long it stays open, such as 1m")
		}
		c.shared(field, p, step)
	}
}

// shared checks that steps with the same endpoint have the same circuit settings.
func (c *checker) shared(field string, p *Plan, step int) {
	k := p.Steps[step].Circuit
	first := p.circuit(step)
	with := p.Steps[first].Circuit
	if with.Failures != k.Failures || with.Cooldown != k.Cooldown {
		c.add(field+".circuit.endpoint",
			fmt.Sprintf("%s.circuit shares endpoint %q with step %q, but has other failures or another cooldown", field,
				k.Endpoint, p.Steps[first].Name),
			"give both the same")
	}
}

// acceptance checks the rules that accept or reject an iteration, and the conditions that end the loop because of its
// results.
func (c *checker) acceptance(p *Plan) {
	needs := func(is bool, field string) {
		if is && p.Score == nil {
			c.add(field, field+" needs a score", "say under score where it is")
		}
	}
	switch p.OnRegression {
	case "", KeepBest, RollbackOnWorse:
	default:
		c.add("on_regression", fmt.Sprintf("on_regression is %q", p.OnRegression), `use "keep_best" or "rollback"`)
	}
	needs(p.OnRegression == RollbackOnWorse, "on_regression")
	needs(p.QualityGate != nil, "quality_gate")
	c.finite("quality_gate", p.QualityGate)
	if n := p.NoProgress; n != nil {
		if n.Repeats == 1 {
			c.add("no_progress.repeats", "no_progress.repeats is 1",
				"give at least 2: every result is the same as itself")
		}
		if slices.Contains(n.Keys, "") {
			c.add("no_progress.keys", "no_progress.keys has an empty key", "")
		}
	}
	if w := p.NotWorth; w != nil {
		needs(true, "not_worth")
		if c.finite("not_worth.gain", &w.Gain) && w.Gain <= 0 {
			c.add("not_worth.gain", fmt.Sprintf("not_worth.gain is %v", w.Gain),
				"give the least gain that is worth going on for")
		}
		switch w.Per {
		case "", PerIteration, PerMinute, PerKTokens, PerCost:
		default:
			c.add("not_worth.per", fmt.Sprintf("not_worth.per is %q", w.Per),
				`use "iteration", "minute", "ktokens" or "cost"`)
		}
	}
	c.legs(p)
	if p.FinalizeEach && p.finalIndex() < 0 {
		c.add("finalize_each", "finalize_each needs a finalizer", "")
	}
	if p.Score != nil {
		c.judge(p)
	}
}

// judge checks the judge, the baseline and the dimensions of the score.
func (c *checker) judge(p *Plan) {
	s := p.Score
	if j := s.Judge; j != nil {
		var names []string
		for i := range p.Steps {
			if !p.Steps[i].Finalizer {
				names = append(names, p.Steps[i].Name)
			}
		}
		if !slices.Contains(names, j.Step) {
			c.unknown("score.judge.step", fmt.Sprintf("score.judge names %q, which is no step", j.Step), j.Step, names, "name a step of the loop")
		}
		switch most := j.Most(); {
		case most > maxSamples:
			c.add("score.judge.samples", fmt.Sprintf("score.judge.samples is %s", j.Range()),
				fmt.Sprintf("give at most %d", maxSamples))
		case j.Max > 0 && j.Max < max(1, j.Samples):
			c.add("score.judge.samples", fmt.Sprintf("score.judge.samples is %s", j.Range()), "give the smaller number first, as in 3..12")
		case j.Max > max(1, j.Samples) && s.Target == nil:
			c.add("score.judge.samples", fmt.Sprintf("score.judge.samples is %s, but the score has no target to decide about", j.Range()),
				"give score.target, or one number of samples")
		}
		c.compare(s)
	}
	if s.Baseline && len(p.BaselineSteps()) == 0 {
		c.add("score.baseline", "score.baseline has no step that gives the score", "give score.judge, or name the steps in scorers")
	}
	if len(s.Dimensions) > maxDims {
		c.add("score.dimensions", fmt.Sprintf("score has %d dimensions", len(s.Dimensions)),
			fmt.Sprintf("give at most %d", maxDims))
	}
	for i, d := range s.Dimensions {
		if d == "" || slices.Contains(s.Dimensions[:i], d) {
			c.add("score.dimensions", fmt.Sprintf("score.dimensions has %q twice, or empty", d), "")
		}
	}
	c.finite("score.dimension_target", s.DimensionTarget)
}

// compare checks a judge that compares versions.
func (c *checker) compare(s *Score) {
	j := s.Judge
	switch j.Compare {
	case "":
		return
	case CompareBest:
	default:
		c.add("score.judge.compare", fmt.Sprintf("score.judge.compare is %q", j.Compare), `use "best"`)
	}
	if j.Samples == 0 || j.Samples%2 != 0 || j.Max > 0 {
		c.add("score.judge.samples", fmt.Sprintf("score.judge.samples is %s, but a comparison is made an even number of times", j.Range()),
			"give 2 or 4, so that each version stands in each place equally often")
	}
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"lower_is_better", s.LowerIsBetter}, {"dimensions", len(s.Dimensions) > 0}, {"dimension_target", s.DimensionTarget != nil},
		{"min_delta_percent", s.MinDeltaPercent != nil}, {"holdout", s.Holdout != ""},
	} {
		if f.is {
			c.add("score."+f.name, "score."+f.name+" means nothing for a judge that compares two versions",
				"leave it out, or leave out score.judge.compare")
		}
	}
}

func (c *checker) duration(field string, d Duration) {
	if d < 0 {
		c.add(field, fmt.Sprintf("%s is negative: %s", field, d), "")
	}
}
