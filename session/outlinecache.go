// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"
	"sort"

	"github.com/refrain-dev/refrain/session/mark"
)

// bySeq returns the event with a sequence number; nil if there is none.
func (w *window) bySeq(seq int64) *Event {
	n := w.Len()
	if i := seq - w.base(); i >= 0 && i < int64(n) {
		if ev := w.At(int(i)); ev.Seq == seq {
			return ev
		}
	}
	// A store outside this project may return a session whose sequence numbers have gaps.
	i := sort.Search(n, func(i int) bool { return w.At(i).Seq >= seq })
	if i < n && w.At(i).Seq == seq {
		return w.At(i)
	}
	return nil
}

// cachedAt returns a cached event by its sequence number; nil if the cache does not have it.
func (o *pager) cachedAt(kept *outlineCache, seq int64) *Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := seq - kept.first; i >= 0 && i < int64(kept.len()) {
		return kept.at(int(i))
	}
	return nil
}

// outlineRange yields the outlines of the events with the numbers first to last. It takes cached events from the
// cache, and reads the others from the store page by page. If kinds is not nil, it yields only events with a mark
// of one of the kinds.
func (o *pager) outlineRange(first, last int64, kinds []mark.Kind) iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for seq := first; seq <= last; {
			page, next := o.outlinePage(first, seq, last, kinds)
			for _, ev := range page {
				if hasKind(ev, kinds) && !yield(ev) {
					return
				}
			}
			seq = next
		}
	}
}

// hasOutlines reports whether the store can read outlines, or the pager caches complete events in their place.
func (o *pager) hasOutlines() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.outline != nil || o.cachesOutline
}

// hasKind reports whether an event has a mark of one of the kinds. If kinds is nil, it returns true.
func hasKind(ev *Event, kinds []mark.Kind) bool {
	return kinds == nil || ev.Mark != nil && slices.Contains(kinds, ev.Mark.Kind)
}

// outlinePage returns the next outlines from seq on, in the range first to last, and the sequence number after
// them. It omits cached events without a mark of one of the kinds; it does not filter events from the store.
// It adds events from the store to the cache only if they continue the cache without a gap.
func (o *pager) outlinePage(first, seq, last int64, kinds []mark.Kind) (page []*Event, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.outlineCache != nil && seq >= o.outlineCache.first && seq < o.outlineCache.first+int64(o.outlineCache.len()) {
		next = min(o.outlineCache.first+int64(o.outlineCache.len()), last+1)
		for ; seq < next && len(page) < packed; seq++ {
			if i := int(seq - o.outlineCache.first); kinds == nil || o.outlineCache.is(i, kinds) {
				page = append(page, o.outlineCache.at(i))
			}
		}
		return page, seq
	}
	read := o.outline
	if read == nil {
		read = o.load
	}
	page = readEvents(read, seq, min(seq+outlineSize-1, last), &o.err)
	if page == nil {
		return []*Event{o.unreadable(seq)}, seq + 1
	}
	if o.cachesOutline && !o.outlineCache.full() && (o.outlineCache == nil && seq == first || o.outlineCache != nil && o.outlineCache.first+int64(o.outlineCache.len()) == seq) {
		if o.outlineCache == nil {
			o.outlineCache = new(outlineCache)
		}
		for _, ev := range page {
			o.outlineCache.add(ev)
		}
	}
	return page, seq + int64(len(page))
}

// outlineCache is a packed sequence of events without a gap. Reading an event unpacks its whole pack, so the
// caller gets a new copy of the event, except from the packs that were read last and from tail.
type outlineCache struct {
	first    int64 // the Seq of the first event
	book     book
	packs    []*pack
	bytes    int         // the size of the packs
	tail     []*Event    // the events after the packs; fewer than a pack has
	names    []mark.Kind // the kinds of marks; the first is empty, for events without a mark
	kinds    []byte      // for each event the index of its kind in names; 255: look at the event
	buf      []byte
	unpacked [4]struct { // the packs that were read last; pack n is at index n%4
		n   int
		evs []*Event
	}
}

func (r *outlineCache) len() int { return len(r.kinds) }

// full reports whether the cache has reached its limit, windowsWeight bytes.
func (r *outlineCache) full() bool { return r != nil && r.bytes >= windowsWeight }

// add adds the next event.
func (r *outlineCache) add(ev *Event) {
	if len(r.kinds) == 0 {
		r.first, r.names = ev.Seq, []mark.Kind{""}
	}
	r.kinds = append(r.kinds, r.kindIndex(ev))
	if r.tail = append(r.tail, ev); len(r.tail) == packed {
		p := r.book.pack(r.tail, &r.buf)
		r.packs, r.tail = append(r.packs, p), nil
		r.bytes += len(p.data)
		for _, ev := range p.kept {
			r.bytes += ev.Weight()
		}
	}
}

// kindIndex returns the index of the event's kind in names; 255 if the index does not fit into a byte.
func (r *outlineCache) kindIndex(ev *Event) byte {
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
func (r *outlineCache) is(i int, kinds []mark.Kind) bool {
	if k := r.kinds[i]; k < 255 {
		return k > 0 && slices.Contains(kinds, r.names[k])
	}
	return hasKind(r.at(i), kinds)
}

// at returns the event at an index.
func (r *outlineCache) at(i int) *Event {
	n, i := i/packed, i%packed
	if n == len(r.packs) {
		return r.tail[i]
	}
	m := &r.unpacked[n%len(r.unpacked)]
	if m.evs == nil || m.n != n {
		m.n, m.evs = n, r.book.unpack(r.packs[n])
	}
	return m.evs[i]
}
