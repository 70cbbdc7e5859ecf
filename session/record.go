// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"
)

// record is one stored session. Appending locks only its mu, and for app: and user: keys also the scopes that
// sessions share.
type record struct {
	service *memory
	key     sessionKey
	app     *scope
	user    *scope

	mu      sync.Mutex
	log     eventLog
	state   map[string]any // keys without a prefix
	updated time.Time
	deleted bool
	lease   leaseState
	changed chan struct{} // closed by the next append or the deletion; nil if no goroutine waits
}

// scope is state that several sessions share.
type scope struct {
	mu     sync.RWMutex
	values map[string]any
}

func newScope() *scope { return &scope{values: make(map[string]any)} }

func (s *scope) set(key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	setOrDelete(s.values, key, value)
}

func (s *scope) copyTo(dst map[string]any) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	maps.Copy(dst, s.values)
}

// setOrDelete sets a key of a map; the value nil removes the key.
func setOrDelete(m map[string]any, key string, value any) {
	if value == nil {
		delete(m, key)
		return
	}
	m[key] = value
}

// last returns the sequence number of the last event. r.mu is held.
func (r *record) last() int64 { return int64(r.log.n) }

// append adds events to the log, or none of them.
func (r *record) append(ctx context.Context, s Session, v *View, evs ...*Event) error {
	for _, ev := range evs {
		if err := ev.Actions.Normalize(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted {
		return ErrNotFound
	}
	if r.service.leases.Load() > 0 { // otherwise the context cannot have a lease
		if err := r.checkLease(ctx); err != nil {
			return err
		}
	}
	next := r.last() + 1
	for i, ev := range evs {
		want := ev.Seq
		switch {
		case want == 0 && i == 0:
			want = LastSeen(s) + 1
		case want == 0:
			want = next + int64(i)
		}
		if want != next+int64(i) {
			return ErrConflict
		}
	}
	defer r.wakeWaiting()
	for _, ev := range evs {
		r.add(v, ev)
	}
	return nil
}

// add adds an event that append or Start has checked. If v is a view of r, it shows the event afterwards. r.mu is held.
func (r *record) add(v *View, ev *Event) {
	if next := r.last() + 1; ev.Seq != next { // no needless write: others may read an event that the caller has applied
		ev.Seq = next
	}
	if ev.ID == "" {
		ev.ID = strconv.FormatInt(ev.Seq, 10)
	}
	if ev.Timestamp.IsZero() {
		ev.Timestamp = time.Now()
	}
	r.updated = ev.Timestamp
	if v == nil || v.rec != r {
		r.appendEvent(ev, nil)
		if v != nil && v.LastSeq() < ev.Seq { // else the caller has already applied the event
			v.Apply(ev)
		}
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.log.isSnapshot {
		r.appendEvent(ev, nil)
		if v.seq.Load() < ev.Seq { // else the caller has already applied the event
			v.appendEvent(ev)
		}
		return
	}
	for i := v.seq.Load() + 1; i < ev.Seq; i++ { // the caller preset a later Seq, so the view has missed the events before it
		v.updateAfter(r.log.at(int(i - 1)))
	}
	r.appendEvent(ev, v)
	v.log.window.log = r.log
	v.seq.Store(ev.Seq)
	v.updated = ev.Timestamp
	v.chain.add(ev)
}

// appendEvent adds an event to the log and its delta to the stored state. If v is not nil, take also adds the delta to the
// state of v. r.mu is held, and v.mu if v is not nil.
func (r *record) appendEvent(ev *Event, v *View) {
	if len(ev.Actions.StateDelta) > 0 { // faster than to begin a range over a map
		for key, value := range ev.Actions.StateDelta {
			if isDurable(key) {
				r.set(key, value)
			}
			if v != nil {
				v.setValue(key, value, ev.Address)
			}
		}
	}
	r.log.append(ev.WithoutTemp())
}

// set writes one durable key. r.mu is held, or no other goroutine has r yet.
func (r *record) set(key string, value any) {
	switch {
	case strings.HasPrefix(key, KeyPrefixApp):
		r.app.set(key, value)
	case strings.HasPrefix(key, KeyPrefixUser):
		r.user.set(key, value)
	default:
		setOrDelete(r.state, key, value)
	}
}

// view returns a snapshot of the whole session.
func (r *record) view() *View {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := make(map[string]any, len(r.state))
	r.app.copyTo(state)
	r.user.copyTo(state)
	maps.Copy(state, r.state)
	v := &View{
		appName: r.key.app, userID: r.key.user, id: r.key.id, rec: r,
		log: viewLog{window: window{log: r.log}, isSnapshot: true}, state: viewState{values: state}, updated: r.updated,
	}
	v.seq.Store(r.last())
	v.adoptLogKeys()
	return v
}
