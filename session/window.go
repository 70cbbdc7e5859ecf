// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"
)

const chunkSize = 64

// eventLog is an append-only list in chunks. A copy of the struct is a snapshot: appending never
// writes to the events that a copy can see, so a goroutine can read the copy without a lock while the
// original grows. Only one copy may append.
type eventLog struct {
	chunks []*[chunkSize]*Event
	n      int
}

func (l *eventLog) append(e *Event) {
	if l.n%chunkSize == 0 {
		l.chunks = append(l.chunks, new([chunkSize]*Event))
	}
	l.chunks[l.n/chunkSize][l.n%chunkSize] = e
	l.n++
}

// fork returns a copy. Appending to the copy does not change the original, and vice versa.
func (l eventLog) fork() eventLog {
	l.chunks = slices.Clone(l.chunks)
	if n := l.n % chunkSize; n > 0 {
		last := &l.chunks[len(l.chunks)-1]
		seen := new([chunkSize]*Event)
		copy(seen[:], (*last)[:n]) // the original may write after n at the same time
		*last = seen
	}
	return l
}

// drop removes the first events from the list. Copies of the list keep them.
func (l *eventLog) drop(events int) {
	all := *l
	*l = eventLog{}
	for i := events; i < all.n; i++ {
		l.append(all.at(i))
	}
}

func (l *eventLog) at(i int) *Event { return l.chunks[i/chunkSize][i%chunkSize] }

// window is the end of a log, from one event on. Its older events may be only in the store. The others are in
// memory: they are the events of the field log from index from on.
type window struct {
	older  *pager // reads events that are only in the store; nil if the window has no store
	before int    // how many events of the window are only in the store
	first  int64  // the sequence number of the first of them
	log    eventLog
	from   int
}

// skip removes the first n events from the window.
func (w *window) skip(n int) {
	older := min(n, w.before)
	w.before, w.first, w.from = w.before-older, w.first+int64(older), w.from+n-older
}

// err returns the error with which the store failed to read events of the window.
func (w *window) err() error {
	if w.older != nil {
		if err := w.older.err.Load(); err != nil {
			return *err
		}
	}
	return nil
}

func (w *window) Len() int { return w.before + w.log.n - w.from }

func (w *window) At(i int) *Event {
	if i < 0 || i >= w.Len() {
		panic("session: event index out of range")
	}
	if i < w.before {
		return w.olderAt(i)
	}
	return w.log.at(w.from + i - w.before)
}

// olderAt returns the i-th event of the window, which is only in the store.
func (w *window) olderAt(i int) *Event {
	return w.older.at(w.first+int64(i), w.first+int64(w.before)-1)
}

func (w *window) All() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for i := range w.before {
			if !yield(w.olderAt(i)) {
				return
			}
		}
		for i := w.from; i < w.log.n; i++ {
			if !yield(w.log.at(i)) {
				return
			}
		}
	}
}
