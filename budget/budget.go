// SPDX-License-Identifier: Apache-2.0

// Package budget limits the number of model calls, their tokens and their cost. A call is reserved
// before it is made, and its usage is booked after it.
//
//	run := budget.New(budget.Limits{Tokens: 100_000, Cost: new(2.0)}, prices)
//	loop := run.Child(budget.Limits{Calls: 20})
//	call, err := loop.Reserve(budget.Request{Model: "claude-x", InputTokens: 900, OutputTokens: 4096})
//	if err != nil {
//		return err // it does not fit in the loop's budget, or in the run's
//	}
//	defer call.Release()
//	…
//	call.Commit(budget.Usage{InputTokens: 812, OutputTokens: 95})
//
// Budgets form a tree: the usage of a child counts in every budget above it, and a call has to fit
// in each of them. Reserve never waits. ReserveWait waits while only calls that are running leave
// too little room.
//
// Costs are counted in billionths of the price list's currency, so that no rounding error remains.
package budget

import (
	"math"
	"sync"
)

// Meter counts the usage of model calls, and enforces its limits. The zero value has no limits and
// no prices. A Meter is safe for concurrent use and must not be copied.
type Meter struct {
	parent  *Meter
	root    *Meter // nil for the root itself
	depth   int    // of the root: 0
	name    string
	prices  Prices
	limit   limit
	metered bool  // tokens or cost are limited here or above
	costed  bool  // cost is, here or above
	claims  *Hold // what is kept for this budget, here and above
	among   int64 // how many parts of the work above share what is left there; 0 is one

	mu sync.Mutex // the root's guards what follows in the whole tree

	runs     map[string]*Meter // by ID; nil if b is shared by no runs
	used     usage
	ahead    usage // of what is used: what will be booked again
	reserved amount
	parked   amount // of what is reserved
	held     amount
	refused  amount        // the last call that did not fit here, if none has since
	changed  chan struct{} // the root's: closed when there may be more room; nil if nobody waits
}

// New returns the root of a tree of budgets. The price list must not change while the budgets are
// in use.
func New(l Limits, p Prices) *Meter {
	b := &Meter{limit: l.limit(), prices: p}
	b.costed = b.limit.costed
	b.metered = b.limit.costed || b.limit.tokens != 0
	return b
}

// Child returns a budget below b. Its limits may be higher than those of b, because a call has to
// fit in both. A budget has no references to its children, so an unused child is garbage collected;
// its usage stays counted in b.
func (b *Meter) Child(l Limits) *Meter {
	c := New(l, nil)
	c.parent, c.root, c.depth, c.claims = b, b.top(), b.depth+1, b.claims
	c.metered = c.metered || b.metered
	c.costed = c.costed || b.costed
	return c
}

// Run returns the budget below b of the run with an ID. For one ID it is always the same, so that b counts a run once
// that is resumed in this process. b keeps it.
func (b *Meter) Run(id string) *Meter {
	c := b.Child(Limits{})
	mu := b.lock()
	defer mu.Unlock()
	if known := b.runs[id]; known != nil {
		return known
	}
	if b.runs == nil {
		b.runs = make(map[string]*Meter)
	}
	b.runs[id] = c
	return c
}

// Prices returns the price list of the tree of budgets.
func (b *Meter) Prices() Prices { return b.top().prices }

// Named sets the name of b in errors, such as a loop's name, and returns b. Call it before the
// budget is used.
func (b *Meter) Named(name string) *Meter {
	b.name = name
	return b
}

// Among says that b is for one of n parts of the work that run at the same time, and returns b. A [Meter.ReserveSum]
// without a limit then takes an nth of the amount left above b. Call it before the budget is used.
func (b *Meter) Among(n int) *Meter {
	b.among = int64(n)
	return b
}

// Metered reports whether b or a budget above it limits tokens or cost. If not, a request needs no
// estimates.
func (b *Meter) Metered() bool { return b.metered }

// Used returns the usage booked in b and in the budgets below it.
func (b *Meter) Used() Usage {
	mu := b.lock()
	defer mu.Unlock()
	return b.used.public()
}

// Book counts usage without a reservation, such as that of an earlier part of the run, even if it
// exceeds a limit. A Usage without Cost has an unknown cost, unless it is zero. A budget that
// booked this usage in advance by BookAhead does not count it again, and neither do the budgets
// above it.
func (b *Meter) Book(u Usage) {
	mu := b.lock()
	defer mu.Unlock()
	b.book(u.internal(Price{}, false), false)
}

// BookAhead books usage that will be booked again, part by part, in the budgets below. A resumed
// run uses it, so that all of its log is counted before the first new call.
func (b *Meter) BookAhead(u Usage) {
	mu := b.lock()
	defer mu.Unlock()
	b.book(u.internal(Price{}, false), true)
}

