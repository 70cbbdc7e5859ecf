// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"time"
)

// patience limits how long a call waits if only parked calls are in its way. It is longer than the
// storing of an event takes.
const patience = 10 * time.Second

// ReserveWait reserves as [Meter.Reserve] does, but waits for running calls to end if the call
// would fit without them, or until ctx ends. It reduces the output only if the budget would not
// have room for all of it even then. Errors are those of Reserve, and the context's cause.
func (b *Meter) ReserveWait(ctx context.Context, r Request) (Reservation, error) {
	w, err := b.want(r)
	if err != nil {
		return Reservation{}, err
	}
	return b.wait(ctx, func(late bool) (Reservation, <-chan struct{}, bool, error) {
		if late {
			room, err := b.Reserve(r)
			return room, nil, false, err
		}
		return w.try(b)
	})
}

// wait calls try until it returns no channel: again when the channel is closed, and for the last time, with late set,
// when only parked calls have been in the way for too long.
func (b *Meter) wait(ctx context.Context, try func(late bool) (Reservation, <-chan struct{}, bool, error)) (Reservation, error) {
	var late <-chan time.Time
	for {
		room, changed, parked, err := try(false)
		if changed == nil {
			return room, err
		}
		if !parked {
			late = nil
		} else if late == nil {
			t := time.NewTimer(patience)
			defer t.Stop()
			late = t.C
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Reservation{}, context.Cause(ctx)
		case <-late:
			room, _, _, err := try(true)
			return room, err
		}
	}
}

// try reserves, or returns a channel that is closed when it may be tried again.
// Parked says that only calls that are parked are in the way.
func (w *claim) try(b *Meter) (room Reservation, changed <-chan struct{}, parked bool, err error) {
	mu := b.lock()
	defer mu.Unlock()
	alone, now := *w, *w
	if err := alone.fits(b, everything); err != nil {
		return Reservation{}, nil, false, err
	}
	if now.fits(b, nothing) == nil && now.out >= alone.out {
		return now.take(b), nil, false, nil
	}
	moving := *w
	return Reservation{}, b.top().watch(), moving.fits(b, moves) != nil || moving.out < alone.out, nil
}

// watch returns a channel that the next change closes if it makes room. The root's mu is held.
func (b *Meter) watch() <-chan struct{} {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// wake makes waiting calls check again. The caller holds the root's mu.
func (b *Meter) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// ending says which running calls count as ended.
type ending int

const (
	nothing    ending = iota // none
	moves                    // those that are not parked
	everything               // all
)

// ends returns the amount that calls give back when they end. The calls themselves stay counted.
func (b *Meter) ends(e ending) (a amount) {
	switch e {
	case everything:
		a = b.reserved
	case moves:
		a = b.reserved
		a.sub(b.parked)
	}
	a.calls = 0
	return a
}

// claim is a request that is checked against the budgets.
type claim struct {
	in, out, least int64
	price          Price
	reserved       Price // of which the reservation is made
	priced         bool
}

// want prices a request.
func (b *Meter) want(r Request) (claim, error) {
	w := claim{in: count(r.InputTokens), out: count(r.OutputTokens)}
	if w.price, w.priced = b.top().prices.Of(r.Model); b.costed && !w.priced {
		return w, &UnknownPriceError{Model: r.Model}
	}
	w.reserved = w.price.reserved(r, w.in)
	w.least = w.out
	if r.MinOutputTokens > 0 {
		w.least = min(w.out, r.MinOutputTokens)
	}
	return w, nil
}

// need returns the least amount that the call needs.
func (w *claim) need() amount {
	return amount{calls: 1, tokens: w.in + w.least, nanos: w.reserved.atMost(w.in, w.least)}
}

// fits reduces the output to the room in b and all budgets above it, and fails if one has no room
// for the least output. The caller holds the root's mu.
func (w *claim) fits(b *Meter, e ending) error {
	need, out := w.need(), w.out
	for n := b; n != nil; n = n.parent {
		if n.limit.costed && n.used.unpriced > 0 { // by Book
			return &UnknownPriceError{}
		}
		free := n.free(b.claims, e)
		if !need.fits(free) {
			if !need.fits(n.free(b.claims, everything)) {
				n.refused = need
			}
			return n.exceeded(need, free, b.claims)
		}
		out = w.within(n, free, out)
	}
	w.out = max(out, w.least)
	return nil
}

// within returns how much of the output fits into the free amount of a budget.
func (w *claim) within(n *Meter, free amount, out int64) int64 {
	out = min(out, free.tokens-w.in)
	if n.limit.costed {
		out = min(out, w.reserved.affords(w.in, out, free.nanos))
	}
	return out
}

// take reserves the part that fits. The root's mu is held.
func (w *claim) take(b *Meter) Reservation {
	ask := amount{calls: 1, tokens: w.in + w.out, nanos: w.reserved.atMost(w.in, w.out)}
	most := count(1 << 62)
	for n := b; n != nil; n = n.parent {
		most = w.within(n, n.free(b.claims, nothing), most)
		n.reserved.add(ask)
		n.refused = amount{}
	}
	return Reservation{
		InputTokens: w.in, OutputTokens: w.out, MaxOutputTokens: max(most, w.out),
		budget: b, ask: ask, price: w.price, priced: w.priced,
	}
}
