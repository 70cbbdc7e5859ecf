// SPDX-License-Identifier: Apache-2.0

package budget

// Request is a call of a model that is to be made.
type Request struct {
	// Model is the name to look for in the price list; see [Prices.Of].
	Model string
	// InputTokens and OutputTokens are the most that the call may use. Where a
	// budget is not [Budget.Metered] they may be left out.
	InputTokens, OutputTokens int64
	// MinOutputTokens is what the output may be cut down to where there is no
	// room for all of it; 0 never cuts it.
	MinOutputTokens int64
}

// Reservation is room for one call. It is a value, so that it needs no memory
// of its own; it must not be copied. Whoever has one calls Commit or Release.
type Reservation struct {
	// InputTokens and OutputTokens are what the call may use. OutputTokens may
	// be less than was asked for, if the request allowed that.
	InputTokens, OutputTokens int64

	budget *Budget // nil when it is over
	ask    amount
	price  Price
	priced bool
}

// Reserve makes room for a call in b and in each budget above it, or in none of
// them. It fails with an [*ExceededError] if the call does not fit in one, and
// with an [*UnknownPriceError] if one limits cost and the model has no price.
func (b *Budget) Reserve(r Request) (Reservation, error) {
	price, priced := b.top().prices.Of(r.Model)
	if b.costed && !priced {
		return Reservation{}, &UnknownPriceError{Model: r.Model}
	}
	in, out := count(r.InputTokens), count(r.OutputTokens)
	least := out
	if r.MinOutputTokens > 0 {
		least = min(out, r.MinOutputTokens)
	}
	need := amount{calls: 1, tokens: in + least, nanos: price.atMost(in, least)}
	mu := b.lock()
	defer mu.Unlock()
	for n := b; n != nil; n = n.parent {
		if n.limit.costed && n.used.unpriced { // by Book
			return Reservation{}, &UnknownPriceError{}
		}
		free := n.free(b.claims)
		if !need.fits(free) {
			n.refused = need
			return Reservation{}, n.exceeded(need, free, b.claims)
		}
		out = min(out, free.tokens-in)
		if n.limit.costed {
			out = min(out, price.affords(in, out, free.nanos))
		}
	}
	out = max(out, least)
	ask := amount{calls: 1, tokens: in + out, nanos: price.atMost(in, out)}
	for n := b; n != nil; n = n.parent {
		n.reserved.add(ask)
		n.refused = amount{}
	}
	return Reservation{InputTokens: in, OutputTokens: out, budget: b, ask: ask, price: price, priced: priced}, nil
}

// Commit gives the room back and books what the call has used, even if that is
// more. Calls is taken for 1 if it is less; a Cost that is nil is computed from
// the price list. After Commit or Release it does nothing.
func (r *Reservation) Commit(u Usage) {
	u.Calls = max(1, u.Calls)
	r.end(u.internal(r.price, r.priced))
}

// Priced reports whether the model has a price.
func (r *Reservation) Priced() bool { return r.priced }

// Estimate is what was reserved, as usage: for a call of which the provider does
// not say what it used.
func (r *Reservation) Estimate() Usage {
	return Usage{Calls: 1, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Estimated: true}
}

// Release gives the room back for a call that was not made. After Commit or
// Release it does nothing.
func (r *Reservation) Release() { r.end(usage{}) }

func (r *Reservation) end(u usage) {
	b := r.budget
	if b == nil {
		return
	}
	r.budget = nil
	mu := b.lock()
	defer mu.Unlock()
	for n := b; n != nil; n = n.parent {
		n.reserved.sub(r.ask)
		n.used.add(u)
	}
}
