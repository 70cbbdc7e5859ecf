// SPDX-License-Identifier: Apache-2.0

package budget

import "math"

// Hold is a part of a budget, and of those above it, that is reserved for the last work, such as a loop's finalizer.
// Other calls cannot use it.
type Hold struct {
	base  *Meter
	outer *Hold    // what else is kept for the budget of this one
	kept  []amount // of the budget and of each above it, in this order
	last  *Meter
}

// Hold keeps back a share, from 0 to 1, of every limit of b and of each budget above it, for the
// calls under [Hold.Budget]. It keeps at least one call, and at most half of the remaining amount,
// or the share if that is more. A budget with one call left keeps none.
func (b *Meter) Hold(share float64) *Hold {
	h := &Hold{base: b, outer: b.claims, kept: make([]amount, b.depth+1)}
	h.last = b.Child(Limits{})
	h.last.claims = h
	if !(share > 0) {
		return h
	}
	share = min(share, 1)
	mu := b.lock()
	defer mu.Unlock()
	for n := b; n != nil; n = n.parent {
		k, free := &h.kept[b.depth-n.depth], n.free(b.claims, nothing)
		if n.limit.calls != 0 {
			k.calls = portion(n.limit.calls, free.calls, share)
		}
		if n.limit.tokens != 0 {
			k.tokens = portion(n.limit.tokens, free.tokens, share)
		}
		if n.limit.costed {
			k.nanos = portion(n.limit.nanos, free.nanos, share)
		}
		n.held.add(*k)
	}
	return h
}

// portion returns the share of a limit, rounded up, but no more than the amount that is left.
func portion(limit, free int64, share float64) int64 {
	of := func(n int64) int64 { return int64(math.Ceil(float64(n) * share)) }
	most := free / 2
	if share >= 0.5 {
		most = of(free)
	}
	if share < 1 {
		most = min(most, free-1)
	}
	return max(0, min(of(limit), most))
}

// Budget returns the budget for the work that the hold is for. It is a child of the budget that
// holds; only its calls may use the held amount.
func (h *Hold) Budget() *Meter { return h.last }

// Release gives back the held amount. A second call does nothing.
func (h *Hold) Release() {
	mu := h.base.lock()
	defer mu.Unlock()
	for n := h.base; n != nil; n = n.parent {
		k := &h.kept[h.base.depth-n.depth]
		n.held.sub(*k)
		*k = amount{}
	}
	h.base.top().wake()
}

// at returns the amount that h and the holds around it keep at a budget.
func (h *Hold) at(b *Meter) amount {
	var sum amount
	for ; h != nil; h = h.outer {
		if i := h.base.depth - b.depth; i >= 0 { // else b is below
			sum.add(h.kept[i])
		}
	}
	return sum
}
