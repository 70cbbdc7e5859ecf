// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session/lease"
)

// InMemoryService returns a service that keeps sessions in the memory of this process. Appending takes
// constant time; readers share the events. It keeps all events until their session is deleted; an event takes 1 kB
// of memory or more. The service is also a [lease.Leaser], a store.Watcher, a store.Starter and a store.BulkAppender.
func InMemoryService() Service {
	return &memory{
		sessions: make(map[sessionKey]*record),
		apps:     make(map[string]*scope),
		users:    make(map[userKey]*scope),
	}
}

type (
	sessionKey struct{ app, user, id string }
	userKey    struct{ app, user string }
)

// memory is the service that InMemoryService returns.
type memory struct {
	leases atomic.Int64 // how many leases were granted; the last one has this number as its token

	mu       sync.RWMutex
	sessions map[sessionKey]*record
	apps     map[string]*scope
	users    map[userKey]*scope
}

func (m *memory) Create(ctx context.Context, req *CreateRequest) (*CreateResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return nil, fmt.Errorf("create session: %w: app name and user ID are required", ErrInvalid)
	}
	id, now := newID(ctx, req), platform.Now(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, err := m.make(req, id, now)
	if err != nil {
		return nil, fmt.Errorf("create session %q: %w", req.SessionID, err)
	}
	m.sessions[rec.key] = rec
	return &CreateResponse{Session: rec.view()}, nil
}

// newID returns the ID of a new session.
func newID(ctx context.Context, req *CreateRequest) string {
	if id := strings.TrimSpace(req.SessionID); id != "" {
		return id
	}
	return platform.NewUUID(ctx)
}

// make returns the record of a new session. The caller adds the record to m.sessions. m.mu is held.
func (m *memory) make(req *CreateRequest, id string, now time.Time) (*record, error) {
	state, err := Normalize(req.State)
	if err != nil {
		return nil, err
	}
	key := sessionKey{req.AppName, req.UserID, id}
	if _, ok := m.sessions[key]; ok {
		return nil, ErrExists
	}
	rec := &record{
		service: m, key: key, state: make(map[string]any), updated: now,
	}
	if caserun.Is(id) {
		rec.app, rec.user = newScope(), newScope()
	} else {
		rec.app, rec.user = scopeOf(m.apps, req.AppName), scopeOf(m.users, userKey{req.AppName, req.UserID})
	}
	for k, val := range state {
		if isDurable(k) && val != nil {
			rec.set(k, val)
		}
	}
	return rec, nil
}

// Start makes a session that begins with events.
func (m *memory) Start(ctx context.Context, req *StartRequest) (*StartResponse, error) {
	evs, err := req.PlainEvents()
	if err != nil {
		return nil, fmt.Errorf("start session: %w", err)
	}
	id, now := newID(ctx, &req.CreateRequest), platform.Now(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, err := m.make(&req.CreateRequest, id, now)
	if err != nil {
		return nil, fmt.Errorf("start session %q: %w", req.SessionID, err)
	}
	v := rec.view()
	resp := &StartResponse{Session: v}
	rec.mu.Lock()
	for _, ev := range evs {
		rec.add(v, ev)
	}
	if req.Owner != "" {
		resp.Lease = rec.grant(req.Owner, req.TTL)
	}
	rec.mu.Unlock()
	m.sessions[rec.key] = rec
	return resp, nil
}

// scopeOf returns the shared state for a key of m, and adds an empty one if m has none.
func scopeOf[K comparable](m map[K]*scope, key K) *scope {
	s, ok := m[key]
	if !ok {
		s = newScope()
		m[key] = s
	}
	return s
}

func (m *memory) Get(_ context.Context, req *GetRequest) (*GetResponse, error) {
	if req == nil {
		return nil, fmt.Errorf("get session: %w", ErrInvalid)
	}
	rec, err := m.find(sessionKey{req.AppName, req.UserID, req.SessionID})
	if err != nil {
		return nil, fmt.Errorf("get session: %w", err)
	}
	v := rec.view()
	if !req.After.IsZero() {
		v.log.window.skip(firstFrom(&v.log.window, req.After))
	}
	if n := req.NumRecentEvents; n > 0 && v.log.window.Len() > n {
		v.log.window.skip(v.log.window.Len() - n)
	}
	return &GetResponse{Session: v}, nil
}

// firstFrom returns the index from which on no event is older than t. It searches from the end, because authors
// may set timestamps, and so timestamps may fall.
func firstFrom(w *window, t time.Time) int {
	n := w.Len()
	for n > 0 && !w.At(n-1).Timestamp.Before(t) {
		n--
	}
	return n
}

func (m *memory) List(_ context.Context, req *ListRequest) (*ListResponse, error) {
	if req == nil || req.AppName == "" {
		return nil, fmt.Errorf("list sessions: %w: app name is required", ErrInvalid)
	}
	m.mu.RLock()
	var recs []*record
	for key, rec := range m.sessions {
		if key.app == req.AppName && (req.UserID == "" || key.user == req.UserID) {
			recs = append(recs, rec)
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(recs, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.key.user, b.key.user), cmp.Compare(a.key.id, b.key.id))
	})
	resp := &ListResponse{Sessions: make([]Session, len(recs))}
	for i, rec := range recs {
		v := rec.view()
		v.log.window.skip(v.log.window.Len())
		resp.Sessions[i] = v
	}
	return resp, nil
}

