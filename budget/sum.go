// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"math"
)

// ReserveSum reserves cost for a program that makes many calls itself, and that is told the most that it may cost. It
// reserves no more than most; with nil it reserves all that is left, or its part of that (see [Meter.Among]), and
// needs at least half of that part. sum is the reserved amount, for the program; nil if nothing limits the cost.
//
// ReserveSum waits, as [Meter.ReserveWait] does, while only running calls leave too little. It fails with an
// [*ExceededError] if nothing is left. Commit releases the unused rest.
func (b *Meter) ReserveSum(ctx context.Context, most *float64) (room Reservation, sum *float64, err error) {
	wish := unlimited.nanos
	if most != nil {
		wish = nanos(math.Round(*most * 1e9))
	}
	room, err = b.wait(ctx, func(late bool) (Reservation, <-chan struct{}, bool, error) {
		return b.trySum(wish, most != nil, late)
	})
	if err == nil && b.costed {
		most = new(currency(room.ask.nanos))
	}
	return room, most, err
}

// trySum reserves the wished amount in billionths, or what is left of it. If the wish is not fixed, it takes a share
// of the rest. late means the rest that other calls leave now; otherwise the rest after they have ended.
func (b *Meter) trySum(wish int64, fixed, late bool) (room Reservation, changed <-chan struct{}, parked bool, err error) {
	e := everything
	if late {
		e = nothing
	}
	mu := b.lock()
	defer mu.Unlock()
	now, moving, among := unlimited.nanos, unlimited.nanos, int64(1)
	for n := b; n != nil; n = n.parent {
		ask, free := amount{calls: 1}, n.free(b.claims, e)
		if n.limit.nanos > 0 { // else only what costs nothing fits
			ask.nanos = 1
		}
		if !ask.fits(free) {
			return room, nil, false, n.exceeded(ask, free, b.claims)
		}
		if !fixed && n.limit.costed {
			free.nanos = max(ask.nanos, free.nanos/among)
		}
		wish = min(wish, free.nanos)
		now, moving = min(now, n.free(b.claims, nothing).nanos), min(moving, n.free(b.claims, moves).nanos)
		among *= max(1, n.among)
	}
	least := wish
	if !fixed { // it need not wait for all of its part
		least = (wish + 1) / 2
	}
	if now < least {
		return room, b.top().watch(), moving < least, nil
	}
	room = Reservation{budget: b, ask: amount{calls: 1}}
	if b.costed {
		room.ask.nanos = min(wish, now)
	}
	for n := b; n != nil; n = n.parent {
		n.reserved.add(room.ask)
		n.refused = amount{}
	}
	return room, nil, false, nil
}
