// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// View is the Session that this project's services hand out: a snapshot of the
// log and the state, kept up to date with what its one holder appends. It is
// safe for concurrent use by the agents of one run.
type View struct {
	appName, userID, id string
	rec                 *record // the in-memory service's own; nil elsewhere

	mu      sync.Mutex
	events  window
	shared  bool         // events is a snapshot of the record's log
	seq     atomic.Int64 // written under mu, read without
	state   map[string]any
	scoped  []scopedValue // iteration: keys
	updated time.Time
	notes         // the log's own keys
	past    *past // of a rewound view; else nil
}

// ViewConfig is what a store knows about a session when it makes a [View].
type ViewConfig struct {
	AppName, UserID, SessionID string
	// State is given away to the view; app: and user: keys included.
	State map[string]any
	// Events are those that the view shows, oldest first.
	Events []*Event
	// Older is how many more it shows before them. Load reads those when
	// somebody looks at them: the events whose Seq is from first to last.
	Older int
	Load  func(first, last int64) ([]*Event, error)
	// LastSeq is the sequence number of the session's last event, shown or not.
	LastSeq int64
	// Updated is the time of the last event, or of the creation.
	Updated time.Time
}

// NewView returns a session for a store that has read it, or for tests.
func NewView(cfg ViewConfig) *View {
	v := &View{
		appName: cfg.AppName, userID: cfg.UserID, id: cfg.SessionID,
		state: cfg.State, updated: cfg.Updated,
	}
	v.seq.Store(cfg.LastSeq)
	for _, e := range cfg.Events {
		v.events.log.append(e)
	}
	if cfg.Older > 0 {
		v.events.older = newOlder(cfg.LastSeq-int64(len(cfg.Events)+cfg.Older)+1, cfg.Older, cfg.Load)
	}
	v.adopt()
	return v
}

// ViewOf returns s itself if it is a View, and else a View of what s shows.
func ViewOf(s Session) *View {
	if v, ok := s.(*View); ok {
		return v
	}
	cfg := ViewConfig{
		AppName: s.AppName(), UserID: s.UserID(), SessionID: s.ID(),
		State: maps.Collect(s.State().All()), Updated: s.LastUpdateTime(), LastSeq: lastSeq(s),
	}
	for e := range s.Events().All() {
		cfg.Events = append(cfg.Events, e)
	}
	return NewView(cfg)
}

// lastSeq is the newest sequence number that a session has seen.
func lastSeq(s Session) int64 {
	if v, ok := s.(*View); ok {
		return v.LastSeq()
	}
	evs := s.Events()
	if n := evs.Len(); n > 0 {
		return evs.At(n - 1).Seq
	}
	return 0
}

// ID is the session's own ID.
func (v *View) ID() string { return v.id }

// AppName is the application that the session belongs to.
func (v *View) AppName() string { return v.appName }

// UserID is the user that the session belongs to.
func (v *View) UserID() string { return v.userID }

// LastUpdateTime is when the last event was appended, or the session created.
func (v *View) LastUpdateTime() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.updated
}

// LastSeq is the sequence number of the last event that the view knows of.
func (v *View) LastSeq() int64 { return v.seq.Load() }

// Events is the log as it stands now, without events that are superseded; see
// [KeySuperseded].
func (v *View) Events() Events {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gaps == nil && (v.past == nil || v.past.to == 0) {
		w := v.events
		return &w
	}
	s := &shown{window: v.events, gaps: v.gaps}
	if v.past != nil {
		s.to = v.past.to
	}
	return s
}

// Err is why the store could not read events that the view shows; nil as long as
// it could. The events themselves then say so in their ErrorCode, UNREADABLE,
// and ErrorMessage. Nothing can be appended through such a view: get the session
// again.
func (v *View) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.events.older != nil {
		if err := v.events.older.err.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// State reads and writes the state as the whole run sees it.
func (v *View) State() State { return stateAt{view: v} }

// StateAt is State as the step at an address sees it: its iteration: keys are
// those of the loops that it is in.
func (v *View) StateAt(a Address) State { return stateAt{view: v, at: a} }

// Apply adds an event that a store has just appended. A store calls it on the
// view that it was given; the event's Seq is set.
func (v *View) Apply(ev *Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(ev)
}

// add puts an event at the end of what the view shows. v.mu is held.
func (v *View) add(ev *Event) {
	if v.shared {
		v.events.log, v.shared = v.events.log.fork(), false
	}
	v.events.log.append(ev)
	if v.past != nil {
		v.past.appended(ev)
	}
	v.advance(ev)
}

// advance takes in an event that is in the log. v.mu is held.
func (v *View) advance(ev *Event) {
	v.seq.Store(ev.Seq)
	v.updated = ev.Timestamp
	for k, val := range ev.Actions.StateDelta {
		v.set(k, val, ev.Address)
	}
}
