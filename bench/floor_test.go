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

	"github.com/refrain-dev/refrain/session"
)

// floorKind is how one floor makes an event and what of it changes state.
type floorKind[E any] struct {
	event func(c content, author string, iteration int) *E
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
		event: func(c content, author string, iteration int) *bare {
			ev := &bare{Author: author, Iteration: iteration, Key: key}
			if c == shared {
				ev.Text, ev.Value = text, text
			} else {
				ev.Text = strings.Clone(text)
				ev.Value = ev.Text
			}
			return ev
		},
		merge: func(state map[string]any, ev *bare) { state[ev.Key] = ev.Value },
	}
	bareEventWithID = floorKind[bare]{
		event: func(c content, author string, iteration int) *bare {
			ev := bareEvent.event(c, author, iteration)
			ev.ID, ev.Timestamp = uuid.NewString(), time.Now()
			return ev
		},
		merge: bareEvent.merge,
	}
	fullEvent = floorKind[session.Event]{
		event: func(c content, author string, iteration int) *session.Event {
			ev := newEvent(context.Background(), "run-1", c)
			ev.Author, ev.Iteration = author, iteration
			return ev
		},
		merge: func(state map[string]any, ev *session.Event) { maps.Copy(state, ev.Actions.StateDelta) },
	}
)

// agent is the innermost of the three layers.
func (k floorKind[E]) agent(c content, name string, iteration int) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) { yield(k.event(c, name, iteration), nil) }
}

func (k floorKind[E]) loop(c content, iterations int) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		for i := range iterations {
			for _, name := range names {
				for ev, err := range k.agent(c, name, i+1) {
					if !yield(ev, err) {
						return
					}
				}
			}
		}
	}
}

// root is the outermost layer; it keeps the events in s unless that is nil.
func (k floorKind[E]) root(c content, iterations int, s *thread[E]) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		for ev, err := range k.loop(c, iterations) {
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

func bareDirect[E any](k floorKind[E]) func(int, content) (op, error) {
	return func(iterations int, c content) (op, error) {
		return func() (int, error) { return count(k.root(c, iterations, nil)) }, nil
	}
}

func bareRunner[E any](k floorKind[E]) func(int, content) (op, error) {
	return func(iterations int, c content) (op, error) {
		return func() (int, error) { return count(k.root(c, iterations, newThread[E]())) }, nil
	}
}

func bareConcurrent[E any](k floorKind[E]) func(int, int, content) (op, error) {
	return func(sessions, iterations int, c content) (op, error) {
		return func() (int, error) {
			var mu sync.Mutex
			kept := make(map[string]*thread[E])
			return atOnce(sessions, func(id string) (int, error) {
				s := newThread[E]()
				mu.Lock()
				kept[id] = s
				mu.Unlock()
				return count(k.root(c, iterations, s))
			})
		}, nil
	}
}
