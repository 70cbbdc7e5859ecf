// SPDX-License-Identifier: Apache-2.0

package drive

import "iter"

// loggedEvent is an event of a replayLog.
type loggedEvent struct {
	seq   int64
	owner *stepRun // nil for an event that is not replayed, or was consumed
}

// eventPages is a list of events that grows without copying them. It has no pages after all events were consumed.
type eventPages struct {
	pages [][]loggedEvent // all but the last have pageSize events
	n     int
}

const pageSize = 4096

func (p *eventPages) add(e loggedEvent) {
	if p.n%pageSize == 0 {
		p.pages = append(p.pages, nil)
	}
	last := &p.pages[len(p.pages)-1]
	*last = append(*last, e)
	p.n++
}

func (p *eventPages) at(i int32) *loggedEvent {
	if p.pages == nil {
		return &loggedEvent{}
	}
	return &p.pages[i/pageSize][i%pageSize]
}

// all returns the places and the events, in order.
func (p *eventPages) all() iter.Seq2[int32, *loggedEvent] {
	return func(yield func(int32, *loggedEvent) bool) {
		for i := range int32(p.n) {
			if !yield(i, p.at(i)) {
				return
			}
		}
	}
}
