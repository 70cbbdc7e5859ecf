// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
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
	weight  held         // of the events
	shared  bool         // events is a snapshot of the record's log
	seq     atomic.Int64 // written under mu, read without
	state   map[string]any
	scoped  []scopedValue // iteration: keys
	updated time.Time
	held    bool  // see HoldToLog
	notes         // the log's own keys
	past    *past // of a rewound view; else nil

	stateOnly bool // no events are kept
}

// ViewConfig is what a store knows about a session when it makes a [View].
type ViewConfig struct {
	AppName, UserID, SessionID string
	// State is given away to the view; app: and user: keys included. A view has its
	// values as [Plain] has them, and leaves out those of which that is an error.
	State map[string]any
	// Events are those that the view shows, oldest first.
	Events []*Event
	// Older is how many more it shows before them. Load reads those when
	// somebody looks at them: the events whose Seq is from first to last. A view
	// with a Load keeps only as many of its events as it may, and reads the others
	// again.
	Older int
	Load  func(first, last int64) ([]*Event, error)
	// Outline is Load for whoever needs no long texts: it may leave them out, and
	// sets [Event.Omitted] then. It is optional.
	Outline func(first, last int64) ([]*Event, error)
	// LastSeq is the sequence number of the session's last event, shown or not.
	LastSeq int64
	// Updated is the time of the last event, or of the creation.
	Updated time.Time
	// StateOnly says that the view keeps no events, only what they come to.
	StateOnly bool
}

// NewView returns a session for a store that has read it, or for tests.
func NewView(cfg ViewConfig) *View {
	v := &View{
		appName: cfg.AppName, userID: cfg.UserID, id: cfg.SessionID,
		state: possible(cfg.State), updated: cfg.Updated, stateOnly: cfg.StateOnly,
	}
	v.seq.Store(cfg.LastSeq)
	if cfg.Load != nil {
		v.events.older = &older{load: cfg.Load, outline: cfg.Outline}
	}
	if cfg.Older > 0 {
		v.events.before, v.events.first = cfg.Older, cfg.LastSeq-int64(len(cfg.Events)+cfg.Older)+1
	}
	for _, e := range cfg.Events {
		v.keep(e)
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
		State: make(map[string]any), Updated: s.LastUpdateTime(), LastSeq: LastSeen(s),
	}
	if state := s.State(); state != nil {
		maps.Insert(cfg.State, state.All())
	}
	if evs := s.Events(); evs != nil {
		cfg.Events = slices.Collect(evs.All())
	}
	return NewView(cfg)
}

// ViewBehind returns the View that s is, or that it wraps: a wrapper has a method
// Unwrap() Session, as what an agent or a tool gets for its session does. It is nil
// if there is none. It is for stores.
func ViewBehind(s Session) *View {
	for {
		if v, ok := s.(*View); ok {
			return v
		}
		w, ok := s.(interface{ Unwrap() Session })
		if !ok {
			return nil
		}
		s = w.Unwrap()
	}
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
// [mark.KeySuperseded].
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

// HoldToLog makes the log the only source of the state: from now on Set returns
// [ErrNotLogged], except for temp: keys, which no log has. A runner calls it.
func (v *View) HoldToLog() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = true
}

// Apply adds an event that a store has just appended. A store calls it on the
// view that it was given; the event's Seq is set. The values of its delta become
// what [Plain] makes of them, where that is not done yet.
func (v *View) Apply(ev *Event) {
	if ev.Actions.Normalize() != nil {
		ev.Actions.StateDelta = possible(maps.Clone(ev.Actions.StateDelta))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(ev)
}

// add puts an event at the end of what the view shows. v.mu is held.
func (v *View) add(ev *Event) {
	if v.shared {
		v.events.log, v.shared = v.events.log.fork(), false
	}
	v.keep(ev)
	if v.past != nil {
		v.past.appended(ev)
	}
	v.advance(ev)
}

// keep puts an event at the end of the view's log. v.mu is held.
func (v *View) keep(ev *Event) {
	if v.stateOnly {
		return
	}
	v.events.log.append(ev)
	if v.events.older != nil {
		v.events.appended(&v.weight)
	}
}

// advance takes in an event that is in the log. v.mu is held.
func (v *View) advance(ev *Event) {
	v.seq.Store(ev.Seq)
	v.updated = ev.Timestamp
	for k, val := range ev.Actions.StateDelta {
		v.set(k, val, ev.Address)
	}
}
