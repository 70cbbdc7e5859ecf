// SPDX-License-Identifier: Apache-2.0

package budget

// Request is a call of a model that is to be made.
type Request struct {
	// Model is the name to look for in the price list; see [Prices.Of].
	Model string
	// InputTokens and OutputTokens are what the call is expected to use: an
	// estimate from earlier calls, rather than the most that is possible. Where a
	// budget is not [Budget.Metered] they may be left out.
	InputTokens, OutputTokens int64
	// MinOutputTokens is what the output may be cut down to where the budget has no
	// room for all of it; 0 never cuts it.
	MinOutputTokens int64
}

// Reservation is room for one call. It is a value, so that it needs no memory
// of its own; it must not be copied. Whoever has one calls Commit or Release. Its
// methods are for one goroutine at a time.
type Reservation struct {
	// InputTokens and OutputTokens are reserved. OutputTokens may be less than was
	// asked for, if the request allowed that.
	InputTokens, OutputTokens int64
	// MaxOutputTokens is how long the answer could be without exceeding a budget,
	// with what other calls have reserved taken off.
	MaxOutputTokens int64

	budget  *Budget // nil when it is over
	ask     amount  // what is reserved; nothing once it is settled
	settled usage   // what is booked until Commit says better
	parked  bool
	price   Price
	priced  bool
}

// Reserve makes room for a call in b and in each budget above it, or in none of
// them. It never waits. It fails with an [*ExceededError] if the call does not fit
// in one, and with an [*UnknownPriceError] if one limits cost and the model has no
// price.
func (b *Budget) Reserve(r Request) (Reservation, error) {
	w, err := b.want(r)
	if err != nil {
		return Reservation{}, err
	}
	mu := b.lock()
	defer mu.Unlock()
	if err := w.fits(b, nothing); err != nil {
		return Reservation{}, err
	}
	return w.take(b), nil
}

// Check reports whether the call would fit if no other call were under way. Its
// errors are those of [Budget.Reserve]; it reserves nothing.
func (b *Budget) Check(r Request) error {
	w, err := b.want(r)
	if err != nil {
		return err
	}
	mu := b.lock()
	defer mu.Unlock()
	return w.fits(b, everything)
}

// Commit gives the room back and books what the call has used, even if that is
// more. Calls is taken for 1 if it is less; a Cost that is nil is computed from
// the price list. It replaces what Settle has booked. After Commit or Release it
// does nothing.
func (r *Reservation) Commit(u Usage) {
	u.Calls = max(1, u.Calls)
	r.book(u.internal(r.price, r.priced))
	r.budget = nil
}

// Settle gives the room back and books what is known of a call that may never end,
// such as one that was cut off: nobody waits for it any more. Commit, if it comes
// later, replaces what is booked; so does another Settle.
func (r *Reservation) Settle(u Usage) {
	u.Calls = max(1, u.Calls)
	r.book(u.internal(r.price, r.priced))
}

// Priced reports whether the model has a price.
func (r *Reservation) Priced() bool { return r.priced }

// Estimate is what was reserved, as usage: for a call of which the provider does
// not say what it used.
func (r *Reservation) Estimate() Usage {
	return Usage{Calls: 1, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Estimated: true}
}

// Release gives the room back for a call that was not made, and takes back what
// Settle has booked. After Commit or Release it does nothing.
func (r *Reservation) Release() {
	r.book(usage{})
	r.budget = nil
}

// Park says whether whoever made the call is busy with something else, such as a
// part of the answer, before it listens to the rest. [Budget.ReserveWait] does not
// wait long for a call that is parked: what it waits for may be the waiting call
// itself.
func (r *Reservation) Park(parked bool) {
	b := r.budget
	if b == nil || r.parked == parked || r.ask == (amount{}) {
		return
	}
	r.parked = parked
	mu := b.lock()
	defer mu.Unlock()
	for n := b; n != nil; n = n.parent {
		if parked {
			n.parked.add(r.ask)
		} else {
			n.parked.sub(r.ask)
		}
	}
	b.top().wake()
}

// book replaces what is reserved and booked by u.
func (r *Reservation) book(u usage) {
	b := r.budget
	if b == nil {
		return
	}
	mu := b.lock()
	defer mu.Unlock()
	for n := b; n != nil; n = n.parent {
		n.reserved.sub(r.ask)
		if r.parked {
			n.parked.sub(r.ask)
		}
		n.used.sub(r.settled)
		n.used.add(u)
	}
	r.ask, r.settled, r.parked = amount{}, u, false
	b.top().wake()
}
