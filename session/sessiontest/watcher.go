// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// TestWatcher checks that a service keeps the promises of store.Watcher. Each
// subtest opens a service of its own, which must be empty.
func TestWatcher(t *testing.T, open func(t *testing.T) session.Service) {
	tests := []struct {
		name string
		run  func(*watchSuite)
	}{
		{"what is there and what comes", (*watchSuite).thereAndNew},
		{"after an event", (*watchSuite).after},
		{"events as stored", (*watchSuite).stored},
		{"many watchers", (*watchSuite).many},
		{"slow watcher", (*watchSuite).slow},
		{"end of the context", (*watchSuite).canceled},
		{"leaving", (*watchSuite).leaving},
		{"appending while watching", (*watchSuite).appending},
		{"deleted session", (*watchSuite).deleted},
		{"no session", (*watchSuite).missing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			svc := open(t)
			w, ok := svc.(store.Watcher)
			if !ok {
				t.Fatalf("%T is no store.Watcher", svc)
			}
			tt.run(&watchSuite{suite{T: t, svc: svc}, w})
		})
	}
}

// watchSuite is one subtest with its service.
type watchSuite struct {
	suite
	watcher store.Watcher
}

// patient is a context that ends when a watch has surely failed.
func (s *suite) patient() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Minute)
	s.Cleanup(cancel)
	return ctx
}

// watch collects n events.
func (s *watchSuite) watch(after int64, n int) []*session.Event {
	s.Helper()
	return s.watchBy(s.watcher, after, n, nil)
}

// watchBy collects n events, and calls seen with each.
func (s *suite) watchBy(w store.Watcher, after int64, n int, seen func(*session.Event)) (evs []*session.Event) {
	s.Helper()
	for ev, err := range w.Watch(s.patient(), s1, after) {
		if err != nil {
			s.Errorf("Watch after %d ended with %d of %d events: %v", after, len(evs), n, err)
			return evs
		}
		if want := after + int64(len(evs)) + 1; ev.Seq != want {
			s.Errorf("Watch leaves none out and doubles none: got Seq %d, want %d", ev.Seq, want)
			return evs
		}
		evs = append(evs, ev)
		if seen != nil {
			seen(ev)
		}
		if len(evs) == n {
			return evs
		}
	}
	s.Errorf("Watch ended without an error after %d of %d events", len(evs), n)
	return evs
}

func (s *watchSuite) thereAndNew() {
	writer := s.make("s1", nil)
	for i := range 3 {
		s.append(writer, says(strconv.Itoa(i)))
	}
	s.watchBy(s.watcher, 0, 6, func(ev *session.Event) {
		if ev.Text() != strconv.Itoa(int(ev.Seq)-1) {
			s.Errorf("event %d says %q", ev.Seq, ev.Text())
		}
		if ev.Seq >= 3 && ev.Seq < 6 {
			s.append(writer, says(strconv.Itoa(int(ev.Seq))))
		}
	})
}

func (s *watchSuite) after() {
	writer := s.make("s1", nil)
	for range 3 {
		s.append(writer, says("x"))
	}
	for _, tt := range []struct{ after, first int64 }{{-1, 1}, {0, 1}, {1, 2}, {2, 3}} {
		for ev, err := range s.watcher.Watch(s.patient(), s1, tt.after) {
			if err != nil || ev.Seq != tt.first {
				s.Errorf("Watch after %d begins with Seq %d: got %+v, error %v", tt.after, tt.first, ev, err)
			}
			break
		}
	}
	// What is not there yet is waited for, also where it is further on.
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(4, 2) })
	for range 3 {
		s.append(writer, says("x"))
	}
	wg.Wait()
}

func (s *watchSuite) stored() {
	writer := s.make("s1", nil)
	full := FullEvent()
	full.Actions.StateDelta["temp:k"] = 1
	s.append(writer, full)
	got, want := s.watch(0, 1), s.get("s1").Events().At(0)
	if len(got) == 1 {
		if diff := cmp.Diff(asJSON(s.T, want), asJSON(s.T, got[0])); diff != "" {
			s.Errorf("Watch yields events as Get has them (-Get +Watch):\n%s", diff)
		}
		if _, ok := got[0].Actions.StateDelta["temp:k"]; ok {
			s.Error("a watched event has no temp: keys")
		}
	}
}

