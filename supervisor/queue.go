// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"slices"
	"sync"
)

// queue admits a limited number of runs at once, in the order in which they joined. A guest also needs a place among the
// guests. While there is no such place, the queue admits other runs before the guest.
type queue struct {
	mostWaiting int // how many guests may wait; 0 means no limit

	mu          sync.Mutex
	all, guests places
	waiting     []*ticket
}

// places counts the free places for all runs, or for the guests.
type places struct {
	unbounded bool
	free      int
}

func newPlaces(most int) places { return places{free: most, unbounded: most == 0} }

func (p *places) isFull() bool { return p.free <= 0 && !p.unbounded }

// ticket is a run in the queue, or one that the queue has admitted.
type ticket struct {
	admitted chan struct{} // closed when the run has its turn
	guest    bool
}

// join asks for a place. If the ticket may be refused, and too many guests wait, it returns [ErrQueueFull].
func (q *queue) join(t *ticket, refusable bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, t)
	q.admit()
	if !refusable || q.mostWaiting == 0 || !t.guest || t.hasTurn() {
		return nil
	}
	n := 0
	for _, one := range q.waiting {
		if one.guest {
			n++
		}
	}
	if n > q.mostWaiting {
		q.waiting = q.waiting[:len(q.waiting)-1]
		return fmt.Errorf("%w: %d runs of clients' definitions wait, and the limit is %d: try again when some of them have ended, "+
			"or cancel them", ErrQueueFull, n-1, q.mostWaiting)
	}
	return nil
}

// admit admits the runs for which there is a place. q.mu is held.
func (q *queue) admit() {
	q.waiting = slices.DeleteFunc(q.waiting, func(t *ticket) bool {
		if q.all.isFull() || t.guest && q.guests.isFull() {
			return false
		}
		if q.all.free--; t.guest {
			q.guests.free--
		}
		close(t.admitted)
		return true
	})
}

// leave gives back the place of an admitted run, or removes a waiting run from the queue.
func (q *queue) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	if !t.hasTurn() {
		return // the run has not joined
	}
	if q.all.free++; t.guest {
		q.guests.free++
	}
	q.admit()
}

// hasTurn reports whether the run has been admitted.
func (t *ticket) hasTurn() bool {
	select {
	case <-t.admitted:
		return true
	default:
		return false
	}
}
