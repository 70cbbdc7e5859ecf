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
	l := w.loopOf(a)
	var each, fin AtMost
	var after time.Duration // the longest delay behind a step
	for _, sub := range a.SubAgents {
		_, once := w.runsOf(a, sub)
		if sub.OutputKey == LoopOutput && !l.FinalizeEach {
			fin = once
			continue
		}
		one := once.often(perIteration(a, sub))
		one.Seconds += waits(a, sub)
		each = each.plus(one)
		if sub.Step != nil {
			after = max(after, sub.Step.DelayAfter)
		}
	}
	if l.IterationTimeout > 0 {
		each.Seconds = min(each.Seconds, seconds(l.IterationTimeout))
	}
	each.Seconds += told(a, hook.BeforeIteration, hook.AfterIteration) // no iteration's time
	n := w.iterations(l)
	u := each.often(n)
	if between := (l.IterationDelay + after).Seconds(); n > 1 {
		u.Seconds += Bound(between).times(n - 1)
	}
	u = u.plus(fin)
	if l.Timeout > 0 {
		u.Seconds = min(u.Seconds, seconds(l.Timeout))
	}
	return u.budgeted(l.Budget)
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
func (w *worst) iterations(l *Loop) Bound {
	if l.MaxIterations == 0 {
		return unbounded
	}
	return Bound(l.MaxIterations)
}

// runsOf is how often a loop runs one of its sub-agents, and what each time
// comes to.
func (w *worst) runsOf(a, sub *Agent) (runs Bound, once AtMost) {
	once = w.once(sub)
	if s := sub.Step; s != nil {
		if s.Adaptive != nil {
			once.Seconds = min(once.Seconds, seconds(max(s.Timeout, time.Duration(s.Adaptive.Max))))
		} else if s.Timeout > 0 {
			once.Seconds = min(once.Seconds, seconds(s.Timeout))
		}
	}
	if sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach {
		return 1, once // it is not tried again
	}
	return perIteration(a, sub).times(w.iterations(w.loopOf(a))), once
}

// perIteration is how often a step runs in one iteration: its samples, each with
// its attempts.
func perIteration(a, sub *Agent) Bound {
	n := Bound(1)
	if s := sub.Step; s != nil && s.Retry != nil {
		n = Bound(max(1, s.Retry.Attempts))
	}
	return n.times(samples(a, sub))
}

func samples(a, sub *Agent) Bound {
	if s := a.Loop.Score; s != nil && s.Judge != nil && s.Judge.Step == sub.Name {
		return Bound(max(1, s.Judge.Samples))
	}
	return 1
}

// waits is how long an iteration waits for a step: around it, between its
// attempts, and for its circuit to close.
func waits(a, sub *Agent) Bound {
	s := sub.Step
	if s == nil {
		return 0
	}
	wait := Bound((s.DelayBefore + s.DelayAfter).Seconds())
	if s.Circuit != nil {
		wait += Bound(time.Duration(s.Circuit.Cooldown).Seconds())
	}
	if s.Retry != nil {
		wait += backoffs(s.Retry, mayAsk(sub)).times(samples(a, sub))
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
