// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/json"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// A resumed run books the usage of its earlier part again. The usage of a step that has ended is
// in the mark of its end, and that of a step that continues is in its answers. Parallel branches
// book at the same time, and a branch may book nothing because another one has failed. So all of
// this usage is booked ahead. Other usage is in neither place: that of superseded attempts, and of
// calls that were cut off. It was paid for, so it counts where it was used: see runUsage.unaccounted.

// usageReader returns a function that computes the usage of a logged answer. If the author is no agent of the tree,
// for example because a tool ran it, the usage comes from the event alone.
func usageReader(tree *Tree, whole func(*session.Event) *session.Event,
	prices budget.Prices) func(*session.Event) budget.Usage {
	return func(ev *session.Event) budget.Usage {
		if !Answers(ev) {
			return budget.Usage{} // a callback has made it
		}
		if ev.UsageMetadata == nil && ev.Omitted > 0 {
			ev = whole(ev) // the length of its text gives the usage
		}
		a, ok := tree.Find(ev.Author).(UsageReader)
		if ok {
			return a.Used(ev, prices)
		}
		return reportedUsage(ev, prices)
	}
}

// Answers reports whether an event can be an answer of a model, and not that of a callback in the model's place.
func Answers(ev *session.Event) bool {
	return ev.UsageMetadata != nil || ev.FinishReason != "" || ev.ModelVersion != ""
}

// reportedUsage returns the usage that an event reports of a model. If the model has no known price, the highest
// price counts, because otherwise a run with a cost limit could not continue.
func reportedUsage(ev *session.Event, prices budget.Prices) budget.Usage {
	if ev.UsageMetadata == nil || ev.Partial || ev.Mark != nil {
		return budget.Usage{}
	}
	u := model.Used(ev.UsageMetadata)
	u.Calls = 1
	if u = prices.Priced(ev.ModelVersion, u); u.Cost == nil && len(prices) > 0 {
		var most budget.Price
		for _, p := range prices {
			most.Input, most.Output = max(most.Input, p.MostInput(u.CacheWriteTokens+u.CacheWrite1hTokens > 0)),
				max(most.Output, p.Output)
		}
		u.Cost = new(most.Cost(budget.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens}))
	}
	return u
}

// addSuperseded counts the usage of a superseded event. The mark at the end of a step has the usage of its whole run,
// so the part that was counted before is subtracted.
func (x *replayLog) addSuperseded(ev *session.Event, fin *mark.StepFinished) {
	at, used := ev.Address, x.usageOf(ev)
	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
		used = budget.Usage{}
		if r := x.lastRun[at]; r != nil && (r.end == superseded || !r.isClosed()) {
			used = usageMinus(decodeUsage(fin.Usage), r.totalUsage())
			if r.end == superseded {
				r.to = int32(x.events.n)
			}
		}
	}
	x.addUnaccountedAt(at, used)
}

// addUnaccountedAt counts usage at an address that is in no entry of the log. It counts in the run at the address, or
// else in the nearest run around it.
func (x *replayLog) addUnaccountedAt(at session.Address, used budget.Usage) {
	for used != (budget.Usage{}) {
		switch r := x.lastRun[at]; {
		case at == "":
			x.root.addUnaccounted(used)
			return
		case r == nil:
		case r.end == superseded:
			r.addUnaccounted(used) // the mark of its end subtracts it again
		case !r.isClosed():
			r.addUnaccounted(used)
			return
		}
		at = at.Parent()
	}
}

// addEarlierInterruptions counts the usage of runs that an earlier resumption has superseded because they were cut
// off, and for which the log has no usage. If a superseded run around them has the mark of its end, that mark has
// their usage already.
func (x *replayLog) addEarlierInterruptions(tree *Tree) {
	for _, r := range x.superseded {
		s, ok := tree.Find(r.address.Agent()).(UsageReader)
		if !ok || r.usage != nil || r.to > r.from {
			continue
		}
		around := r.parent
		for around.end == superseded && around.to == around.from {
			around = around.parent
		}
		if around.end != superseded {
			around.addUnaccounted(s.InterruptedUsage())
		}
	}
	x.superseded = nil
}

// addUnaccounted adds usage that is in no entry of the run.
func (r *stepRun) addUnaccounted(used budget.Usage) {
	if used != (budget.Usage{}) {
		s := r.markUsage()
		s.unaccounted = s.unaccounted.Add(used)
	}
}

// totalUsage returns the usage of a whole run, as the log records it.
func (r *stepRun) totalUsage() budget.Usage {
	switch {
	case r.usage == nil:
		return budget.Usage{}
	case r.usage.reported != nil && (r.end == finished || r.end == canceled):
		return *r.usage.reported
	}
	return r.usage.unaccounted.Add(r.entriesUsage())
}

// entriesUsage returns the usage of the answers and of the inner runs that were not consumed.
func (r *stepRun) entriesUsage() (sum budget.Usage) {
	if r.usage == nil || r.entries == nil {
		return sum
	}
	for _, w := range r.list[r.firstLeft:] {
		switch {
		case w.consumed:
		case w.run != nil && w.run.usage != nil:
			sum = sum.Add(w.run.totalUsage())
		case w.hasUsage && r.log.events.at(w.event).owner != nil:
			sum = sum.Add(r.log.usageOf(r.log.readEvent(r.log.events.at(w.event).seq)))
		}
	}
	return sum
}

// decodeUsage returns the usage that the mark at the end of a step records.
func decodeUsage(usage json.RawMessage) (u budget.Usage) {
	if usage != nil {
		_ = json.Unmarshal(usage, &u)
	}
	return u
}

// usageMinus returns the usage in all that is not in part.
func usageMinus(all, part budget.Usage) budget.Usage {
	more := all.Sub(part)
	if more.Calls <= 0 && more.Tokens() <= 0 {
		return budget.Usage{}
	}
	return more
}

// ChargeReplayed books into b what the run used before it was resumed. An agent that gives its
// steps their own budget calls it before they run. Other agents need not call it. A second call
// does nothing.
func (p Place) ChargeReplayed(b *budget.Meter) {
	if inv := p.inv; inv != nil && inv.logged != nil {
		inv.chargeReplayed(b)
	}
}

// chargeReplayed does what ChargeReplayed does, for a step whose run the log has.
func (i *invocation) chargeReplayed(b *budget.Meter) {
	r, rec := i.run.Replay, i.logged
	r.mu.Lock()
	if rec.usage == nil || rec.usage.charged {
		r.mu.Unlock()
		return
	}
	rec.usage.charged = true
	lost, again := rec.usage.unaccounted, rec.entriesUsage()
	r.mu.Unlock()
	if again != (budget.Usage{}) {
		b.BookAhead(again)
	}
	if lost != (budget.Usage{}) {
		b.Book(lost)
		i.run.modelCalls.Add(lost.Calls)
	}
}
