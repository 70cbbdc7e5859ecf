// SPDX-License-Identifier: Apache-2.0

package budget

// Request is a model call to be made.
type Request struct {
	// Model is the name to look for in the price list; see [Prices.Of].
	Model string
	// InputTokens and OutputTokens are the expected usage of the call: an estimate from earlier calls
	// rather than the maximum. They may be left out if the budget is not [Meter.Metered].
	InputTokens, OutputTokens int64
	// CachedTokens are the input tokens that are expected to come from the provider's cache: no more than the
	// provider has reported for the previous call.
	CachedTokens int64
	// CacheWrite says that the provider may write the rest of the input into its cache, and CacheWrite1h that it may
	// write it there for an hour. The rest is then reserved at that price.
	CacheWrite, CacheWrite1h bool
	// MinOutputTokens is the least output to which the call may be cut down if the budget has no
	// room for all of it; 0 means that it is never cut down.
	MinOutputTokens int64
}

// Reservation is the reservation of one call. Call Commit or Release on each. It must not be
// copied, and its methods are for one goroutine at a time.
type Reservation struct {
	// InputTokens and OutputTokens are reserved. OutputTokens may be less than requested, if the request allowed
	// that.
	InputTokens, OutputTokens int64
	// MaxOutputTokens is the longest answer that exceeds no budget, after what other calls have
	// reserved.
	MaxOutputTokens int64

	budget  *Meter // nil when it is over
	ask     amount // what is reserved; nothing once it is settled
	settled usage  // what is booked until Commit says better
	parked  bool
	price   Price
	priced  bool
}

// Reserve reserves a call in b and in each budget above it, or in none of them. It never waits. It
// fails with an [*ExceededError] if the call does not fit in one of them, and with an
// [*UnknownPriceError] if one limits cost and the model has no price.
func (b *Meter) Reserve(r Request) (Reservation, error) {
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

// Check reports whether the call would fit if no other call were running. Its errors are those of
// [Meter.Reserve]; it reserves nothing.
func (b *Meter) Check(r Request) error {
	w, err := b.want(r)
	if err != nil {
		return err
	}
	mu := b.lock()
	defer mu.Unlock()
	return w.fits(b, everything)
}

// Commit ends the reservation and books the usage of the call, even if it exceeds the reservation.
// A number of calls less than 1 counts as 1; a Cost that is nil is computed from the price list. It
// replaces what Settle booked. After Commit or Release it does nothing.
func (r *Reservation) Commit(u Usage) {
	u.Calls = max(1, u.Calls)
	r.book(u.internal(r.price, r.priced))
	r.budget = nil
}

// Settle ends the reservation and books the known usage of a call that may never end, such as a
// call that was cut off. A later Commit or Settle replaces what is booked.
func (r *Reservation) Settle(u Usage) {
	u.Calls = max(1, u.Calls)
	r.book(u.internal(r.price, r.priced))
}

// Priced reports whether the model has a price.
func (r *Reservation) Priced() bool { return r.priced }

// Estimate returns the reservation as a usage, for a call whose provider does not report one.
func (r *Reservation) Estimate() Usage {
	return Usage{Calls: 1, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Estimated: true}
}

// Release ends the reservation of a call that was not made, and takes back what Settle booked.
// After Commit or Release it does nothing.
func (r *Reservation) Release() {
	r.book(usage{})
	r.budget = nil
}

// Park sets whether the reader of the answer does other work before it reads on.
// [Meter.ReserveWait] does not wait long for a parked call, because the parked call may itself wait
// for the reserving call.
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

// book replaces the reserved and booked usage by u.
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
