// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"
)

const chunkSize = 64

// eventLog is an append-only list in chunks. A copy of the struct is a
// snapshot: what it can see is never written again, so it may be read without
// a lock while the original grows. Only one copy may append.
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

// fork returns a copy that may be appended to beside the original.
func (l eventLog) fork() eventLog {
	l.chunks = slices.Clone(l.chunks)
	if n := l.n % chunkSize; n > 0 {
		last := &l.chunks[len(l.chunks)-1]
		seen := new([chunkSize]*Event)
		copy(seen[:], (*last)[:n]) // the original may be writing behind n
		*last = seen
	}
	return l
}

func (l *eventLog) at(i int) *Event { return l.chunks[i/chunkSize][i%chunkSize] }

// window is the part of a log from one event on.
type window struct {
	older *older // what comes before the log's; nil if there is nothing
	log   eventLog
	from  int
}

func (w *window) Len() int { return w.before() + w.log.n - w.from }

// before is how many events come before the log's.
func (w *window) before() int {
	if w.older == nil {
		return 0
	}
	return w.older.n
}

func (w *window) At(i int) *Event {
	if i < 0 || i >= w.Len() {
		panic("session: event index out of range")
	}
	n := w.before()
	if i < n {
		return w.older.at(i)
	}
	return w.log.at(w.from + i - n)
}

func (w *window) All() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for i := range w.before() {
			if !yield(w.older.at(i)) {
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
