// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/loop"
)

// loop is one run of a loop: all its iterations, and the finalizer.
func (w *worst) loop(a *Agent) AtMost {
	p := w.planOf(a)
	var each, fin AtMost
	var after loop.Duration // the longest delay behind a step
	final := p.Finalizer()
	for i, sub := range a.SubAgents {
		_, once := w.runsOf(p, i, sub)
		if i == final {
			fin = once
			continue
		}
		one := once.often(perIteration(p, i))
		one.Seconds += waits(p, i, sub)
		each = each.plus(one)
		after = max(after, p.Steps[i].DelayAfter)
	}
	if p.IterationTimeout > 0 {
		each.Seconds = min(each.Seconds, seconds(p.IterationTimeout))
	}
	each.Seconds += told(a, hook.BeforeIteration, hook.AfterIteration) // no iteration's time
	n := iterations(p)
	u := each.often(n)
	if between := Bound(time.Duration(p.DelayAfter + after).Seconds()); n > 1 {
		u.Seconds += between.times(n - 1)
	}
	u = u.plus(fin)
	if p.Timeout > 0 {
		u.Seconds = min(u.Seconds, seconds(p.Timeout))
	}
	return u.budgeted(p.Budget)
}

// budgeted is what a budget leaves.
func (u AtMost) budgeted(b *loop.Budget) AtMost {
	if b == nil {
		return u
	}
	if b.Calls > 0 {
		u = u.atMostCalls(Bound(b.Calls))
	}
	if b.Tokens > 0 {
		u.Tokens = min(u.Tokens, Bound(b.Tokens))
	}
	if b.Cost != nil {
		u.Cost = min(u.Cost, Bound(*b.Cost))
	}
	return u
}

// iterations is how many there are at most.
func iterations(p *loop.Plan) Bound {
	if p.MaxIterations == 0 {
		return unbounded
	}
	return Bound(p.MaxIterations)
}

// runsOf is how often a loop runs one of its sub-agents, and what each time
// comes to.
func (w *worst) runsOf(p *loop.Plan, step int, sub *Agent) (runs Bound, once AtMost) {
	once = w.once(sub)
	s := &p.Steps[step]
	if s.Adaptive != nil {
		once.Seconds = min(once.Seconds, seconds(max(s.Timeout, s.Adaptive.Max)))
	} else if s.Timeout > 0 {
		once.Seconds = min(once.Seconds, seconds(s.Timeout))
	}
	if step == p.Finalizer() {
		return 1, once // it is not tried again
	}
	return perIteration(p, step).times(iterations(p)), once
}

// perIteration is how often a step runs in one iteration: its samples, each with
// its attempts.
func perIteration(p *loop.Plan, step int) Bound {
	n := Bound(1)
	if r := p.Steps[step].Retry; r != nil {
		n = Bound(max(1, r.Attempts))
	}
	return n.times(samples(p, step))
}

func samples(p *loop.Plan, step int) Bound {
	if s := p.Score; s != nil && s.Judge != nil && s.Judge.Step == p.Steps[step].Name {
		return Bound(max(1, s.Judge.Samples))
	}
	return 1
}

// waits is how long an iteration waits for a step: around it, between its
// attempts, and for its circuit to close.
func waits(p *loop.Plan, step int, sub *Agent) Bound {
	s := &p.Steps[step]
	wait := Bound(time.Duration(s.DelayBefore + s.DelayAfter).Seconds())
	if s.Circuit != nil {
		wait += Bound(time.Duration(s.Circuit.Cooldown).Seconds())
	}
	if s.Retry != nil {
		wait += backoffs(s.Retry, mayAsk(sub)).times(samples(p, step))
	}
	return wait
}

// mayAsk reports whether who fails in a step may ask to wait, as servers do.
func mayAsk(a *Agent) bool {
	switch a.Type {
	case TypeLLM, TypeHTTP, TypeFunc:
		return true
	}
	return slices.ContainsFunc(a.SubAgents, mayAsk)
}

// backoffs is how long the attempts of a step wait in all: twice as long each
// time, up to the longest, or the longest at once where that is asked for.
func backoffs(r *loop.Retry, asked bool) (sum Bound) {
	next, longest := time.Duration(r.Backoff), time.Duration(r.MaxBackoff)
	if longest == 0 {
		longest = max(time.Minute, next)
	}
	if next = min(next, longest); asked {
		next = longest
	}
	for left := int64(r.Attempts) - 1; left > 0 && next > 0; left-- {
		if next == longest {
			return sum + Bound(longest.Seconds()).times(Bound(left))
		}
		sum += Bound(next.Seconds())
		next = min(longest, 2*next)
	}
	return sum
}