func (m *memory) Delete(_ context.Context, req *DeleteRequest) error {
	if req == nil {
		return fmt.Errorf("delete session: %w", ErrInvalid)
	}
	key := sessionKey{req.AppName, req.UserID, req.SessionID}
	rec, err := m.find(key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	m.mu.Lock()
	if m.sessions[key] == rec {
		delete(m.sessions, key)
	}
	m.mu.Unlock()
	rec.mu.Lock()
	rec.deleted = true
	rec.wakeWaiting()
	rec.mu.Unlock()
	return nil
}

// find returns the record of a session. Errors: [ErrNotFound], [ErrInvalid].
func (m *memory) find(key sessionKey) (*record, error) {
	if key.app == "" || key.user == "" || key.id == "" {
		return nil, fmt.Errorf("%w: app name, user ID and session ID are required, got %q, %q, %q", ErrInvalid, key.app,
			key.user, key.id)
	}
	m.mu.RLock()
	rec, ok := m.sessions[key]
	m.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("session %q of user %q: %w", key.id, key.user, ErrNotFound)
	}
	return rec, nil
}

func (m *memory) AppendEvent(ctx context.Context, s Session, ev *Event) error {
	return m.AppendEvents(ctx, s, []*Event{ev})
}

// holder returns the record of a session, and the View that s is or wraps; the View is nil if there is
// none.
func (m *memory) holder(s Session) (*record, *View, error) {
	v := ViewBehind(s)
	if v != nil && v.rec != nil && v.rec.service == m {
		return v.rec, v, nil
	}
	rec, err := m.find(sessionKey{s.AppName(), s.UserID(), s.ID()})
	if err != nil {
		return nil, nil, fmt.Errorf("append event: %w", err)
	}
	if v != nil && v.rec == nil {
		if err := v.Err(); err != nil { // the view is from another store
			return nil, nil, fmt.Errorf("append event to session %q: %w", rec.key.id, err)
		}
	}
	return rec, v, nil
}

// AppendEvents adds all the events, or none of them if it fails.
func (m *memory) AppendEvents(ctx context.Context, s Session, evs []*Event) error {
	if s == nil || slices.Contains(evs, nil) {
		return fmt.Errorf("append events: %w: session and events are required", ErrInvalid)
	}
	partial := func(ev *Event) bool { return ev.Partial }
	if slices.ContainsFunc(evs, partial) {
		evs = slices.DeleteFunc(slices.Clone(evs), partial)
	}
	if len(evs) == 0 {
		return nil
	}
	rec, v, err := m.holder(s)
	if err != nil {
		return err
	}
	if err := rec.append(ctx, s, v, evs...); err != nil {
		return fmt.Errorf("append to session %q: %w", rec.key.id, err)
	}
	return nil
}

// Watch yields the events after a sequence number, and then each new event. See store.Watcher.
func (m *memory) Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		rec, err := m.find(sessionKey{key.AppName, key.UserID, key.SessionID})
		var w window
		for seen := max(after, 0); err == nil; {
			var more <-chan struct{}
			if more, err = rec.since(seen, &w); err != nil {
				break
			}
			for ev := range w.All() {
				if ctx.Err() != nil {
					break
				}
				if seen = ev.Seq; !yield(ev, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-more:
			}
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
		}
		yield(nil, fmt.Errorf("watch session: %w", err))
	}
}

// since makes w the window of the events after the first seen ones. It returns a channel that is closed as
// soon as there are such events, or the session is deleted.
func (r *record) since(seen int64, w *window) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted {
		return nil, fmt.Errorf("session %q of user %q: %w", r.key.id, r.key.user, ErrNotFound)
	}
	if w.log, w.from = r.log, int(seen); r.last() > seen {
		return closed, nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed, nil
}

// closed is a channel that is already closed.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wakeWaiting wakes the goroutines that watch the session. r.mu is held.
func (r *record) wakeWaiting() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}
