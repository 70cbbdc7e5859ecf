// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"time"
)

// Session is one conversation thread as its holder sees it: what was in the
// store when it was fetched, and what its holder has appended since.
type Session interface {
	ID() string
	AppName() string
	UserID() string
	// State is the sum of the events' state deltas.
	State() State
	// Events is the log, or the part of it that was asked for. Other
	// implementations than this project's may return nil: no events.
	Events() Events
	// LastUpdateTime is when the last event was appended, or when the session
	// was created.
	LastUpdateTime() time.Time
}

// ReadonlyState is a session's state for those who may only read it.
type ReadonlyState interface {
	// Get returns a value, or [ErrStateKeyNotExist].
	Get(key string) (any, error)
	// All yields every key with its value, in no order.
	All() iter.Seq2[string, any]
}

// State is a session's state. Values read from it are shared: do not change
// what a map or a slice in it holds, set a new one.
type State interface {
	ReadonlyState
	// Set changes a value for this holder at once: Get returns what [Plain] makes of
	// it. The state of a context of a callback or a tool writes the value into that
	// call's event. The state of a session in a run has no event to write to: there
	// Set returns [ErrNotLogged], except for temp: keys. For a value that JSON cannot
	// hold it returns [ErrNotJSON].
	Set(key string, value any) error
}

// Events is a fixed sequence of events, oldest first. Later appends do not
// change it.
type Events interface {
	All() iter.Seq[*Event]
	Len() int
	// At returns the i-th event, from 0; it panics if there is none.
	At(i int) *Event
}

// LastSeen returns the sequence number of the newest event that a session shows. It
// is 0 for a session without events, and for one whose Events is nil. It is for
// stores: the next event follows this one.
func LastSeen(s Session) int64 {
	if v := ViewBehind(s); v != nil {
		return v.LastSeq()
	}
	evs := s.Events()
	if evs == nil {
		return 0
	}
	if n := evs.Len(); n > 0 {
		return evs.At(n - 1).Seq
	}
	return 0
}

// Prefixes of state keys. A key without one belongs to its session.
const (
	// KeyPrefixApp is for keys that all sessions of an application share.
	KeyPrefixApp string = "app:"
	// KeyPrefixUser is for keys that all sessions of one user share.
	KeyPrefixUser string = "user:"
	// KeyPrefixTemp is for keys that live as long as the invocation.
	KeyPrefixTemp string = "temp:"
	// KeyPrefixIteration is for keys that live as long as the iteration of the
	// nearest loop.
	KeyPrefixIteration string = "iteration:"
)
