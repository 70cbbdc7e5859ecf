// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"iter"
	"maps"

	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/session"
)

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
	return callState{driver.StateAt(s.Session, at), s}
}

func (s *callSession) EndIteration(pass session.Address) {
	driver.EndIteration(s.Session, pass)
}

// callState is a state with the changes of one call.
type callState struct {
	session.State
	of *callSession
}

func (s callState) Get(key string) (any, error) {
	if val, changed, err := s.of.Changed(key); changed {
		return val, err
	}
	return s.State.Get(key)
}

// Changed returns the value that the call has set for a key, if any.
func (s *callSession) Changed(key string) (val any, changed bool, err error) {
	c := s.call
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
	if f, ok := s.State.(driver.Fenced); ok {
		return f.Write(write)
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
