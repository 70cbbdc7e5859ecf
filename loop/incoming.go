// SPDX-License-Identifier: Apache-2.0

package loop

import "maps"

// incoming is an outcome on its way into a tally. A copy of a tally shares what it points to, so nothing
// that a tally has pointed to is ever written again.
type incoming struct{ *Outcome }

// fails gives the outcome another failure. The outcome of the caller does not change.
func (o *incoming) fails(f *Failure) {
	o.Outcome = new(*o.Outcome)
	o.Failure = f
}

// sight returns what expressions see of the tally and the outcome.
func (o *incoming) sight(t *Tally) *view { return &view{t, o.seen()} }

// seen returns the state without what is left over in it.
func (o *incoming) seen() map[string]any {
	if o.State == nil || len(o.Left) == 0 {
		return o.State
	}
	own := maps.Clone(o.State)
	for _, k := range o.Left {
		delete(own, k)
	}
	return own
}

// hash is FNV-1a, without an allocation.
type hash uint64

const newHash hash = 14695981039346656037

func (h hash) text(s string) hash {
	for i := range len(s) {
		h = (h ^ hash(s[i])) * 1099511628211
	}
	return h
}

func (h hash) number(n uint64) hash {
	for range 8 {
		h = (h ^ hash(n&0xff)) * 1099511628211
		n >>= 8
	}
	return h
}
