// SPDX-License-Identifier: Apache-2.0

package loop

import "maps"

// incoming is an outcome on its way into a tally, with the rooms for what it
// leaves there. A copy of a tally shares what it points to, so nothing that a
// tally has pointed to is ever written again: an outcome brings its own rooms,
// in as few allocations as there can be.
//
// It has pointers to two things on the stack of its maker, and not the things:
// an outcome is large, and to copy one that was just written takes as long as
// all the rest of [Plan.Take] for a plain loop.
type incoming struct {
	*Outcome
	*rooms
}

type rooms struct {
	room *moment
	page *page
	own  map[string]any // see seen
}

// fails gives the outcome another failure. That of the caller stays as it is.
func (o *incoming) fails(f *Failure) {
	o.Outcome = new(*o.Outcome)
	o.Failure = f
}

// moment has the numbers that an outcome leaves in the tally and in its record,
// and what it makes of a single condition.
type moment struct {
	view
	truth                                                                   [1]truth
	cost, late, score, recorded, delta, percent, accepted, best, met, worth float64
	prints                                                                  [2]uint64
}

// page has what only the tally keeps, for a plan with a score and a few
// conditions.
type page struct {
	truths [pageTruths]truth
	scores [maxScores]float64
}

const pageTruths = 4

// numbers is the outcome's moment.
func (o *incoming) numbers() *moment {
	if o.room == nil {
		o.room = new(moment)
	}
	return o.room
}

// sight lets expressions see the tally and the outcome, until blind.
func (o *incoming) sight(t *Tally) *view {
	m := o.numbers()
	m.view = view{t, o.seen()}
	return &m.view
}

// seen is the state without what is left over in it.
func (o *incoming) seen() map[string]any {
	if o.State == nil || len(o.Left) == 0 {
		return o.State
	}
	if o.own == nil {
		o.own = maps.Clone(o.State)
		for _, k := range o.Left {
			delete(o.own, k)
		}
	}
	return o.own
}

// blind lets go of the state: Add keeps nothing of it.
func (o *incoming) blind() { o.room.view = view{} }

// scores are the recent scores with one more.
func (o *incoming) scores(before []float64, score float64) []float64 {
	before = before[max(0, len(before)-maxScores+1):]
	var s []float64
	if o.page != nil {
		s = o.page.scores[: 0 : len(before)+1]
	} else {
		s = make([]float64, 0, len(before)+1)
	}
	return append(append(s, before...), score)
}

// truths is the room for n of them.
func (o *incoming) truths(n int) []truth {
	switch {
	case n == 1:
		return o.numbers().truth[:0]
	case o.page != nil && n <= pageTruths:
		return o.page.truths[:0:n]
	}
	return make([]truth, 0, n)
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
