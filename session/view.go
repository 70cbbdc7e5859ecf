// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// View is the Session that the services of this project return: a snapshot of the log and the state, plus the
// events that its holder appends. It is safe for concurrent use by the agents of one run.
type View struct {
	appName, userID, id string
	rec                 *record // the record in the in-memory service; nil for other services

	mu      sync.Mutex
	log     viewLog
	seq     atomic.Int64 // written under mu, read without it
	state   viewState
	updated time.Time
	logOnly bool         // see RequireLog
	logKeys              // the log's own keys
	rewind  *rewindState // nil if the view is not rewound
	chain   *runChain    // nil until a caller needs it
}

// viewLog is the log of a view.
type viewLog struct {
	window      window
	weight      int   // of the events in memory, in bytes
	pendingFrom int64 // the first event that the store does not have yet; 0: the store has all
	isSnapshot  bool  // the window is a snapshot of the record's log
	stateOnly   bool  // the view keeps no events
}

// viewState is the state of a view.
type viewState struct {
	values          map[string]any
	asMap           map[string]any   // a copy of values for readers; nil until the first reader asks
	sizes           map[string]int64 // of each key in values, in bytes; nil until the first caller asks for the size
	size            int64
	iterationValues []iterationValue
}

// ViewConfig describes a session to [NewView].
type ViewConfig struct {
	AppName, UserID, SessionID string
	// State includes app: and user: keys. The view owns the map from then on: it makes the values plain
	// (see [Plain]), and removes those that JSON cannot hold.
	State map[string]any
	// Events are the events that the view shows, oldest first.
	Events []*Event
	// Older is the number of further events before them. Load reads events by their
	// Seq, from first to last, when a caller asks for them. A view with a Load holds
	// 8 MiB of events in memory, or less where many share it (see [Pending.Share]), and
	// reads the others again.
	Older int
	Load  func(first, last int64) ([]*Event, error)
	// Outline is like Load, but may cut off long texts and set [Event.Omitted]. It is
	// optional.
	Outline func(first, last int64) ([]*Event, error)
	// LastSeq is the sequence number of the session's last event, shown or not.
	LastSeq int64
	// Updated is the time of the last event, or of the creation.
	Updated time.Time
	// StateOnly makes a view that keeps the state and no events.
	StateOnly bool
}

// NewView returns a View of a session that a store has read. Tests use it too.
func NewView(cfg ViewConfig) *View {
	v := &View{
		appName: cfg.AppName, userID: cfg.UserID, id: cfg.SessionID,
		state: viewState{values: encodable(cfg.State)}, updated: cfg.Updated, log: viewLog{stateOnly: cfg.StateOnly},
	}
	v.seq.Store(cfg.LastSeq)
	if cfg.Load != nil {
		v.log.window.older = &pager{load: cfg.Load, outline: cfg.Outline}
	}
	if cfg.Older > 0 {
		v.log.window.before, v.log.window.first = cfg.Older, cfg.LastSeq-int64(len(cfg.Events)+cfg.Older)+1
	}
	for _, e := range cfg.Events {
		v.log.append(e)
	}
	v.adoptLogKeys()
	return v
}

// ViewOf returns s itself if it is a View, and otherwise a View with a copy of its contents.
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

// ViewBehind returns the View that s is or wraps, nil if there is none. A wrapper, such
// as the session that agents and tools get, has a method Unwrap() Session. ViewBehind
// is for stores.
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

// ID returns the session's own ID.
func (v *View) ID() string { return v.id }

// AppName returns the application that the session belongs to.
func (v *View) AppName() string { return v.appName }

// UserID returns the user that the session belongs to.
func (v *View) UserID() string { return v.userID }

// LastUpdateTime returns when the last event was appended, or the session created.
func (v *View) LastUpdateTime() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.updated
}

// LastSeq returns the sequence number of the last event that the view has seen.
func (v *View) LastSeq() int64 { return v.seq.Load() }

// Events returns the log as it is now, without superseded events; see
// [mark.KeySuperseded].
func (v *View) Events() Events {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gaps == nil && (v.rewind == nil || v.rewind.visible == 0) {
		w := v.log.window
		return &w
	}
	s := &visibleWindow{window: v.log.window, gaps: v.gaps}
	if v.rewind != nil {
		s.to = v.rewind.visible
	}
	return s
}

// RefreshShared updates the view's app: and user: keys, which sessions share, from a later view of the session. If
// one of the two views has seen an event that the other has not, RefreshShared changes nothing and returns false;
// use the later view then. It is for a caller that keeps a view while other sessions may write shared keys.
func (v *View) RefreshShared(later *View) bool {
	if v == later {
		return true
	}
	later.mu.Lock()
	same := later.appName == v.appName && later.userID == v.userID && later.id == v.id
	state, run := maps.Clone(later.state.values), later.run
	later.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !same || v.seq.Load() != later.seq.Load() || v.run != run {
		return false
	}
	for k := range v.state.values {
		if isShared(k) {
			v.state.setKey(k, nil)
		}
	}
	for k, value := range state {
		if isShared(k) {
			v.state.setKey(k, value)
		}
	}
	return true
}

// Err returns the error with which the store failed to read events of the view, nil if
// it did not fail. Those events have the ErrorCode UNREADABLE and the error as their
// ErrorMessage. Such a view cannot append: get the session again.
func (v *View) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.log.window.err()
}

// State returns the state as the whole run sees it.
func (v *View) State() State { return stateView{view: v} }

// StateAt returns the state as the step at an address sees it: with the iteration: keys
// of the loops around the step.
func (v *View) StateAt(a Address) State { return stateView{view: v, address: a} }

// RequireLog makes the log the only source of the state: from now on Set returns
// [ErrNotLogged], except for temp: keys, which no log has. A runner calls it.
func (v *View) RequireLog() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.logOnly = true
}

// Apply adds an event that a store has just appended. A store calls it on the view that
// AppendEvent got; the event's Seq is set. The values of its delta become plain; see
// [Plain].
func (v *View) Apply(ev *Event) {
	if ev.Actions.Normalize() != nil {
		ev.Actions.StateDelta = encodable(maps.Clone(ev.Actions.StateDelta))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.appendEvent(ev)
}

// appendEvent adds an event to the end of the view's log, and its delta to the state. v.mu is held.
func (v *View) appendEvent(ev *Event) {
	if v.log.isSnapshot {
		v.log.window.log, v.log.isSnapshot = v.log.window.log.fork(), false
	}
	v.log.append(ev)
	if v.rewind != nil {
		v.rewind.afterAppend(ev)
	}
	v.updateAfter(ev)
}

// append adds an event to the end of the log, and may drop old events from memory. v.mu is held.
func (l *viewLog) append(ev *Event) {
	if l.stateOnly {
		return
	}
	l.window.log.append(ev)
	if l.window.older != nil {
		l.addWeight()
	}
}

// updateAfter updates the state and the chain of hashes after an event was added to the log. v.mu is held.
func (v *View) updateAfter(ev *Event) {
	v.seq.Store(ev.Seq)
	v.updated = ev.Timestamp
	if len(ev.Actions.StateDelta) > 0 { // faster than to begin a range over a map
		for k, val := range ev.Actions.StateDelta {
			v.setValue(k, val, ev.Address)
		}
	}
	v.chain.add(ev)
}
