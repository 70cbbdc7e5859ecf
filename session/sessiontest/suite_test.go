// SPDX-License-Identifier: Apache-2.0

package sessiontest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/store"
)

// E4: a new field of an event must be in the suite.
func TestFullEventIsFull(t *testing.T) {
	ev := reflect.ValueOf(sessiontest.FullEvent()).Elem()
	notStored := map[string]bool{"Seq": true, "Partial": true, "Omitted": true}
	for _, f := range reflect.VisibleFields(ev.Type()) {
		if !notStored[f.Name] && ev.FieldByIndex(f.Index).IsZero() {
			t.Errorf("FullEvent has no %s", f.Name)
		}
	}
	actions := ev.FieldByName("Actions")
	for _, part := range []reflect.Value{actions, actions.FieldByName("Exit").Elem(), ev.FieldByName("Mark").Elem()} {
		for _, f := range reflect.VisibleFields(part.Type()) {
			if part.FieldByIndex(f.Index).IsZero() && f.Tag.Get("json") != "-" {
				t.Errorf("FullEvent's %s has no %s", part.Type(), f.Name)
			}
		}
	}
}

// broken is a service with one thing wrong in it.
type broken struct {
	session.Service
	append func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error
	get    func(ctx context.Context, inner session.Service, req *session.GetRequest) (*session.GetResponse, error)
	create func(ctx context.Context, inner session.Service, req *session.CreateRequest) (*session.CreateResponse, error)
}

func (b *broken) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if b.append == nil {
		return b.Service.AppendEvent(ctx, s, ev)
	}
	return b.append(ctx, b.Service, s, ev)
}

func (b *broken) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if b.get == nil {
		return b.Service.Get(ctx, req)
	}
	return b.get(ctx, b.Service, req)
}

func (b *broken) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if b.create == nil {
		return b.Service.Create(ctx, req)
	}
	return b.create(ctx, b.Service, req)
}

