// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// listed leaves of a service what lists sessions.
type listed struct{ session.Service }

// OpenRuns makes runs that stand in every way, and demands that the service finds those that are not over.
// It returns what finds them again, such as after tables were brought up to date.
func OpenRuns(t *testing.T, svc session.Service) (again func(*testing.T, session.Service)) {
	t.Helper()
	s := &suite{T: t, svc: svc}
	s.openRuns()
	return func(t *testing.T, svc session.Service) {
		t.Helper()
		(&suite{T: t, svc: svc}).wantOpen("paused", "running", "waiting", "went on")
	}
}

// openRuns: the sessions whose last run is not over are those of all sessions that say so.
func (s *suite) openRuns() {
	stands := func(status mark.RunStatus) *session.Event {
		run := mark.Run{ID: "e-1", Name: `a "status":"completed" name`, Status: status, Driver: "d"}
		ev, err := session.NewRunEvent(run, "user", mark.KindRunPaused, mark.RunPaused{})
		if err != nil {
			s.Fatal(err)
		}
		return ev
	}
	s.append(s.make("no run", nil), says("hello"))
	for _, status := range []mark.RunStatus{mark.RunRunning, mark.RunIsPaused, mark.RunWaiting, mark.RunCompleted,
		mark.RunFailed, mark.RunCanceled} {
		s.appendAll(s.make(string(status), map[string]any{"k": 1}), stands(mark.RunRunning), stands(status), says("and more"))
	}
	s.appendAll(s.make("went on", nil), stands(mark.RunCompleted), stands(mark.RunRunning))
	if _, err := store.Start(s.Context(), s.svc, begin("started and removed", stands(mark.RunRunning))); err != nil {
		s.Fatal(err)
	}
	s.appendAll(s.makeFor(app, bob, "of bob", nil), stands(mark.RunRunning))
	s.appendAll(s.makeFor("other", ana, "of another", nil), stands(mark.RunRunning))
	s.wantOpen("paused", "running", "started and removed", "waiting", "went on")
	if err := s.svc.Delete(s.Context(), &session.DeleteRequest{AppName: app, UserID: ana, SessionID: "started and removed"}); err != nil {
		s.Fatal(err)
	}
	s.wantOpen("paused", "running", "waiting", "went on")
}

func (s *suite) appendAll(to session.Session, evs ...*session.Event) {
	s.Helper()
	for _, ev := range evs {
		s.append(to, ev)
	}
}

// wantOpen demands what ListOpen finds of ana, and that it says the same as List.
func (s *suite) wantOpen(ids ...string) {
	s.Helper()
	req := &session.ListRequest{AppName: app, UserID: ana}
	describe := func(svc session.Service) (all []string) {
		open, err := store.ListOpen(s.Context(), svc, req)
		if err != nil {
			s.Fatal(err)
		}
		for _, one := range open {
			all = append(all, one.UserID()+" "+one.ID()+" "+string(session.RunOf(one).Status)+" "+one.LastUpdateTime().String())
		}
		return all
	}
	got, err := store.ListOpen(s.Context(), s.svc, req)
	if err != nil {
		s.Fatal(err)
	}
	var found []string
	for _, one := range got {
		found = append(found, one.ID())
	}
	if diff := cmp.Diff(ids, found); diff != "" {
		s.Errorf("ListOpen finds the sessions whose run is not over (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(describe(listed{s.svc}), describe(s.svc)); diff != "" {
		s.Errorf("ListOpen says what List does (-List +ListOpen):\n%s", diff)
	}
	all, err := store.ListOpen(s.Context(), s.svc, &session.ListRequest{AppName: app})
	if err != nil || len(all) != len(ids)+1 {
		s.Errorf("without a user ListOpen finds those of all, got %d and %v", len(all), err)
	}
	if open, ok := s.svc.(store.OpenLister); ok {
		if _, err := open.ListOpen(context.WithoutCancel(s.Context()), nil); err == nil {
			s.Error("ListOpen without a request fails")
		}
	}
}
