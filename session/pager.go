// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// pageSize is the number of events in a page. maxPrefetched is the largest number of pages that are read from the
// store at once.
const (
	pageSize      = 64
	maxPrefetched = 8
)

// pager is a reader of the events of a view that are not in memory. It reads them from the store page by page when
// a caller asks for them. It keeps the pages that were used last, at least two, within the view's share of the
// memory (see windowShare).
type pager struct {
	load    func(first, last int64) ([]*Event, error)
	outline func(first, last int64) ([]*Event, error)

	mu            sync.Mutex // held while pages are read
	pages         map[int64]*page
	weight        int                   // the sum of the weights of all pages
	next          int64                 // the number of the page after the pages that were read last
	prefetched    int                   // how many pages were read last
	reads         int64                 // counts the uses of pages, as a clock for lastRead
	cachesOutline bool                  // see Log.CacheOutline
	outlineCache  *outlineCache         // nil until an outline is cached
	err           atomic.Pointer[error] // the first failure of the store; nil if there was none
}

// page holds the events from (n*pageSize)+1 on, for the n-th page.
type page struct {
	evs      []*Event
	weight   int
	lastRead int64 // the value of pager.reads when the page was last used
}

// at returns the event with a sequence number. last is the sequence number of the last event that is not in
// memory; at reads no event after it.
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

// read loads the n-th page. If the caller reads the pages in order, read also loads the pages after it: twice as many
// as the last time, as long as they are light. After the first failure, it does not ask the store again, because the
// reader of a long log must not wait for a lost store once per page. It returns nil if it fails.
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

// store keeps a page that was read, in place of an earlier copy of it.
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

// readEvents reads the events first to last from the store. It returns nil if the store fails, or failed before.
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

// evict drops the page that was unused for the longest time, but not the n-th page.
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

// unreadable returns an event with the error of the store, in place of an event that could not be read.
func (o *pager) unreadable(seq int64) *Event {
	ev := &Event{Seq: seq}
	ev.ErrorCode, ev.ErrorMessage = "UNREADABLE", (*o.err.Load()).Error()
	return ev
}
