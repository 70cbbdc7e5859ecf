// SPDX-License-Identifier: Apache-2.0

// Package driver is what packages agent and drive agree on. Drive imports agent, so agent calls drive through it.
package driver

import "github.com/refrain-dev/refrain/session"

// Run is drive.Run: a func(agent.InvocationContext, agent.Agent)
// iter.Seq2[*session.Event, error]. Package drive sets it in its init
// function; it is nil in a program that has no package drive.
var Run any

// AddressKey is the key under which the context of a step has the address of its [session.Address]: a pointer, which must not be written to.
type AddressKey struct{}

// StateAt returns the state of a session as a step at an address sees it.
func StateAt(s session.Session, at session.Address) session.State {
	if v, ok := s.(loopScopes); ok {
		return v.StateAt(at)
	}
	return s.State()
}

// EndIteration removes the iteration: keys of the iterations at and below an address.
func EndIteration(s session.Session, pass session.Address) {
	if v, ok := s.(loopScopes); ok {
		v.EndIteration(pass)
	}
}

// loopScopes is a session that tells loops apart by address, as a [session.View] does.
type loopScopes interface {
	StateAt(session.Address) session.State
	EndIteration(pass session.Address)
}

// Call is a session as one callback or tool call sees it.
type Call interface {
	session.Session
	// Changed returns the value that the call has set for a key, if any.
	Changed(key string) (val any, changed bool, err error)
	// Unwrap returns the session without those changes.
	Unwrap() session.Session
}

// Fenced is a state of a step that may be abandoned.
type Fenced interface {
	// Write calls do, unless the step was abandoned.
	Write(do func() error) error
}
