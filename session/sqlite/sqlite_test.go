// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/sessiontestsuite"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// open opens a database of the test's own.
func open(t testing.TB, path string, cfg sqlite.Config) *sqlite.Service {
	t.Helper()
	svc, err := sqlite.Open(t.Context(), path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	return svc
}

func newService(t *testing.T) session.Service {
	return open(t, filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
}

// A18, A20, D1, D8, D9, D15, E4
func TestService(t *testing.T) { sessiontest.TestService(t, newService) }

func TestServiceAsInADK(t *testing.T) {
	sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}, newService)
}

func TestLeaser(t *testing.T) { sessiontest.TestLeaser(t, newService) }

func TestWatcher(t *testing.T) { sessiontest.TestWatcher(t, newService) }

// Two services on one file are what two processes are.
func TestShared(t *testing.T) {
	sessiontest.TestShared(t, func(t *testing.T) (one, other session.Service) {
		path := filepath.Join(t.TempDir(), "refrain.db")
		return open(t, path, sqlite.Config{}), open(t, path, sqlite.Config{})
	})
}

func TestClosedServiceSaysSo(t *testing.T) {
	svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := create(t, svc, "s1")
	appendN(t, svc, s, 200)
	long := get(t, svc, "s1")
	watched := make(chan error)
	go func() {
		for _, err := range svc.Watch(t.Context(), lease.KeyOf(s), 200) {
			watched <- err
		}
	}()
	for range 2 { // the second time nothing happens
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-watched; !errors.Is(err, session.ErrClosed) {
		t.Errorf("who watches: got %v", err)
	}
	_, getErr := svc.Get(t.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
	_, leaseErr := svc.Acquire(t.Context(), lease.KeyOf(s), "pid 1", time.Hour)
	for name, err := range map[string]error{"Get": getErr, "Acquire": leaseErr, "AppendEvent": svc.AppendEvent(t.Context(), s, numbered(201))} {
		if !errors.Is(err, session.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	long.Events().At(0)
	if err := long.(*session.View).Err(); !errors.Is(err, session.ErrClosed) {
		t.Errorf("a view that was not read in full: got %v, want ErrClosed", err)
	}
}

// Events are read when somebody looks at them, and are those of the moment
// when the session was fetched.
func TestLongSessionIsReadAsFarAsSomebodyLooks(t *testing.T) {
	svc := newService(t)
	writer := create(t, svc, "s1")
	appendN(t, svc, writer, 700)
	old := get(t, svc, "s1")
	appendN(t, svc, writer, 100)
	if n := old.Events().Len(); n != 700 {
		t.Fatalf("got %d events, want 700", n)
	}
	for _, i := range []int{699, 0, 350, 255, 256} {
		if seq := old.Events().At(i).Seq; seq != int64(i)+1 {
			t.Errorf("At(%d): got Seq %d", i, seq)
		}
	}
	wantCount(t, old, 700)
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1", NumRecentEvents: 300})
	if err != nil {
		t.Fatal(err)
	}
	evs := resp.Session.Events()
	if evs.Len() != 300 || evs.At(0).Seq != 501 || evs.At(299).Seq != 800 {
		t.Errorf("got %d events from %d to %d, want the last 300", evs.Len(), evs.At(0).Seq, evs.At(299).Seq)
	}

	gone := get(t, svc, "s1")
	if err := svc.Delete(t.Context(), &session.DeleteRequest{AppName: app, UserID: ana, SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	create(t, svc, "s1")
	if ev := gone.Events().At(0); ev.ErrorCode == "" {
		t.Errorf("an event of a deleted session: got %+v", ev)
	}
	if err := svc.AppendEvent(t.Context(), gone, numbered(1)); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("AppendEvent through a view that could not be read: got %v", err)
	}
}

// E4: a writer that presets a sequence number it knows better than its view
// then sees what it had missed.
func TestViewCatchesUpWhenAPresetSeqIsAhead(t *testing.T) {
	svc := newService(t)
	old := create(t, svc, "s1")
	appendN(t, svc, get(t, svc, "s1"), 5)
	ev := &session.Event{Seq: 6}
	if err := svc.AppendEvent(t.Context(), old, ev); err != nil {
		t.Fatal(err)
	}
	if n := old.Events().Len(); n != 6 {
		t.Errorf("the view shows %d events, want 6", n)
	}
	if n, err := old.State().Get("n"); err != nil || n != 5.0 {
		t.Errorf("the view shows n = %v (%v), want 5", n, err)
	}
}

func TestAppendThroughOneViewAtOnce(t *testing.T) {
	svc := newService(t)
	s := create(t, svc, "s1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := svc.AppendEvent(t.Context(), s, &session.Event{Author: "one of several"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := get(t, svc, "s1").Events().Len(); n != 80 || s.Events().Len() != 80 {
		t.Errorf("got %d stored events, and %d in the view, want 80", n, s.Events().Len())
	}
}

func TestWhatHasNoJSONIsRefused(t *testing.T) {
	svc := newService(t)
	s := create(t, svc, "s1")
	for name, delta := range map[string]map[string]any{
		"a channel":          {"k": make(chan int)},
		"a key with a zero":  {"k\x00": 1},
		"a key that is torn": {"k\xff": 1},
	} {
		ev := &session.Event{}
		ev.Actions.StateDelta = delta
		if err := svc.AppendEvent(t.Context(), s, ev); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: "a\x00", SessionID: "s1"}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a user ID with a zero: got %v, want ErrInvalid", err)
	}
	wantCount(t, get(t, svc, "s1"), 0)
}

func TestCanceledAppendStoresNothing(t *testing.T) {
	svc := newService(t)
	s := create(t, svc, "s1")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := svc.AppendEvent(ctx, s, numbered(1)); !errors.Is(err, why) {
		t.Errorf("got %v, want the context's cause", err)
	}
	wantCount(t, get(t, svc, "s1"), 0)
}

// Who watches in the process that appends need not wait until somebody looks
// at the file again.
func TestWatchIsToldAtOnceInOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	synctest.Test(t, func(t *testing.T) {
		svc := open(t, path, sqlite.Config{})
		s := create(t, svc, "s1")
		appendN(t, svc, s, 1)
		var appended time.Time
		for ev, err := range svc.Watch(t.Context(), lease.KeyOf(s), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Seq > 1 && !time.Now().Equal(appended) {
				t.Errorf("event %d was seen %v after it was appended", ev.Seq, time.Since(appended))
			}
			if ev.Seq == 10 {
				break
			}
			time.AfterFunc(time.Millisecond, func() { // when it waits for the next
				appended = time.Now()
				if err := svc.AppendEvent(t.Context(), s, numbered(int(ev.Seq)+1)); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