func (s *watchSuite) many() {
	const watchers, appends = 5, 400
	writer, other := s.make("s1", nil), s.make("s2", nil)
	var wg sync.WaitGroup
	for i := range watchers {
		wg.Go(func() { s.watch(int64(i), appends-i) })
	}
	for range appends {
		s.append(writer, says("x"))
		s.append(other, says("not this one"))
	}
	wg.Wait()
}

func (s *watchSuite) slow() {
	writer := s.make("s1", nil)
	s.append(writer, says("x"))
	s.watchBy(s.watcher, 0, 300, func(ev *session.Event) {
		if ev.Seq == 1 {
			for range 299 { // the watcher looks at an event while the others come
				s.append(writer, says("x"))
			}
		}
	})
}

func (s *watchSuite) canceled() {
	writer := s.make("s1", nil)
	s.append(writer, says("x"))
	s.append(writer, says("x"))
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(s.Context())
	pairs := 0
	for ev, err := range s.watcher.Watch(ctx, s1, 0) {
		if pairs++; pairs == 1 {
			cancel(why) // there is one more
			continue
		}
		if ev != nil || !errors.Is(err, why) || pairs > 2 {
			s.Errorf("Watch ends at once, with one error that is the context's cause: got event %v, error %v", ev, err)
		}
	}
	if pairs != 2 {
		s.Errorf("Watch ends with the context's cause: got %d pairs, want an event and an error", pairs)
	}
	ctx, cancel = context.WithCancelCause(s.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) }) // while it waits
	for ev, err := range s.watcher.Watch(ctx, s1, 2) {
		if ev != nil || !errors.Is(err, why) {
			s.Errorf("Watch that waits ends with the context's cause: got event %v, error %v", ev, err)
		}
	}
}

func (s *watchSuite) leaving() {
	writer := s.make("s1", nil)
	s.append(writer, says("one"))
	s.append(writer, says("two"))
	seq := s.watcher.Watch(s.patient(), s1, 0)
	for range 2 {
		for ev, err := range seq {
			if err != nil || ev.Text() != "one" {
				s.Errorf("ranging again begins again: got %v, error %v", ev, err)
			}
			break
		}
	}
}

func (s *watchSuite) appending() {
	writer := s.make("s1", nil)
	s.append(writer, says("x"))
	s.watchBy(s.watcher, 0, 50, func(*session.Event) { s.append(writer, says("x")) })
}

func (s *watchSuite) deleted() {
	s.append(s.make("s1", nil), says("x"))
	pairs := 0
	for ev, err := range s.watcher.Watch(s.patient(), s1, 0) {
		if pairs++; pairs == 1 {
			s.must(err)
			s.remove("s1")
			s.append(s.make("s1", nil), says("another one")) // under the same name
			continue
		}
		if ev != nil {
			s.Fatalf("Watch of a deleted session yields %v", ev)
		}
		s.wantErr(err, session.ErrNotFound, "Watch of a session that is deleted meanwhile")
	}
	if pairs != 2 {
		s.Errorf("Watch ends when its session is deleted: got %d pairs, want an event and an error", pairs)
	}
}

func (s *watchSuite) missing() {
	for _, tt := range []struct {
		key  lease.Key
		want error
	}{{s1, session.ErrNotFound}, {lease.Key{}, session.ErrInvalid}} {
		pairs := 0
		for ev, err := range s.watcher.Watch(s.patient(), tt.key, 0) {
			if pairs++; ev != nil {
				s.Fatalf("Watch of no session yields %v", ev)
			}
			s.wantErr(err, tt.want, "Watch of a session that is not there")
		}
		if pairs != 1 {
			s.Errorf("Watch of a session that is not there is one error, got %d pairs", pairs)
		}
	}
}
