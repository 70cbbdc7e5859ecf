// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"slices"
	"sync"
)

// queue admits a limited number of callers at once, in the order in which they joined.
type queue struct {
	unbounded bool

	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

// join asks for a place. The channel is closed when there is one.
func (q *queue) join() (place chan struct{}) {
	place = make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.unbounded:
		close(place)
	case q.free > 0:
		q.free--
		close(place)
	default:
		q.waiting = append(q.waiting, place)
	}
	return place
}

// leave gives a place back, or the wait for one up.
func (q *queue) leave(place chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, place); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	if q.unbounded {
		return
	}
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	close(q.waiting[0])
	q.waiting = q.waiting[1:]
}