// defects are mistakes that stores have been seen to make, with the subtest
// that finds each.
var defects = map[string]struct {
	foundBy string
	service broken
}{
	"timestamps are always now": {"ID_and_timestamp", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		ev.Timestamp = time.Time{}
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"partial events are stored": {"partial_events", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		ev.Partial = false
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"a field is lost": {"event_fields", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		ev.FinishReason = ""
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"temp: keys are taken from the event": {"short-lived_keys", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		delete(ev.Actions.StateDelta, "temp:k")
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"large integers are rounded": {"values", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		for k, v := range ev.Actions.StateDelta {
			if n, ok := v.(int64); ok {
				ev.Actions.StateDelta[k] = float64(n) / 2 * 2.000001
			}
		}
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"a stale writer gets through": {"stale_writer", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		err := inner.AppendEvent(ctx, s, ev)
		if errors.Is(err, session.ErrConflict) {
			resp, _ := inner.Get(ctx, &session.GetRequest{AppName: s.AppName(), UserID: s.UserID(), SessionID: s.ID()})
			ev.Seq = 0
			return inner.AppendEvent(ctx, resp.Session, ev)
		}
		return err
	}}},
	"only its own session type is taken": {"foreign_session_type", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		if _, ok := s.(*session.View); !ok && s != nil {
			return errors.New("unexpected session type")
		}
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"the writer does not see its event": {"the_writer_sees_what_it_appends", broken{append: func(ctx context.Context, inner session.Service, s session.Session, ev *session.Event) error {
		if v, ok := s.(*session.View); ok {
			s = struct{ session.Session }{v}
		}
		return inner.AppendEvent(ctx, s, ev)
	}}},
	"sessions appear when asked for": {"get_what_is_not_there", broken{get: func(ctx context.Context, inner session.Service, req *session.GetRequest) (*session.GetResponse, error) {
		resp, err := inner.Get(ctx, req)
		if errors.Is(err, session.ErrNotFound) {
			made, err := inner.Create(ctx, &session.CreateRequest{AppName: req.AppName, UserID: req.UserID, SessionID: req.SessionID})
			if err != nil {
				return nil, err
			}
			return &session.GetResponse{Session: made.Session}, nil
		}
		return resp, err
	}}},
	"all events come back": {"recent_events", broken{get: func(ctx context.Context, inner session.Service, req *session.GetRequest) (*session.GetResponse, error) {
		if req != nil {
			all := *req
			all.NumRecentEvents = 0
			req = &all
		}
		return inner.Get(ctx, req)
	}}},
	"create replaces": {"create_what_exists", broken{create: func(ctx context.Context, inner session.Service, req *session.CreateRequest) (*session.CreateResponse, error) {
		if req != nil && req.SessionID != "" {
			_ = inner.Delete(ctx, &session.DeleteRequest{AppName: req.AppName, UserID: req.UserID, SessionID: req.SessionID})
		}
		return inner.Create(ctx, req)
	}}},
}

// shared is what the suites for leases and watching look at.
type shared interface {
	session.Service
	lease.Leaser
	store.Watcher
}

// loose is a store with one thing wrong with its leases or watches.
type loose struct {
	shared
	acquire func(ctx context.Context, inner shared, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error)
	append  func(ctx context.Context, inner shared, s session.Session, ev *session.Event) error
	watch   func(ctx context.Context, inner shared, key lease.Key, after int64) iter.Seq2[*session.Event, error]
}

func (l *loose) Acquire(ctx context.Context, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error) {
	if l.acquire == nil {
		return l.shared.Acquire(ctx, key, owner, ttl)
	}
	return l.acquire(ctx, l.shared, key, owner, ttl)
}

func (l *loose) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if l.append == nil {
		return l.shared.AppendEvent(ctx, s, ev)
	}
	return l.append(ctx, l.shared, s, ev)
}

func (l *loose) Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*session.Event, error] {
	if l.watch == nil {
		return l.shared.Watch(ctx, key, after)
	}
	return l.watch(ctx, l.shared, key, after)
}

// looseDefects are mistakes with leases and watches.
var looseDefects = map[string]struct {
	foundBy string
	service loose
}{
	"an owner gets its lease twice": {"lease/one_holder", loose{acquire: func(ctx context.Context, inner shared, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error) {
		l, err := inner.Acquire(ctx, key, owner, ttl)
		if held, ok := errors.AsType[*lease.HeldError](err); ok && held.Owner == owner {
			return &lease.Lease{Key: key, Owner: owner, Token: held.Token, Until: held.Until}, nil
		}
		return l, err
	}}},
	"leases do not expire": {"lease/expiry", loose{acquire: func(ctx context.Context, inner shared, key lease.Key, owner string, _ time.Duration) (*lease.Lease, error) {
		return inner.Acquire(ctx, key, owner, time.Hour)
	}}},
	"appends are not fenced": {"lease/appends_are_fenced", loose{append: func(ctx context.Context, inner shared, s session.Session, ev *session.Event) error {
		return inner.AppendEvent(context.Background(), s, ev)
	}}},
	"a watch doubles an event": {"watch/many_watchers", loose{watch: func(ctx context.Context, inner shared, key lease.Key, after int64) iter.Seq2[*session.Event, error] {
		return inner.Watch(ctx, key, max(after-1, 0))
	}}},
	"a watch only yields what is there": {"watch/what_is_there_and_what_comes", loose{watch: func(ctx context.Context, inner shared, key lease.Key, after int64) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			resp, err := inner.Get(ctx, &session.GetRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID})
			if err != nil {
				yield(nil, err)
				return
			}
			for ev := range resp.Session.Events().All() {
				if ev.Seq > after && !yield(ev, nil) {
					return
				}
			}
		}
	}}},
	"a watch outlives its context": {"watch/end_of_the_context", loose{watch: func(ctx context.Context, inner shared, key lease.Key, after int64) iter.Seq2[*session.Event, error] {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		return func(yield func(*session.Event, error) bool) {
			defer stop()
			inner.Watch(ctx, key, after)(yield)
		}
	}}},
}

const defectVar = "SESSIONTEST_DEFECT"

// TestDefective is run by TestSuiteFindsDefects in a process of its own.
func TestDefective(t *testing.T) {
	if d, ok := looseDefects[os.Getenv(defectVar)]; ok {
		open := func(*testing.T) session.Service {
			svc := d.service
			svc.shared = session.InMemoryService().(shared)
			return &svc
		}
		t.Run("lease", func(t *testing.T) { sessiontest.TestLeaser(t, open) })
		t.Run("watch", func(t *testing.T) { sessiontest.TestWatcher(t, open) })
		return
	}
	d, ok := defects[os.Getenv(defectVar)]
	if !ok {
		t.Skip("only for TestSuiteFindsDefects")
	}
	sessiontest.TestService(t, func(*testing.T) session.Service {
		svc := d.service
		svc.Service = session.InMemoryService()
		return &svc
	})
}

// A suite that passes everything proves nothing.
func TestSuiteFindsDefects(t *testing.T) {
	foundBy := make(map[string]string)
	for name, d := range defects {
		foundBy[name] = d.foundBy
	}
	for name, d := range looseDefects {
		foundBy[name] = d.foundBy
	}
	for name, test := range foundBy {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for a process
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDefective$/^"+strings.ReplaceAll(test, "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), defectVar+"="+name, "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				t.Fatalf("the suite passed (%v):\n%s", err, out)
			}
			if !strings.Contains(string(out), "--- FAIL: TestDefective/"+test) || strings.Contains(string(out), "panic:") {
				t.Errorf("want subtest %s to fail without a panic, got:\n%s", test, out)
			}
		})
	}
}
