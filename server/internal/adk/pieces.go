// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/session"
)

// Pieces hands the pieces of streamed answers to the streams of their runs. No log has them. A stream that does not take
// its pieces loses the later ones; the whole answer follows from the log.
type Pieces struct {
	mu   sync.Mutex
	runs map[string][]*pieces
}

// piecesMost is how many pieces wait for a stream.
const piecesMost = 1000

// pieces are those of one run for one stream.
type pieces struct {
	wake chan struct{} // there are new ones
	of   *Pieces

	seen int64 // the last whole event of the run; of.mu guards it and list
	list []piece
}

// piece is an event that came when the log ended with an event.
type piece struct {
	behind int64
	ev     *session.Event
}

// Hear takes an event of a run that this process drives, whole or a piece.
func (p *Pieces) Hear(id string, ev *session.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.runs[id] {
		l.hear(ev)
	}
}

// follow returns the pieces of a run from now on, until stop is called.
func (p *Pieces) follow(id string) (l *pieces, stop func()) {
	l = &pieces{wake: make(chan struct{}, 1), of: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = make(map[string][]*pieces)
	}
	p.runs[id] = append(p.runs[id], l)
	return l, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.runs[id] = slices.DeleteFunc(p.runs[id], func(o *pieces) bool { return o == l })
		if len(p.runs[id]) == 0 {
			delete(p.runs, id)
		}
	}
}

// hear takes an event, and never waits. of.mu is held.
func (l *pieces) hear(ev *session.Event) {
	if !ev.Partial {
		l.seen = max(l.seen, ev.Seq)
		return
	}
	if len(l.list) == piecesMost || ev.Content == nil {
		return
	}
	l.list = append(l.list, piece{l.seen, ev})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the pieces that came before the event behind the one with this number.
func (l *pieces) take(seen int64) (evs []*session.Event) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	n := 0
	for n < len(l.list) && l.list[n].behind <= seen {
		evs = append(evs, l.list[n].ev)
		n++
	}
	l.list = l.list[n:]
	return evs
}
