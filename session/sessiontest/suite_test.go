// SPDX-License-Identifier: Apache-2.0

package sessiontest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// E4: a new field of an event must be in the suite.
func TestFullEventIsFull(t *testing.T) {
	ev := reflect.ValueOf(sessiontest.FullEvent()).Elem()
	notStored := map[string]bool{"Seq": true, "Partial": true}
	for _, f := range reflect.VisibleFields(ev.Type()) {
		if !notStored[f.Name] && ev.FieldByIndex(f.Index).IsZero() {
			t.Errorf("FullEvent has no %s", f.Name)
		}
	}
	actions := ev.FieldByName("Actions")
	for _, part := range []reflect.Value{actions, actions.FieldByName("Exit").Elem(), ev.FieldByName("Mark").Elem()} {
		for _, f := range reflect.VisibleFields(part.Type()) {
			if part.FieldByIndex(f.Index).IsZero() {
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

const defectVar = "SESSIONTEST_DEFECT"

// TestDefective is run by TestSuiteFindsDefects in a process of its own.
func TestDefective(t *testing.T) {
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
	if testing.Short() {
		t.Skip("starts a process for each defect")
	}
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDefective$/^"+d.foundBy+"$")
			cmd.Env = append(os.Environ(), defectVar+"="+name)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				t.Fatalf("the suite passed (%v):\n%s", err, out)
			}
			if !strings.Contains(string(out), "--- FAIL: TestDefective/"+d.foundBy) || strings.Contains(string(out), "panic:") {
				t.Errorf("want subtest %s to fail without a panic, got:\n%s", d.foundBy, out)
			}
		})
	}
}
