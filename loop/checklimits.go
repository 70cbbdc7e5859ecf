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
		c.about("max_iterations", fmt.Sprintf("is %d", p.MaxIterations),
			fmt.Sprintf("give at most %d, or 0 for no limit", math.MaxInt32))
	}
	c.duration("timeout", p.Timeout)
	c.duration("iteration_timeout", p.IterationTimeout)
	c.duration("delay_before", p.DelayBefore)
	c.duration("delay_after", p.DelayAfter)
	if p.Timeout > 0 && p.IterationTimeout > p.Timeout {
		c.about("iteration_timeout", fmt.Sprintf("%s is longer than timeout %s", p.IterationTimeout,
			p.Timeout), "an iteration could never run out of time")
	}
	if b := p.Budget; b != nil {
		if b.Calls < 0 || b.Tokens < 0 {
			c.about("budget", "has a negative limit", "0 sets no limit")
		}
		if c.finite("budget.cost", b.Cost) && b.Cost != nil && *b.Cost <= 0 {
			c.about("budget.cost", fmt.Sprintf("is %v", *b.Cost), "give a positive number, or leave it out")
		}
		held := p.Reserved()
		if b.Calls > 0 && b.Calls <= held.Calls || b.Tokens > 0 && b.Tokens <= held.Tokens {
			c.about("budget", "is all kept for the finalizer", "raise it, or keep a smaller share of it for the finalizer")
		}
	}
	switch {
	case math.IsNaN(p.FinalizerReserve) || p.FinalizerReserve < 0 || p.FinalizerReserve >= 1:
		c.about("reserve", fmt.Sprintf("is %v", p.FinalizerReserve), "give a share below 1, such as 0.1")
	case p.FinalizerReserve > 0 && p.Finalizer() < 0:
		c.about("reserve", "is kept for a finalizer, but the loop has none", "")
	}
	if p.StateLimit < 0 {
		c.about("state_limit", fmt.Sprintf("is negative: %d", p.StateLimit), "")
	}
	for i := range p.Steps {
		c.step = i + 1
		c.stepLimits(p, i)
	}
	c.step = 0
}

// stepLimits checks the delays, timeouts, retries and circuit of one step.
func (c *checker) stepLimits(p *Plan, step int) {
	s, once := &p.Steps[step], step == p.Finalizer() // the finalizer runs once, after the last iteration
	c.duration("timeout", s.Timeout)
	c.duration("delay_before", s.DelayBefore)
	c.duration("delay_after", s.DelayAfter)
	if r := s.Retry; r != nil {
		if r.Attempts == 0 {
			c.part("retry.attempts", "retry", "has no attempts",
				"give how often the step runs in all, at least 2")
		}
		c.duration("retry.backoff", r.Backoff)
		c.duration("retry.max_backoff", r.MaxBackoff)
		if r.MaxBackoff > 0 && r.Backoff > r.MaxBackoff {
			c.part("retry.max_backoff", "retry.backoff", fmt.Sprintf("%s is above max_backoff %s", r.Backoff, r.MaxBackoff), "")
		}
		if once {
			c.add("retry", "the finalizer is not run again", "leave retry out")
		}
	}
	if a := s.AdaptiveTimeout; a != nil {
		c.duration("adaptive.min", a.Min)
		switch {
		case a.Max <= 0:
			c.part("adaptive.max", "adaptive", "needs a max", "")
		case a.Min > a.Max:
			c.about("adaptive.min", fmt.Sprintf("%s is above max %s", a.Min, a.Max), "")
		}
		if a.Factor != 0 && !(a.Factor >= 1) || math.IsInf(a.Factor, 0) {
			c.about("adaptive.factor", fmt.Sprintf("is %v", a.Factor), "give at least 1")
		}
		if a.After > maxTimes {
			c.about("adaptive.after", fmt.Sprintf("is %d", a.After),
				fmt.Sprintf("at most %d runs are remembered", maxTimes))
		}
	}
	if k := s.Circuit; k != nil {
		c.duration("circuit.cooldown", k.Cooldown)
		if k.Failures == 0 {
			c.part("circuit.failures", "circuit", "has no failures", "give how many running open it")
		}
		if k.Cooldown == 0 {
			c.part("circuit.cooldown", "circuit", "has no cooldown",
				"give how long it stays open, such as 1m")
		}
		c.shared(p, step)
	}
}

