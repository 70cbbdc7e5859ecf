// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"time"
)

// Session is one conversation as its holder sees it: the contents of the store when it was fetched, plus
// the events that the holder has appended since.
type Session interface {
	ID() string
	AppName() string
	UserID() string
	// State returns the sum of the events' state deltas.
	State() State
	// Events returns the log, or the requested part of it. Implementations outside this project
	// may return nil, which means no events.
	Events() Events
	// LastUpdateTime returns when the last event was appended or, without events, when the
	// session was created.
	LastUpdateTime() time.Time
}

// ReadonlyState is a session's state for a caller that may only read it.
type ReadonlyState interface {
	// Get returns the value of a key, or [ErrStateKeyNotExist].
	Get(key string) (any, error)
	// All yields every key with its value, in no order.
	All() iter.Seq2[string, any]
}

// State is a session's state. Its values are shared: do not change a map or a slice
// that you have read, but set a new one.
type State interface {
	ReadonlyState
	// Set changes a value for this holder at once; Get then returns its [Plain] form. In the context of a
	// callback or a tool, the value is written into that call's event. The state of a session in a run has
	// no event to write to, so Set returns [ErrNotLogged], except for temp: keys. For a value that JSON
	// cannot hold, Set returns [ErrNotJSON].
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

// LastSeen returns the sequence number of the newest event of a session, or 0 if it has none.
// Stores compare this number with that of their last event.
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
	// KeyPrefixApp is for keys that all sessions of an application share, but for the runs of the cases of an eval: each of these, whose ID
	// begins with the ID of the eval and a dot ("ev_3f2a1c."), has its own app: and user: keys.
	KeyPrefixApp string = "app:"
	// KeyPrefixUser is for keys that all sessions of one user share.
	KeyPrefixUser string = "user:"
	// KeyPrefixTemp is for keys that live as long as the invocation.
	KeyPrefixTemp string = "temp:"
	// KeyPrefixIteration is for keys that live as long as the iteration of the
	// nearest loop.
	KeyPrefixIteration string = "iteration:"
)
