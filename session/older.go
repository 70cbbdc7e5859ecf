// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// pageSize is how many older events are read at a time.
const pageSize = 256

// older are events of a view that are read from their store when somebody looks
// at them, page by page, and then kept.
type older struct {
	load  func(first, last int64) ([]*Event, error)
	first int64 // sequence number of the first
	n     int
	pages []atomic.Pointer[[]*Event]

	mu  sync.Mutex // held while a page is read
	err atomic.Pointer[error]
}

func newOlder(first int64, n int, load func(first, last int64) ([]*Event, error)) *older {
	return &older{load: load, first: first, n: n, pages: make([]atomic.Pointer[[]*Event], (n+pageSize-1)/pageSize)}
}

func (o *older) at(i int) *Event {
	page := o.pages[i/pageSize].Load()
	if page == nil {
		if page = o.read(i / pageSize); page == nil {
			return o.unread(i)
		}
	}
	return (*page)[i%pageSize]
}

// read loads a page. After the first failure no other one is tried: whoever
// goes through a long log must not wait for a lost store page after page.
func (o *older) read(p int) *[]*Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	if page := o.pages[p].Load(); page != nil {
		return page
	}
	if o.err.Load() != nil {
		return nil
	}
	from := p * pageSize
	first, last := o.first+int64(from), o.first+int64(min(from+pageSize, o.n))-1
	evs, err := o.load(first, last)
	if err == nil && int64(len(evs)) != last-first+1 {
		err = fmt.Errorf("the store has %d of the events %d to %d", len(evs), first, last)
	}
	if err != nil {
		err = fmt.Errorf("read older events of the session: %w", err)
		o.err.Store(&err)
		return nil
	}
	o.pages[p].Store(&evs)
	return &evs
}

// unread stands for an event that could not be read.
func (o *older) unread(i int) *Event {
	ev := &Event{Seq: o.first + int64(i)}
	ev.ErrorCode, ev.ErrorMessage = "UNREADABLE", (*o.err.Load()).Error()
	return ev
}
