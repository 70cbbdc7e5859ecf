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

// record is one stored session. Its lock is the only one that appending to it
// takes, but for shared keys.
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
	changed chan struct{} // closed by the next append; nil if nobody waits
}

// scope is state that several sessions share.
type scope struct {
	mu     sync.RWMutex
	values map[string]any
}

func (s *scope) set(key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(s.values, key, value)
}

func (s *scope) copyTo(dst map[string]any) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	maps.Copy(dst, s.values)
}

func put(m map[string]any, key string, value any) {
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
	if r.service.leases.Load() > 0 { // only then can the context hold one
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
	defer r.tell()
	for _, ev := range evs {
		r.add(v, ev)
	}
	return nil
}

// add adds an event that may be added. r.mu is held.
func (r *record) add(v *View, ev *Event) {
	if next := r.last() + 1; ev.Seq != next { // else others may be reading it: see below
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
		r.take(ev, nil)
		if v != nil && v.LastSeq() < ev.Seq { // else the caller has applied it already
			v.Apply(ev)
		}
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.log.isSnapshot {
		r.take(ev, nil)
		if v.seq.Load() < ev.Seq { // else the caller has applied it already
			v.appendEvent(ev)
		}
		return
	}
	for i := v.seq.Load() + 1; i < ev.Seq; i++ { // missed, where the Seq was preset
		v.updateAfter(r.log.at(int(i - 1)))
	}
	r.take(ev, v)
	v.log.window.log = r.log
	v.seq.Store(ev.Seq)
	v.updated = ev.Timestamp
	v.notify(ev)
}

// take takes an event into the log, and its delta into the stored state, and into that of the view
// that follows it if there is one. r.mu is held, and v.mu.
func (r *record) take(ev *Event, v *View) {
	if len(ev.Actions.StateDelta) > 0 { // to begin a range over a map takes longer
		for key, value := range ev.Actions.StateDelta {
			if isDurable(key) {
				r.set(key, value)
			}
			if v != nil {
				v.setValue(key, value, ev.Address)
			}
		}
	}
	r.log.append(ev.Kept())
}

// set writes one lasting key. r.mu is held, or r is not shared yet.
func (r *record) set(key string, value any) {
	switch {
	case strings.HasPrefix(key, KeyPrefixApp):
		r.app.set(key, value)
	case strings.HasPrefix(key, KeyPrefixUser):
		r.user.set(key, value)
	default:
		put(r.state, key, value)
	}
}

// view takes a snapshot of the whole session.
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
