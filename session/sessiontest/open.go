// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// withoutList leaves of a service what lists sessions.
type withoutList struct{ session.Service }

// OpenRuns makes runs of every status, and checks that the service finds those that are not over. It
// returns a function that checks this again, for example after an update of the tables.
func OpenRuns(t *testing.T, svc session.Service) (again func(*testing.T, session.Service)) {
	t.Helper()
	s := &suite{T: t, svc: svc}
	s.openRuns()
	return func(t *testing.T, svc session.Service) {
		t.Helper()
		(&suite{T: t, svc: svc}).wantOpen("paused", "running", "waiting", "went on")
	}
}

// DamagedRun checks that a run whose record in the database is damaged does not hide other runs that are not
// over. damage overwrites the value of a key in the state of the session with that name.
func DamagedRun(t *testing.T, svc session.Service, damage func(t *testing.T, id, key string, value []byte)) {
	t.Helper()
	s := &suite{T: t, svc: svc}
	run := mark.Run{ID: "e-1", Status: mark.RunRunning}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		ev, err := session.NewRunEvent(run, "user", mark.KindRunStarted, mark.RunStarted{})
		s.must(err)
		s.append(s.make(id, map[string]any{"k": 1}), ev)
	}
	damage(t, "a", "k", []byte("{")) // nobody reads it here
	damage(t, "b", mark.KeyRun, []byte(`{"half`))
	damage(t, "d", mark.KeyRun, []byte(`"no run"`))
	open, err := store.ListOpen(t.Context(), svc, &session.ListRequest{AppName: app})
	var ids []string
	for _, one := range open {
		ids = append(ids, one.ID())
	}
	if diff := cmp.Diff([]string{"a", "c", "e"}, ids); diff != "" {
		t.Errorf("the runs that can be read are found (-want +got):\n%s", diff)
	}
	for _, id := range []string{"b", "d"} {
		if err == nil || !strings.Contains(err.Error(), `session "`+id+`" of user "ana" is left out`) {
			t.Errorf("the error names session %q, got: %v", id, err)
		}
	}
}

// openRuns: the sessions whose last run is not over are those of all sessions that say so.
func (s *suite) openRuns() {
	stands := func(status mark.RunStatus) *session.Event {
		run := mark.Run{ID: "e-1", Name: `a "status":"completed" name`, Status: status, Driver: "d"}
		ev, err := session.NewRunEvent(run, "user", mark.KindRunPaused, mark.RunPaused{})
		s.must(err)
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
	s.remove("started and removed")
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
		s.must(err)
		for _, one := range open {
			all = append(all, one.UserID()+" "+one.ID()+" "+string(session.RunOf(one).Status)+" "+one.LastUpdateTime().String())
		}
		return all
	}
	got, err := store.ListOpen(s.Context(), s.svc, req)
	s.must(err)
	var found []string
	for _, one := range got {
		found = append(found, one.ID())
	}
	if diff := cmp.Diff(ids, found); diff != "" {
		s.Errorf("ListOpen finds the sessions whose run is not over (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(describe(withoutList{s.svc}), describe(s.svc)); diff != "" {
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
