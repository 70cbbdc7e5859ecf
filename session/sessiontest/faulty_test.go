// SPDX-License-Identifier: Apache-2.0

package sessiontest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/store"
)

// careful is a client of a service that fails: it tries again, and where it does
// not know whether a call was done, it looks. That this is enough to lose
// nothing and to double nothing is what a session's numbers are for.
type careful struct{ session.Service }

func (c careful) Create(ctx context.Context, req *session.CreateRequest) (resp *session.CreateResponse, err error) {
	if req == nil {
		return c.Service.Create(ctx, req)
	}
	mine := *req
	if mine.SessionID == "" {
		mine.SessionID = uuid.NewString()
	}
	_, err = c.Get(ctx, &session.GetRequest{AppName: mine.AppName, UserID: mine.UserID, SessionID: mine.SessionID})
	there := err == nil
	for failed := false; ; failed = true {
		resp, err = c.Service.Create(ctx, &mine)
		if errors.Is(err, sessiontest.ErrFault) {
			continue
		}
		if errors.Is(err, session.ErrExists) && failed && !there {
			got, err := c.Get(ctx, &session.GetRequest{AppName: mine.AppName, UserID: mine.UserID, SessionID: mine.SessionID})
			if err != nil {
				return nil, err
			}
			return &session.CreateResponse{Session: got.Session}, nil
		}
		return resp, err
	}
}

func (c careful) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	for {
		if resp, err := c.Service.Get(ctx, req); !errors.Is(err, sessiontest.ErrFault) {
			return resp, err
		}
	}
}

func (c careful) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	for {
		if resp, err := c.Service.List(ctx, req); !errors.Is(err, sessiontest.ErrFault) {
			return resp, err
		}
	}
}

func (c careful) Delete(ctx context.Context, req *session.DeleteRequest) error {
	if req == nil {
		return c.Service.Delete(ctx, req)
	}
	_, gone := c.Get(ctx, &session.GetRequest{AppName: req.AppName, UserID: req.UserID, SessionID: req.SessionID})
	for {
		err := c.Service.Delete(ctx, req)
		if errors.Is(err, session.ErrNotFound) && gone == nil {
			return nil
		}
		if !errors.Is(err, sessiontest.ErrFault) {
			return err
		}
	}
}

func (c careful) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	v, ok := s.(*session.View)
	if !ok || ev == nil {
		return c.Service.AppendEvent(ctx, s, ev)
	}
	mine := *ev
	if mine.ID == "" {
		mine.ID = uuid.NewString()
	}
	if mine.Seq == 0 {
		mine.Seq = v.LastSeq() + 1
	}
	for failed := false; ; failed = true {
		err := c.Service.AppendEvent(ctx, s, &mine)
		if errors.Is(err, sessiontest.ErrFault) {
			continue
		}
		if errors.Is(err, session.ErrConflict) && failed {
			resp, gone := c.Get(ctx, &session.GetRequest{AppName: s.AppName(), UserID: s.UserID(), SessionID: s.ID()})
			if gone != nil {
				return gone
			}
			evs := resp.Session.Events()
			if i := int(mine.Seq) - 1; i >= evs.Len() || evs.At(i).ID != mine.ID {
				return err
			}
			mine.Timestamp = evs.At(int(mine.Seq) - 1).Timestamp
			v.Apply(&mine)
		} else if err != nil {
			return err
		}
		if !ev.Partial {
			ev.Seq, ev.ID, ev.Timestamp = mine.Seq, mine.ID, mine.Timestamp
		}
		return nil
	}
}

// E4: a store may fail before or after it did what it was asked.
func TestCarefulClientOfAFailingServiceLosesNothing(t *testing.T) {
	sessiontest.TestService(t, func(t *testing.T) session.Service {
		return careful{sessiontest.Faulty(session.InMemoryService(), sessiontest.Faults{Seed: uint64(len(t.Name())), Before: 0.15, After: 0.15})}
	})
}

// A watch that breaks off is taken up again where it was.
func TestWatchOfAFailingServiceIsTakenUpAgain(t *testing.T) {
	const n = 200
	inner := session.InMemoryService()
	made, err := inner.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := inner.AppendEvent(t.Context(), made.Session, &session.Event{}); err != nil {
			t.Fatal(err)
		}
	}
	watcher := sessiontest.Faulty(inner, sessiontest.Faults{Seed: 1, Before: 0.1}).(store.Watcher)
	seen, breaks := int64(0), 0
	for seen < n {
		for ev, err := range watcher.Watch(t.Context(), lease.KeyOf(made.Session), seen) {
			if errors.Is(err, sessiontest.ErrFault) {
				breaks++
				break
			}
			if err != nil || ev.Seq != seen+1 {
				t.Fatalf("after %d: got %v, %v", seen, ev, err)
			}
			if seen = ev.Seq; seen == n {
				break
			}
		}
	}
	if breaks == 0 {
		t.Error("the watch never broke off")
	}
}

func TestFaultyFailsBeforeAndAfter(t *testing.T) {
	inner := session.InMemoryService()
	made, err := inner.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		got, err := inner.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		return got.Session.Events().Len()
	}
	for _, tt := range []struct {
		name   string
		faults sessiontest.Faults
		want   int
	}{{"before", sessiontest.Faults{Before: 1}, 0}, {"after", sessiontest.Faults{After: 1}, 1}} {
		ev := &session.Event{Author: "writer"}
		err := sessiontest.Faulty(inner, tt.faults).AppendEvent(t.Context(), made.Session, ev)
		if !errors.Is(err, sessiontest.ErrFault) || count() != tt.want {
			t.Errorf("%s: got error %v and %d stored events, want ErrFault and %d", tt.name, err, count(), tt.want)
		}
		if ev.Seq != 0 || made.Session.Events().Len() != 0 {
			t.Errorf("%s: who gets the error sees nothing of the event: got Seq %d, and %d events", tt.name, ev.Seq, made.Session.Events().Len())
		}
	}
	svc := sessiontest.Faulty(inner, sessiontest.Faults{After: 1})
	key := lease.Key{AppName: "app", UserID: "ana", SessionID: "s1"}
	if l, err := svc.(lease.Leaser).Acquire(t.Context(), key, "pid 1", time.Hour); l != nil || !errors.Is(err, sessiontest.ErrFault) {
		t.Errorf("Acquire: got %v, %v", l, err)
	}
	_, err = inner.(lease.Leaser).Acquire(t.Context(), key, "pid 2", time.Hour)
	if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Owner != "pid 1" {
		t.Errorf("an Acquire that fails after it was done holds the lease: got %v", err)
	}
}

func TestFaultyWithoutFaultsIsTheService(t *testing.T) {
	open := func(*testing.T) session.Service {
		return sessiontest.Faulty(session.InMemoryService(), sessiontest.Faults{})
	}
	t.Run("service", func(t *testing.T) { sessiontest.TestService(t, open) })
	t.Run("leaser", func(t *testing.T) { sessiontest.TestLeaser(t, open) })
	t.Run("watcher", func(t *testing.T) { sessiontest.TestWatcher(t, open) })
}
