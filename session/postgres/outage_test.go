// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/postgres"
)

const app, ana = "app", "ana"

func create(t testing.TB, svc session.Service, id string) session.Session {
	t.Helper()
	resp, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: ana, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

func get(t testing.TB, svc session.Service, id string) session.Session {
	t.Helper()
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

func numbered(n int) *session.Event {
	ev := &session.Event{Author: "writer"}
	ev.Actions.StateDelta = map[string]any{"n": n, "app:n": n}
	return ev
}

// wantCount demands n events without a gap, and the state that belongs to them.
func wantCount(t testing.TB, s session.Session, n int) {
	t.Helper()
	seq := 0
	for ev := range s.Events().All() {
		if seq++; ev.Seq != int64(seq) || ev.ErrorCode != "" || ev.Actions.StateDelta["n"] != float64(seq) {
			t.Fatalf("event %d has Seq %d and says %v (%s)", seq, ev.Seq, ev.Actions.StateDelta, ev.ErrorMessage)
		}
	}
	if seq != n {
		t.Errorf("got %d events, want %d", seq, n)
	}
	if got, err := s.State().Get("n"); n > 0 && (err != nil || got != float64(n)) {
		t.Errorf("the state belongs to the events: got n = %v (%v), want %d", got, err, n)
	}
}

// server stops and starts the tests' server.
func server(t *testing.T, verb string) {
	t.Helper()
	if out, err := exec.Command(script, verb, cluster.dir).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", script, verb, err, out)
	}
}

// A server that goes away in mid-run is waited for; nothing is lost or doubled.
func TestServerThatGoesAwayIsWaitedFor(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	f := new(flaky)
	svc, err := postgres.Open(t.Context(), f.between(t), postgres.Config{Schema: "outage"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close() })
	ctx, enough := context.WithCancel(t.Context())
	var appending, watching sync.WaitGroup
	var accepted, watched [2]atomic.Int64
	var sessions [2]session.Session
	for i, id := range []string{"s1", "s2"} {
		s := create(t, svc, id)
		sessions[i] = s
		appending.Go(func() {
			for ctx.Err() == nil {
				n := int(accepted[i].Load()) + 1
				if err := svc.AppendEvent(t.Context(), s, numbered(n)); err != nil {
					t.Errorf("append %d to %s: %v", n, id, err)
					return
				}
				accepted[i].Add(1)
			}
		})
		watching.Go(func() {
			for ev, err := range svc.Watch(t.Context(), lease.KeyOf(s), 0) {
				if err != nil || ev.Seq != watched[i].Load()+1 {
					t.Errorf("watch %s after %d: %v, %v", id, watched[i].Load(), ev, err)
					return
				}
				watched[i].Add(1)
				if ctx.Err() != nil && ev.Seq >= accepted[i].Load() {
					return
				}
			}
		})
	}
	until(t, "both sessions have an event", func() bool { return accepted[0].Load() > 0 && accepted[1].Load() > 0 })
	server(t, "down")
	before := accepted[0].Load()
	tries := longtest.N[int64](20, 150)
	until(t, "the store has tried to connect", func() bool { return f.refused.Load() >= tries })
	if during := accepted[0].Load(); during > before+1 {
		t.Errorf("%d events were accepted without a server", during-before)
	}
	server(t, "up")
	until(t, "20 more events are accepted", func() bool { return accepted[0].Load() >= before+20 })
	enough()
	appending.Wait()
	for i, s := range sessions { // one more each, for who watches and has seen all
		n := int(accepted[i].Add(1))
		if err := svc.AppendEvent(t.Context(), s, numbered(n)); err != nil {
			t.Fatalf("append %d: %v", n, err)
		}
	}
	watching.Wait()
	for i, id := range []string{"s1", "s2"} {
		wantCount(t, get(t, svc, id), int(accepted[i].Load()))
	}
	t.Logf("%d events before the server went away for %d tries, %d after", before, f.refused.Load(), accepted[0].Load()-before)
}

// until waits for something that others bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if t.Failed() {
			return
		}
		if time.Now().After(end) {
			t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

func TestServerThatStaysAwayIsAnError(t *testing.T) {
	svc := open(t, postgres.Config{Wait: 700 * time.Millisecond})
	s := create(t, svc, "s1")
	if err := svc.AppendEvent(t.Context(), s, numbered(1)); err != nil {
		t.Fatal(err)
	}
	func() {
		server(t, "down")
		defer server(t, "up")
		start := time.Now()
		err := svc.AppendEvent(t.Context(), s, numbered(2))
		if err == nil || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "gave up after") {
			t.Errorf("append: got %v", err)
		}
		_, err = svc.Get(t.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
		if err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("get: got %v", err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("two calls that wait for 700 ms took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := svc.AppendEvent(ctx, s, numbered(2)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an append whose context ends while it waits: got %v", err)
		}
	}()
	if err := svc.AppendEvent(t.Context(), s, numbered(2)); err != nil {
		t.Errorf("the same session goes on when the server is back: %v", err)
	}
	wantCount(t, get(t, svc, "s1"), 2)
}
