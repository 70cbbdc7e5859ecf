// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"iter"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/session"
)

// stepSession is a session as it is seen by steps that are within a fence, or that give a later answer of a judge.
type stepSession struct {
	session.Session
	fence *fence // nil if there is none
	loop  *Loop  // whose later answer the steps give; nil if they see all of the state
}

// seenBy returns a session as the steps of an invocation see it.
func (i *invocation) seenBy(s session.Session) session.Session {
	for at := i.loop; at != nil; at = at.Outer {
		if at.Sample.Later() {
			return stepSession{s, i.fence, i.loop}
		}
	}
	switch {
	case i.fence == nil:
		return s
	case i.fence.run == i.run:
		return i.fence.session
	}
	return stepSession{s, i.fence, nil}
}

// Unwrap returns the wrapped session.
func (s stepSession) Unwrap() session.Session { return s.Session }

func (s stepSession) State() session.State { return stepState{s.Session.State(), s.fence, s.loop} }

func (s stepSession) StateAt(at session.Address) session.State {
	return stepState{driver.StateAt(s.Session, at), s.fence, s.loop}
}

func (s stepSession) EndIteration(pass session.Address) {
	_ = s.fence.write(func() error { driver.EndIteration(s.Session, pass); return nil })
}

// stepState is the state of a stepSession.
type stepState struct {
	session.State
	fence *fence
	loop  *Loop
}

func (s stepState) Get(key string) (any, error) {
	if v, hidden := s.loop.valueBefore(key); hidden {
		return v.get()
	}
	return s.State.Get(key)
}

// Set sets a value, and makes it visible to the step.
func (s stepState) Set(key string, value any) error {
	err := s.fence.write(func() error { return s.State.Set(key, value) })
	for l := s.loop; l != nil && err == nil; l = l.Outer {
		l.Sample.show(slices.Values([]string{key}))
	}
	return err
}

// Write calls do, unless a fence is closed.
func (s stepState) Write(do func() error) error {
	return s.fence.write(func() error {
		if f, ok := s.State.(driver.Fenced); ok {
			return f.Write(do)
		}
		return do()
	})
}

func (s stepState) All() iter.Seq2[string, any] {
	if s.loop == nil {
		return s.State.All()
	}
	return maps.All(s.Map())
}

// Map returns all keys as the step sees them. The map may be shared.
func (s stepState) Map() map[string]any {
	if s.loop == nil {
		return stateMap(s.State)
	}
	m := maps.Clone(stateMap(s.State))
	for l := s.loop; l != nil; l = l.Outer {
		if !l.Sample.Later() {
			continue
		}
		for key := range *l.Sample.valuesBefore.Load() {
			if v, err := s.Get(key); err == nil {
				m[key] = v
			} else {
				delete(m, key)
			}
		}
	}
	return m
}

func (s stepState) Size() int64 {
	if s.loop == nil {
		return stateSize(s.State)
	}
	return session.StateSize(s.Map())
}
