// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/json"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// A resumed run books again what its steps used: those that have ended by their end
// marks, those that go on by their answers. Branches do so side by side, or not at all
// where a sibling has failed; so all of it is booked ahead. Some use is in neither: that
// of attempts that are superseded, and of calls that were cut off. It was paid for, and
// counts where it was used: each record has what was lost directly in its run.

// usedIn returns what says what an answer in the log has used. Of one by an agent that
// is not in the tree, such as a tool, only its event tells.
func usedIn(tree *Tree, whole func(*session.Event) *session.Event,
	prices budget.Prices) func(*session.Event) budget.Usage {
	return func(ev *session.Event) budget.Usage {
		if ev.UsageMetadata == nil && ev.FinishReason == "" && ev.ModelVersion == "" {
			return budget.Usage{} // a callback's words
		}
		if ev.UsageMetadata == nil && ev.Omitted > 0 {
			ev = whole(ev) // then the length of its text tells
		}
		a, ok := tree.Find(ev.Author).(Meter)
		if ok {
			return a.Used(ev, prices)
		}
		return reported(ev, prices)
	}
}

// reported is what an event says that a model has used. If its price is not known, it
// is taken for the dearest one: a run with a limit of cost could not go on otherwise.
func reported(ev *session.Event, prices budget.Prices) budget.Usage {
	m := ev.UsageMetadata
	if m == nil || ev.Partial || ev.Mark != nil {
		return budget.Usage{}
	}
	u := budget.Usage{Calls: 1, InputTokens: int64(m.PromptTokenCount) + int64(m.ToolUsePromptTokenCount)}
	u.OutputTokens = max(int64(m.CandidatesTokenCount)+int64(m.ThoughtsTokenCount),
		int64(m.TotalTokenCount)-u.InputTokens)
	price, known := prices.Of(ev.ModelVersion)
	if !known {
		for _, p := range prices {
			price.Input, price.Output = max(price.Input, p.Input), max(price.Output, p.Output)
		}
	}
	if len(prices) > 0 {
		u.Cost = new((float64(u.InputTokens)*price.Input + float64(u.OutputTokens)*price.Output) / 1e6)
	}
	return u
}

// forget counts what an event that is superseded has used. The end of a step has all
// that its run used; what of it is counted already is taken off.
func (x *recording) forget(ev *session.Event, fin *mark.StepFinished) {
	at, used := ev.Address, x.used(ev)
	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
		used = budget.Usage{}
		if r := x.latest[at]; r != nil && (r.lost || !r.closed()) {
			used = beyond(usageOf(fin.Usage), r.used())
		}
	}
	for used != (budget.Usage{}) {
		switch r := x.latest[at]; {
		case at == "":
			x.root.wasted = x.root.wasted.Add(used)
			return
		case r == nil:
		case r.lost:
			r.wasted = r.wasted.Add(used) // its own end takes that off
		case !r.closed():
			r.wasted = r.wasted.Add(used)
			return
		}
		at = at.Parent()
	}
}

// used is all that the log shows as used in a run.
func (r *record) used() budget.Usage {
	switch {
	case r.finished != nil && r.usage != nil:
		return usageOf(r.usage)
	case r.canceled != nil:
		var fin mark.StepFinished
		if r.canceled.Mark.Decode(&fin) == nil && fin.Usage != nil {
			return usageOf(fin.Usage)
		}
	}
	return r.wasted.Add(r.left())
}

// left is what the answers and the runs in a record used.
func (r *record) left() (sum budget.Usage) {
	add := func(words []int) {
		for _, i := range words {
			if ev := r.of.events[i]; ev != nil {
				sum = sum.Add(r.of.used(ev))
			}
		}
	}
	add(r.words)
	for _, words := range r.beside {
		add(words)
	}
	for _, runs := range r.runs {
		for _, run := range runs {
			sum = sum.Add(run.used())
		}
	}
	return sum
}

// usageOf is what the end of a step says that it used.
func usageOf(usage json.RawMessage) (u budget.Usage) {
	if usage != nil {
		_ = json.Unmarshal(usage, &u)
	}
	return u
}

// beyond is how much more is in all than in a part of it.
func beyond(all, part budget.Usage) budget.Usage {
	more := all.Sub(part)
	if more.Calls <= 0 && more.Tokens() <= 0 {
		return budget.Usage{}
	}
	return more
}

// BookEarlier books into b what the run used before it was resumed. It is for an agent that
// gives its steps a budget of their own, and comes before they run. For all other agents it is
// done. A second call does nothing.
func (p Place) BookEarlier(b *budget.Meter) {
	if inv := p.inv; inv != nil && inv.record != nil {
		inv.bookEarlier(b)
	}
}

func (i *invocation) bookEarlier(b *budget.Meter) {
	r, rec := i.run.Replay, i.record
	r.mu.Lock()
	if rec.booked {
		r.mu.Unlock()
		return
	}
	rec.booked = true
	lost, again := rec.wasted, rec.left()
	r.mu.Unlock()
	if again != (budget.Usage{}) {
		b.BookAhead(again)
	}
	if lost != (budget.Usage{}) {
		b.Book(lost)
		i.run.modelCalls.Add(lost.Calls)
	}
}
