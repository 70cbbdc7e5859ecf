// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// TestShared checks two services that have opened the same store, as two processes do, for what
// each sees of the other's changes. Each subtest opens a store of its own, which must be empty.
// Both services are Leasers and Watchers.
func TestShared(t *testing.T, open func(t *testing.T) (one, other session.Service)) {
	tests := []struct {
		name string
		run  func(one, other *suite)
	}{
		{"state", sharedState},
		{"one session", sharedSession},
		{"lease", sharedLease},
		{"moment of taking over", sharedTakeOver},
		{"watch", sharedWatch},
		{"deleted session", sharedDeletion},
		{"session made anew", sharedAnew},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			one, other := open(t)
			tt.run(&suite{T: t, svc: one}, &suite{T: t, svc: other})
		})
	}
}

func sharedState(one, other *suite) {
	one.append(one.make("s1", nil), sets(map[string]any{"k": 1, "app:k": 2}))
	got := other.get("s1")
	got.State()
	other.wantState(got, map[string]any{"k": 1, "app:k": 2}, "what one service stored the other reads")
	other.append(got, sets(map[string]any{"k": nil, "app:k": 3}))
	one.wantState(one.get("s1"), map[string]any{"app:k": 3}, "what one service stored the other reads")
}

func sharedSession(one, other *suite) {
	const each = 40
	one.make("s1", nil)
	var wg sync.WaitGroup
	for _, s := range []*suite{one, other} {
		wg.Go(func() {
			for done := 0; done < each; {
				resp, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1",
					NumRecentEvents: 1})
				if err != nil {
					s.Errorf("Get beside another writer: %v", err)
					return
				}
				switch err := s.svc.AppendEvent(s.Context(), resp.Session, says("x")); {
				case err == nil:
					done++
				case !errors.Is(err, session.ErrConflict):
					s.Errorf("of two services that append to one session at once, one gets ErrConflict and nothing "+
						"else: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	seq := int64(0)
	for ev := range one.get("s1").Events().All() {
		if seq++; ev.Seq != seq {
			one.Fatalf("Seq counts without gaps or doubles: event %d has Seq %d", seq, ev.Seq)
		}
	}
	if seq != 2*each {
		one.Errorf("%d appends succeeded, got %d events", 2*each, seq)
	}
}

func sharedLease(one, other *suite) {
	one.make("s1", nil)
	l, err := one.svc.(lease.Leaser).Acquire(one.Context(), s1, "pid 1", time.Hour)
	one.must(err)
	_, err = other.svc.(lease.Leaser).Acquire(one.Context(), s1, "pid 2", time.Hour)
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok || held.Owner != "pid 1" {
		one.Fatalf("the second service gets an error that names the first, got %v", err)
	}
	next, err := other.svc.(lease.Leaser).TakeOver(one.Context(), held, "pid 2", time.Hour)
	one.must(err)
	err = one.svc.AppendEvent(lease.With(one.Context(), l), one.get("s1"), says("late"))
	one.wantErr(err, lease.ErrLost, "AppendEvent by the first service after the second took over")
	one.works(other.svc.AppendEvent(lease.With(one.Context(), next), other.get("s1"), says("on")), "AppendEvent by the second service")
}

// sharedTakeOver has one service append as fast as it can while the other takes
// the lease: what the new holder then reads must be all there ever is.
func sharedTakeOver(one, other *suite) {
	one.make("s1", nil)
	var l *lease.Lease
	for round := range 40 {
		var err error
		if l == nil {
			if l, err = one.svc.(lease.Leaser).Acquire(one.Context(), s1, "pid 0", time.Hour); err != nil {
				one.Fatal(err)
			}
		}
		started, lost := make(chan struct{}), make(chan error)
		writer, ctx := one.get("s1"), lease.With(one.Context(), l)
		go func() {
			for n := 0; ; n++ {
				if err := one.svc.AppendEvent(ctx, writer, says("x")); err != nil {
					lost <- err
					return
				}
				if n == 0 {
					close(started)
				}
			}
		}()
		<-started
		held := &lease.HeldError{Key: s1, Token: l.Token}
		if l, err = other.svc.(lease.Leaser).TakeOver(one.Context(), held, "pid "+strconv.Itoa(round+1),
			time.Hour); err != nil {
			one.Fatal(err)
		}
		read := other.get("s1").Events().Len()
		one.wantErr(<-lost, lease.ErrLost, "AppendEvent after the lease was taken over")
		if n := other.get("s1").Events().Len(); n != read {
			one.Fatalf("round %d: %d events came after the lease was taken over", round, n-read)
		}
	}
}

func sharedWatch(one, other *suite) {
	const appends = 200
	writer := one.make("s1", nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		other.watchBy(other.svc.(store.Watcher), 0, appends, func(ev *session.Event) {
			if ev.Text() != strconv.FormatInt(ev.Seq, 10) {
				other.Errorf("event %d says %q", ev.Seq, ev.Text())
			}
		})
	})
	for i := range appends {
		one.append(writer, says(strconv.Itoa(i+1)))
	}
	wg.Wait()
	// More when it waits: each when the one before has been seen.
	const more = 5
	seen := make(chan struct{}, more)
	wg.Go(func() {
		defer close(seen)
		other.watchBy(other.svc.(store.Watcher), appends, more, func(*session.Event) { seen <- struct{}{} })
	})
	for range more {
		one.append(writer, says("more"))
		<-seen
	}
	wg.Wait()
}

func sharedDeletion(one, other *suite) {
	one.append(one.make("s1", nil), says("x"))
	held := other.get("s1")
	pairs := 0
	for _, err := range other.svc.(store.Watcher).Watch(other.patient(), s1, 0) {
		if pairs++; pairs == 1 {
			one.remove("s1")
			continue
		}
		other.wantErr(err, session.ErrNotFound, "Watch of a session that another service deletes")
	}
	other.wantErr(other.svc.AppendEvent(other.Context(), held, says("late")), session.ErrNotFound,
		"AppendEvent to a session that another service deleted")
	again := one.make("s1", nil)
	one.append(again, says("anew"))
	other.wantTexts(other.get("s1"), []string{"anew"}, "a session that another service created anew is another one")
	other.wantErr(other.svc.AppendEvent(other.Context(), other.get("s1"), &session.Event{Seq: 1}), session.ErrConflict,
		"AppendEvent to a session that another service created anew")
	other.append(other.get("s1"), says("and more"))
}

func sharedAnew(one, other *suite) {
	one.make("s1", nil)
	other.append(other.get("s1"), says("by the other")) // which now knows the session
	one.remove("s1")
	one.make("s1", nil)
	other.append(other.get("s1"), says("anew"))
	one.wantTexts(one.get("s1"), []string{"anew"}, "a session that another service created anew can be appended to")
}
