// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/refrain-dev/refrain/session/mark"
)

// remembered are events that follow one another, packed. Each look at one makes it anew, together
// with its neighbours.
type remembered struct {
	first int64 // the Seq of the first one
	book  book
	packs []*pack
	open  []*Event    // behind the packs; fewer than a pack has
	names []mark.Kind // of the marks; the first is that of an event without one
	kinds []byte      // of each event the place in names
	buf   []byte
	made  [4]struct { // the packs that were looked at last, each where its number is
		n   int
		evs []*Event
	}
}

func (r *remembered) len() int { return len(r.kinds) }

// add adds the next event.
func (r *remembered) add(ev *Event) {
	if len(r.kinds) == 0 {
		r.first, r.names = ev.Seq, []mark.Kind{""}
	}
	r.kinds = append(r.kinds, r.named(ev))
	if r.open = append(r.open, ev); len(r.open) == packed {
		r.packs = append(r.packs, r.book.pack(r.open, &r.buf))
		r.open = nil
	}
}

// named is the place of the kind of an event; 255 if there are too many.
func (r *remembered) named(ev *Event) byte {
	if ev.Mark == nil {
		return 0
	}
	i := slices.Index(r.names, ev.Mark.Kind)
	if i < 0 {
		i, r.names = len(r.names), append(r.names, ev.Mark.Kind)
	}
	return byte(min(i, 255))
}

// is reports whether the event at an index has a mark of one of the kinds.
func (r *remembered) is(i int, kinds []mark.Kind) bool {
	if k := r.kinds[i]; k < 255 {
		return k > 0 && slices.Contains(kinds, r.names[k])
	}
	return isOf(r.at(i), kinds)
}

// at is the event at an index.
func (r *remembered) at(i int) *Event {
	n, i := i/packed, i%packed
	if n == len(r.packs) {
		return r.open[i]
	}
	m := &r.made[n%len(r.made)]
	if m.evs == nil || m.n != n {
		m.n, m.evs = n, r.book.unpack(r.packs[n])
	}
	return m.evs[i]
}
