// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"
	"iter"
	"maps"

	"github.com/refrain-dev/refrain/session"
)

// State returns the session's state as the step sees it, with the iteration: keys of its own
// loops. In a callback or a tool call it includes what that call has set.
func (p Place) State() session.State {
	return stateAt(p.ctx.Session(), p.Address())
}

func stateAt(s session.Session, at session.Address) session.State {
	if v, ok := s.(scoped); ok {
		return v.StateAt(at)
	}
	return s.State()
}

// valueAt is what stateAt has for a key; it makes no state for that.
func valueAt(s session.Session, at session.Address, key string) (any, error) {
	switch s := s.(type) {
	case *callSession:
		if val, changed, err := s.call.changed(key); changed {
			return val, err
		}
		return valueAt(s.Session, at, key)
	case fencedSession:
		return valueAt(s.Session, at, key)
	}
	return stateAt(s, at).Get(key)
}

// StateAt returns the session's state as a step at another address sees it.
func (p Place) StateAt(at session.Address) session.State { return stateAt(p.ctx.Session(), at) }

// StateMap returns the given keys that StateAt has, or if all is true every key. The map may be
// shared, so do not change it.
func (p Place) StateMap(at session.Address, keys []string, all bool) map[string]any {
	s := p.StateAt(at)
	if all {
		return stateMap(s)
	}
	m := make(map[string]any, len(keys))
	for _, k := range keys {
		if v, err := s.Get(k); err == nil {
			m[k] = v
		}
	}
	return m
}

// StateSize returns the [session.StateSize] of StateAt.
func (p Place) StateSize(at session.Address) int64 { return stateSize(p.StateAt(at)) }

// measured is a state that caches its map and its size, as that of a [session.View] does.
type measured interface {
	Map() map[string]any
	Size() int64
}

func stateMap(s session.State) map[string]any {
	if m, ok := s.(measured); ok {
		return m.Map()
	}
	return maps.Collect(s.All())
}

func stateSize(s session.State) int64 {
	if m, ok := s.(measured); ok {
		return m.Size()
	}
	return session.StateSize(maps.Collect(s.All()))
}

// EndIteration removes the iteration: keys of the iterations at and below an address. It is for
// loops.
func (p Place) EndIteration(pass session.Address) { endIteration(p.ctx.Session(), pass) }

func endIteration(s session.Session, pass session.Address) {
	if v, ok := s.(scoped); ok {
		v.EndIteration(pass)
	}
}

// callSession is a session as one callback or tool call sees it. Changes of the call are only
// in its own event until that event is in the log; if it is never appended, nobody else sees
// them.
type callSession struct {
	session.Session
	call *callContext
}

// Unwrap returns the wrapped session.
func (s *callSession) Unwrap() session.Session { return s.Session }

func (s *callSession) State() session.State { return callState{s.Session.State(), s} }

func (s *callSession) StateAt(at session.Address) session.State {
	return callState{stateAt(s.Session, at), s}
}

func (s *callSession) EndIteration(pass session.Address) {
	endIteration(s.Session, pass)
}

// callState is a state with the changes of one call.
type callState struct {
	session.State
	of *callSession
}

func (s callState) Get(key string) (any, error) {
	if val, changed, err := s.of.call.changed(key); changed {
		return val, err
	}
	return s.State.Get(key)
}

// changed returns the value that the call has set for a key, if any.
func (c *callContext) changed(key string) (val any, changed bool, err error) {
	c.mu.Lock()
	val, changed = c.actions.StateDelta[key]
	c.mu.Unlock()
	if !changed {
		return nil, false, nil
	}
	val, err = session.Plain(val) // it may have been written to the actions directly
	switch {
	case err != nil:
		return nil, true, fmt.Errorf("state key %q: %w", key, err)
	case val == nil:
		return nil, true, session.ErrStateKeyNotExist
	}
	return val, true, nil
}

func (s callState) Set(key string, value any) error {
	value, err := session.Plain(value)
	if err != nil {
		return fmt.Errorf("state key %q: %w", key, err)
	}
	write := func() error {
		c := s.of.call
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.actions.StateDelta == nil {
			c.actions.StateDelta = make(map[string]any)
		}
		c.actions.StateDelta[key] = value
		return nil
	}
	if f, ok := s.State.(fencedState); ok {
		return f.fence.write(write)
	}
	return write()
}

func (s callState) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		c := s.of.call
		c.mu.Lock()
		set := make(map[string]any, len(c.actions.StateDelta))
		maps.Copy(set, c.actions.StateDelta)
		c.mu.Unlock()
		for k, val := range s.State.All() {
			if _, again := set[k]; !again && !yield(k, val) {
				return
			}
		}
		for k, val := range set {
			if val, err := session.Plain(val); err == nil && val != nil && !yield(k, val) {
				return
			}
		}
	}
}
