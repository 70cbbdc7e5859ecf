// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// pageSize is how many older events are a page, and maxAhead how many pages are read at once at
// most.
const (
	pageSize      = 64
	maxPrefetched = 8
)

// pager are events of a view that are read from their store when somebody looks at
// them, page by page. The pages that were looked at last are kept, as many as the view's
// share of the memory holds, and two at least.
type pager struct {
	load    func(first, last int64) ([]*Event, error)
	outline func(first, last int64) ([]*Event, error)

	mu            sync.Mutex // held while pages are read
	pages         map[int64]*page
	weight        int           // of all pages
	next          int64         // the page behind those that were read last
	prefetched    int           // how many those were
	reads         int64         // counts looks at a page
	cachesOutline bool          // the outlines that are read
	outlineCache  *outlineCache // those; nil if there are none
	err           atomic.Pointer[error]
}

// page holds the events from (n*pageSize)+1 on, for the n-th page.
type page struct {
	evs      []*Event
	weight   int
	lastRead int64 // when it was looked at last
}

// at is the event with a sequence number; last is that of the last older one, as the
// caller knows it.
func (o *pager) at(seq, last int64) *Event {
	n := (seq - 1) / pageSize
	i := int(seq - 1 - n*pageSize)
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.pages[n]
	if p == nil || i >= len(p.evs) {
		if p = o.read(n, last); p == nil {
			return o.unreadable(seq)
		}
	}
	o.reads++
	p.lastRead = o.reads
	return p.evs[i]
}

// read loads a page, and with it those behind it if the pages are read in their order: twice as
// many as before, as long as they are light. After the first failure no other one is tried: whoever
// goes through a long log must not wait for a lost store page after page.
func (o *pager) read(n, last int64) *page {
	count := 1
	if n == o.next && o.prefetched > 0 && o.pages[n-1] != nil {
		count = min(2*o.prefetched, maxPrefetched, max(1, windowShare()/4/o.pages[n-1].weight))
	}
	first := n*pageSize + 1
	evs := readEvents(o.load, first, min(first+int64(count)*pageSize-1, last), &o.err)
	if evs == nil {
		return nil
	}
	if o.pages == nil {
		o.pages = make(map[int64]*page)
	}
	o.next, o.prefetched = n, 0
	for some := range slices.Chunk(evs, pageSize) {
		o.store(o.next, some)
		o.next++
		o.prefetched++
	}
	for o.weight > windowShare() && len(o.pages) > 2 {
		o.evict(n)
	}
	return o.pages[n]
}

// store holds a page that was read.
func (o *pager) store(n int64, evs []*Event) {
	p := &page{evs: evs, lastRead: o.reads}
	for _, ev := range evs {
		p.weight += ev.Weight()
	}
	if was := o.pages[n]; was != nil {
		o.weight -= was.weight
	}
	o.pages[n] = p
	o.weight += p.weight
}

// readEvents reads events that are in the store; nil if that fails now or did before.
func readEvents(load func(first, last int64) ([]*Event, error), first, last int64,
	failed *atomic.Pointer[error]) []*Event {
	if failed.Load() != nil {
		return nil
	}
	evs, err := load(first, last)
	if err == nil && int64(len(evs)) != last-first+1 {
		err = fmt.Errorf("the store has %d of the events %d to %d", len(evs), first, last)
	}
	if err != nil {
		err = fmt.Errorf("read older events of the session: %w", err)
		failed.Store(&err)
		return nil
	}
	return evs
}

// evict forgets the page that nobody has looked at for the longest time, but not the
// n-th.
func (o *pager) evict(n int64) {
	oldest := int64(-1)
	for i, p := range o.pages {
		if i != n && (oldest < 0 || p.lastRead < o.pages[oldest].lastRead) {
			oldest = i
		}
	}
	o.weight -= o.pages[oldest].weight
	delete(o.pages, oldest)
}

// unreadable stands for an event that could not be read.
func (o *pager) unreadable(seq int64) *Event {
	ev := &Event{Seq: seq}
	ev.ErrorCode, ev.ErrorMessage = "UNREADABLE", (*o.err.Load()).Error()
	return ev
}