// EndAhead ends what BookAhead began. Usage that b has booked in advance, and that was not booked again so far, will be
// booked in other budgets below the parent of b, which must not count it again. A budget without a parent is not changed.
func (b *Meter) EndAhead() {
	mu := b.lock()
	defer mu.Unlock()
	if b.parent != nil {
		b.parent.ahead.add(b.ahead)
		b.ahead = usage{}
	}
}

// Recount says that usage of an earlier part of the run will be booked in the budgets below. Of that b, and the budgets
// above it, do not count again what b has counted before.
func (b *Meter) Recount(u Usage) {
	again := u.internal(Price{}, false)
	mu := b.lock()
	defer mu.Unlock()
	known := b.used
	again.sub(known.less(again))
	b.ahead = again
}

// book counts in b and above. The root's mu is held.
func (b *Meter) book(add usage, ahead bool) {
	n := b
	if ahead { // b itself has not booked it yet
		n.used.add(add)
		n.ahead.add(add)
		n = n.parent
	}
	for ; n != nil; n = n.parent {
		add = n.ahead.less(add)
		n.used.add(add)
	}
}

// Remaining is the usage that one more call may have in b and in every budget above it, after
// reservations and holds. nil means no limit.
type Remaining struct {
	Calls  *int64   `json:"calls,omitzero"`
	Tokens *int64   `json:"tokens,omitzero"`
	Cost   *float64 `json:"cost,omitzero"`
}

// Remaining returns the usage that is left.
func (b *Meter) Remaining() Remaining {
	left := unlimited
	mu := b.lock()
	for n := b; n != nil; n = n.parent {
		f := n.free(b.claims, nothing)
		left = amount{min(left.calls, f.calls), min(left.tokens, f.tokens), min(left.nanos, f.nanos)}
	}
	mu.Unlock()
	var r Remaining
	if left.calls != unlimited.calls {
		r.Calls = new(left.calls)
	}
	if left.tokens != unlimited.tokens {
		r.Tokens = new(left.tokens)
	}
	if left.nanos != unlimited.nanos {
		r.Cost = new(currency(left.nanos))
	}
	return r
}

// Err returns nil while b and the budgets above it will have room for another call after the running ones: for a call
// of the smallest size, and for one like the last refused call. Otherwise it returns the [*ExceededError] of such a
// call. Use it before work that will make calls.
func (b *Meter) Err() error {
	mu := b.lock()
	defer mu.Unlock()
	for n := b; n != nil; n = n.parent {
		ask := amount{calls: 1, tokens: 1, nanos: 1}
		if n.limit.nanos <= 0 {
			ask.nanos = 0 // free calls still fit
		}
		free := n.free(b.claims, everything)
		for _, ask := range [...]amount{ask, n.refused} {
			if !ask.fits(free) {
				return n.exceeded(ask, free, b.claims)
			}
		}
	}
	return nil
}

func (b *Meter) top() *Meter {
	if b.root != nil {
		return b.root
	}
	return b
}

func (b *Meter) lock() *sync.Mutex {
	mu := &b.top().mu
	mu.Lock()
	return mu
}

// free returns the amount that is neither used, nor reserved, nor held for others than the claims,
// when calls have ended. Without a limit it is [unlimited]'s.
func (b *Meter) free(claims *Hold, e ending) amount {
	f := unlimited
	if b.limit == (limit{}) {
		return f
	}
	mine := claims.at(b)
	mine.add(b.ends(e))
	if l := b.limit.calls; l != 0 {
		f.calls = max(0, l-b.used.calls-b.reserved.calls-b.held.calls+mine.calls)
	}
	if l := b.limit.tokens; l != 0 {
		f.tokens = max(0, l-b.used.input-b.used.output-b.reserved.tokens-b.held.tokens+mine.tokens)
	}
	if b.limit.costed {
		f.nanos = max(0, b.limit.nanos-b.used.nanos-b.reserved.nanos-b.held.nanos+mine.nanos)
	}
	return f
}

// amount is an amount that limits apply to.
type amount struct{ calls, tokens, nanos int64 }

var unlimited = amount{math.MaxInt64, math.MaxInt64, math.MaxInt64}

func (a amount) fits(free amount) bool {
	return a.calls <= free.calls && a.tokens <= free.tokens && a.nanos <= free.nanos
}

func (a *amount) add(b amount) {
	a.calls += b.calls
	a.tokens += b.tokens
	a.nanos += b.nanos
}

func (a *amount) sub(b amount) {
	a.calls -= b.calls
	a.tokens -= b.tokens
	a.nanos -= b.nanos
}