// shared checks that steps with the same endpoint have the same circuit settings.
func (c *checker) shared(p *Plan, step int) {
	k := p.Steps[step].Circuit
	first := p.circuit(step)
	with := p.Steps[first].Circuit
	if with.Failures != k.Failures || with.Cooldown != k.Cooldown {
		c.part("circuit.endpoint", "circuit",
			fmt.Sprintf("shares endpoint %q with step %q, but has other failures or another cooldown", k.Endpoint, p.Steps[first].Name),
			"give both the same")
	}
}

// acceptance checks the rules that accept or reject an iteration, and the conditions that end the loop because of its
// results.
func (c *checker) acceptance(p *Plan) {
	needs := func(is bool, field string) {
		if is && p.Score == nil {
			c.about(field, "needs a score", "say under score where it is")
		}
	}
	switch p.OnRegression {
	case "", KeepBest, RollbackOnWorse:
	default:
		c.about("on_regression", fmt.Sprintf("is %q", p.OnRegression), `use "keep_best" or "rollback"`)
	}
	needs(p.OnRegression == RollbackOnWorse, "on_regression")
	needs(p.QualityGate != nil, "quality_gate")
	c.finite("quality_gate", p.QualityGate)
	if n := p.NoProgress; n != nil {
		if n.Repeats == 1 {
			c.about("no_progress.repeats", "is 1",
				"give at least 2: every result is the same as itself")
		}
		if slices.Contains(n.Keys, "") {
			c.about("no_progress.keys", "has an empty key", "")
		}
	}
	if w := p.NotWorth; w != nil {
		needs(true, "not_worth")
		if c.finite("not_worth.gain", &w.Gain) && w.Gain <= 0 {
			c.about("not_worth.gain", fmt.Sprintf("is %v", w.Gain),
				"give the least gain that is worth going on for")
		}
		switch w.Per {
		case "", PerIteration, PerMinute, PerKTokens, PerCost:
		default:
			c.about("not_worth.per", fmt.Sprintf("is %q", w.Per),
				`use "iteration", "minute", "ktokens" or "cost"`)
		}
	}
	c.legs(p)
	if p.FinalizeEach && p.finalIndex() < 0 {
		c.about("finalize_each", "needs a finalizer", "")
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
			c.reportUnknown("score.judge.step", "score.judge", fmt.Sprintf("names %q, which is no step", j.Step), j.Step, names, "name a step of the loop")
		}
		switch most := j.Most(); {
		case most > maxSamples:
			c.about("score.judge.samples", fmt.Sprintf("is %s", j.Range()),
				fmt.Sprintf("give at most %d", maxSamples))
		case j.Max > 0 && j.Max < max(1, j.Samples):
			c.about("score.judge.samples", fmt.Sprintf("is %s", j.Range()), "give the smaller number first, as in 3..12")
		case j.Max > max(1, j.Samples) && s.Target == nil:
			c.about("score.judge.samples", fmt.Sprintf("is %s, but the score has no target to decide about", j.Range()),
				"give score.target, or one number of samples")
		}
		c.compare(s)
	}
	if s.Baseline && len(p.BaselineSteps()) == 0 {
		c.about("score.baseline", "has no step that gives the score", "give score.judge, or name the steps in scorers")
	}
	if len(s.Dimensions) > maxDims {
		c.part("score.dimensions", "score", fmt.Sprintf("has %d dimensions", len(s.Dimensions)),
			fmt.Sprintf("give at most %d", maxDims))
	}
	for i, d := range s.Dimensions {
		if d == "" || slices.Contains(s.Dimensions[:i], d) {
			c.about("score.dimensions", fmt.Sprintf("has %q twice, or empty", d), "")
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
		c.about("score.judge.compare", fmt.Sprintf("is %q", j.Compare), `use "best"`)
	}
	if j.Samples == 0 || j.Samples%2 != 0 || j.Max > 0 {
		c.about("score.judge.samples", fmt.Sprintf("is %s, but a comparison is made an even number of times", j.Range()),
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
			c.about("score."+f.name, "means nothing for a judge that compares two versions",
				"leave it out, or leave out score.judge.compare")
		}
	}
}

func (c *checker) duration(field string, d Duration) {
	if d < 0 {
		c.about(field, fmt.Sprintf("is negative: %s", d), "")
	}
}
