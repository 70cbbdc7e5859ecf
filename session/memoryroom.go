// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sort"
	"sync"
	"sync/atomic"
)

// roomWeight is how many bytes of events as such an in-memory service holds, as [Event.Weight] counts them.
const roomWeight = 16 << 20

// room bounds the memory that the sessions of an in-memory service take. The last events of
// each are held as such. When all of these weigh more than roomWeight, those of a session to
// which nothing was appended for some time are packed. Long ones stay, as their texts take the same
// memory in either form.
type room struct {
	weight atomic.Int64

	mu      sync.Mutex
	records []*record
	hand    int    // goes round the records
	buf     []byte // for packing
}

func (m *room) enter(r *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.slot = len(m.records)
	m.records = append(m.records, r)
}

// leave takes out a record. r.mu is held.
func (m *room) leave(r *record) {
	m.weight.Add(-int64(r.weight))
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.records) - 1
	m.records[r.slot] = m.records[last]
	m.records[r.slot].slot = r.slot
	m.records[last] = nil
	m.records = m.records[:last]
}

// make makes room, unless another goroutine does and is not far behind. No record is locked by the
// caller.
func (m *room) make() {
	switch n := m.weight.Load(); {
	case n <= roomWeight:
		return
	case n > roomWeight+roomWeight/8:
		m.mu.Lock()
	case !m.mu.TryLock():
		return
	}
	defer m.mu.Unlock()
	for range 2 * len(m.records) {
		if m.hand++; m.hand >= len(m.records) {
			m.hand = 0
		}
		r := m.records[m.hand]
		if !r.mu.TryLock() {
			continue
		}
		if r.used {
			r.used = false
		} else {
			m.weight.Add(-int64(r.pack(&m.buf)))
		}
		r.mu.Unlock()
		if m.weight.Load() <= roomWeight {
			return
		}
	}
}

// held are the events of a record.
type held struct {
	packed atomic.Pointer[packs] // the first ones; nil if there are none
	log    eventLog              // those behind them
	weight int                   // of the log
	used   bool                  // something was appended since the room's hand came by
}

// packs are the packed events of a session, from the first one on. They do not change.
type packs struct {
	all  []*pack
	book book
	n    int64
}

// last is the sequence number of the last event. r.mu is held.
func (r *record) last() int64 { return r.packed.Load().len() + int64(r.log.n) }

func (p *packs) len() int64 {
	if p == nil {
		return 0
	}
	return p.n
}

// keep puts an event at the end of the log. r.mu is held.
func (r *record) keep(ev *Event) {
	n := ev.Weight()
	r.log.append(ev)
	r.weight += n
	r.used = true
	r.service.room.weight.Add(int64(n))
}

// at is an event by its sequence number. r.mu is held.
func (r *record) at(seq int64) *Event {
	if n := r.packed.Load().len(); seq > n {
		return r.log.at(int(seq - n - 1))
	}
	return r.packed.Load().read(seq, seq)[0]
}

// show brings a window of the record up to date. r.mu is held.
func (r *record) show(w *window) {
	first, n := max(w.start, 1), r.packed.Load().len()
	w.log, w.before, w.first, w.from = r.log, 0, 0, int(max(0, first-n-1))
	if first > n {
		return
	}
	w.before, w.first = int(n-first+1), first
	if w.older == nil {
		w.older = &older{fixed: true, load: func(first, last int64) ([]*Event, error) {
			return r.packed.Load().read(first, last), nil
		}}
	}
}

// pack packs events, and returns what they weighed: all, or the older half of the only session that
// has many. r.mu is held.
func (r *record) pack(buf *[]byte) (weight int) {
	n := r.log.n
	if r.weight > roomWeight/2 {
		n /= 2
	}
	if n == 0 {
		return 0
	}
	next := &packs{n: int64(n)}
	if p := r.packed.Load(); p != nil {
		next.all, next.book, next.n = p.all, p.book, p.n+int64(n)
	}
	evs := make([]*Event, 0, packed)
	for i := range n {
		ev := r.log.at(i)
		weight += ev.Weight()
		if evs = append(evs, ev); len(evs) == packed || i == n-1 {
			next.all = append(next.all, next.book.pack(evs, buf))
			evs = evs[:0]
		}
	}
	r.packed.Store(next)
	r.log.drop(n)
	r.weight -= weight
	return weight
}

// read returns the packed events from first to last.
func (p *packs) read(first, last int64) []*Event {
	evs := make([]*Event, 0, last-first+1)
	i := sort.Search(len(p.all), func(i int) bool { return p.all[i].first > first }) - 1
	for ; i < len(p.all) && p.all[i].first <= last; i++ {
		for _, ev := range p.book.unpack(p.all[i]) {
			if ev.Seq >= first && ev.Seq <= last {
				evs = append(evs, ev)
			}
		}
	}
	return evs
}
