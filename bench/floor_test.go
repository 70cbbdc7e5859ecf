// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/session"
)

// floorKind is how one floor makes an event and what of it changes state.
type floorKind[E any] struct {
	event func(author string, iteration int) *E
	merge func(state map[string]any, ev *E)
}

// bare is the least that an event can be.
type bare struct {
	ID        string
	Timestamp time.Time
	Author    string
	Iteration int
	Text      string
	Key       string
	Value     any
}

var (
	bareEvent = floorKind[bare]{
		event: func(author string, iteration int) *bare {
			said := strings.Clone(text)
			return &bare{Author: author, Iteration: iteration, Text: said, Key: key, Value: said}
		},
		merge: func(state map[string]any, ev *bare) { state[ev.Key] = ev.Value },
	}
	bareEventWithID = floorKind[bare]{
		event: func(author string, iteration int) *bare {
			ev := bareEvent.event(author, iteration)
			ev.ID, ev.Timestamp = uuid.NewString(), time.Now()
			return ev
		},
		merge: bareEvent.merge,
	}
	fullEvent = floorKind[session.Event]{
		event: func(author string, iteration int) *session.Event {
			ev := ours.NewEvent(context.Background(), "run-1")
			ev.Author, ev.Iteration = author, iteration
			return ev
		},
		merge: func(state map[string]any, ev *session.Event) { maps.Copy(state, ev.Actions.StateDelta) },
	}
)

// agent is the innermost of the three layers.
func (k floorKind[E]) agent(name string, iteration int) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) { yield(k.event(name, iteration), nil) }
}

func (k floorKind[E]) loop(iterations int) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		for i := range iterations {
			for _, name := range ours.Names {
				for ev, err := range k.agent(name, i+1) {
					if !yield(ev, err) {
						return
					}
				}
			}
		}
	}
}

// root is the outermost layer; it keeps the events in s unless that is nil.
func (k floorKind[E]) root(iterations int, s *thread[E]) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		for ev, err := range k.loop(iterations) {
			if s != nil {
				s.append(ev, k.merge)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// thread is a session at its barest: a log in chunks, a state and a lock.
type thread[E any] struct {
	mu    sync.Mutex
	log   [][]*E
	state map[string]any
}

func (s *thread[E]) append(ev *E, merge func(map[string]any, *E)) {
	const chunk = 64
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.log) - 1
	if last < 0 || len(s.log[last]) == chunk {
		s.log = append(s.log, make([]*E, 0, chunk))
		last++
	}
	s.log[last] = append(s.log[last], ev)
	merge(s.state, ev)
}

func newThread[E any]() *thread[E] { return &thread[E]{state: make(map[string]any)} }

func bareDirect[E any](k floorKind[E]) func(int) (op, error) {
	return func(iterations int) (op, error) {
		return func() (int, error) { return count(k.root(iterations, nil)) }, nil
	}
}

func bareRunner[E any](k floorKind[E]) func(int) (op, error) {
	return func(iterations int) (op, error) {
		return func() (int, error) { return count(k.root(iterations, newThread[E]())) }, nil
	}
}

func bareConcurrent[E any](k floorKind[E]) func(int, int) (op, error) {
	return func(sessions, iterations int) (op, error) {
		return func() (int, error) {
			var mu sync.Mutex
			kept := make(map[string]*thread[E])
			return ours.AtOnce(sessions, func(id string) (int, error) {
				s := newThread[E]()
				mu.Lock()
				kept[id] = s
				mu.Unlock()
				return count(k.root(iterations, s))
			})
		}, nil
	}
}

// count drains a floor.
func count[E any](events iter.Seq2[E, error]) (n int, err error) {
	for _, err := range events {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// eventsAlone is the floor under everything that has events: they are made, and
// nothing is done with them.
func eventsAlone(n int) op {
	return func() (int, error) {
		for range n {
			made = ours.NewEvent(context.Background(), "run-1")
		}
		return n, nil
	}
}

// made keeps the compiler from leaving out the event.
var made *session.Event
