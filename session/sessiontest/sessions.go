// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
)

func (s *suite) create() {
	made := s.make("s1", map[string]any{"topic": "cats"})
	for _, got := range []session.Session{made, s.get("s1")} {
		if got.AppName() != app || got.UserID() != ana || got.ID() != "s1" {
			s.Errorf("a session has the names it was created with: got app %q, user %q, ID %q", got.AppName(),
				got.UserID(), got.ID())
		}
		if got.LastUpdateTime().IsZero() {
			s.Error("a new session's LastUpdateTime is when it was created, got the zero time")
		}
		s.wantState(got, map[string]any{"topic": "cats"}, "a session starts with the state it was created with")
		s.wantTexts(got, []string{}, "a new session has no events")
	}
}

func (s *suite) createWithoutID() {
	one, two := s.make("", nil), s.make("", nil)
	if one.ID() == "" || two.ID() == "" {
		s.Fatalf("Create without a SessionID makes one up, got %q and %q", one.ID(), two.ID())
	}
	if one.ID() == two.ID() {
		s.Fatalf("made-up session IDs differ, got %q twice", one.ID())
	}
	if got := s.get(one.ID()); got.ID() != one.ID() {
		s.Errorf("a session is found by its made-up ID %q, got %q", one.ID(), got.ID())
	}
}

func (s *suite) createExisting() {
	s.append(s.make("s1", map[string]any{"topic": "cats"}), says("hello"))
	_, err := s.svc.Create(s.Context(), &session.CreateRequest{
		AppName: app, UserID: ana, SessionID: "s1", State: map[string]any{"topic": "dogs", "app:k": 1},
	})
	s.wantErr(err, session.ErrExists, "Create with an ID that is taken")
	got := s.get("s1")
	s.wantState(got, map[string]any{"topic": "cats"}, "a refused Create changes nothing")
	s.wantTexts(got, []string{"hello"}, "a refused Create changes nothing")

	s.makeFor(app, bob, "s1", nil)
	s.makeFor("other", ana, "s1", nil)
	s.wantTexts(s.fetch(session.GetRequest{AppName: app, UserID: bob, SessionID: "s1"}), []string{},
		"sessions of one ID, but of two users or applications, are two")
}

func (s *suite) createCopies() {
	state := map[string]any{"topic": "cats"}
	made := s.make("s1", state)
	state["topic"] = "dogs"
	s.wantState(made, map[string]any{"topic": "cats"}, "what the caller does with the request's map after Create "+
		"does not matter")
	s.wantState(s.get("s1"), map[string]any{"topic": "cats"},
		"what the caller does with the request's map after Create does not matter")
}

func (s *suite) incomplete() {
	made, ctx := s.make("s1", nil), s.Context()
	for _, req := range []*session.CreateRequest{nil, {UserID: ana, SessionID: "s2"}, {AppName: app, SessionID: "s2"}} {
		_, err := s.svc.Create(ctx, req)
		s.wantErr(err, session.ErrInvalid, "Create needs an app name and a user ID")
	}
	for _, req := range []*session.GetRequest{nil, {UserID: ana, SessionID: "s1"}, {AppName: app, SessionID: "s1"}, {AppName: app, UserID: ana}} {
		_, err := s.svc.Get(ctx, req)
		s.wantErr(err, session.ErrInvalid, "Get needs an app name, a user ID and a session ID")
	}
	for _, req := range []*session.ListRequest{nil, {UserID: ana}} {
		_, err := s.svc.List(ctx, req)
		s.wantErr(err, session.ErrInvalid, "List needs an app name")
	}
	for _, req := range []*session.DeleteRequest{nil, {UserID: ana, SessionID: "s1"}, {AppName: app, SessionID: "s1"}, {AppName: app, UserID: ana}} {
		s.wantErr(s.svc.Delete(ctx, req), session.ErrInvalid, "Delete needs an app name, a user ID and a session ID")
	}
	s.wantErr(s.svc.AppendEvent(ctx, nil, says("hello")), session.ErrInvalid, "AppendEvent needs a session")
	s.wantErr(s.svc.AppendEvent(ctx, made, nil), session.ErrInvalid, "AppendEvent needs an event")
	s.wantTexts(s.get("s1"), []string{}, "a refused request changes nothing")
}

func (s *suite) getMissing() {
	s.make("s1", nil)
	for _, req := range []session.GetRequest{
		{AppName: app, UserID: ana, SessionID: "s2"},
		{AppName: app, UserID: bob, SessionID: "s1"},
		{AppName: "other", UserID: ana, SessionID: "s1"},
	} {
		_, err := s.svc.Get(s.Context(), &req)
		s.wantErr(err, session.ErrNotFound, "Get of a session that this user of this application does not have")
	}
	err := s.svc.AppendEvent(s.Context(), &foreign{id: "s2"}, says("hello"))
	s.wantErr(err, session.ErrNotFound, "AppendEvent to a session that was never created")
}

func (s *suite) list() {
	for _, id := range []string{"s3", "s1", "s2"} {
		s.append(s.make(id, nil), says("hello"))
	}
	s.makeFor(app, bob, "s0", nil)
	s.makeFor("other", ana, "s9", nil)
	for _, tt := range []struct {
		rule string
		req  session.ListRequest
		want []string
	}{
		{"List with a user gives that user's sessions by ID", session.ListRequest{AppName: app, UserID: ana}, []string{"ana s1", "ana s2", "ana s3"}},
		{"List without a user gives the application's sessions by user and ID", session.ListRequest{AppName: app}, []string{"ana s1", "ana s2", "ana s3", "bob s0"}},
		{"List of an application without sessions is empty, and no error", session.ListRequest{AppName: "new"}, []string{}},
		{"List of a user without sessions is empty, and no error", session.ListRequest{AppName: app, UserID: "eve"}, []string{}},
	} {
		resp, err := s.svc.List(s.Context(), &tt.req)
		if err != nil {
			s.Errorf("%s: %v", tt.rule, err)
			continue
		}
		got := []string{}
		for _, one := range resp.Sessions {
			got = append(got, one.UserID()+" "+one.ID())
			if n := one.Events().Len(); n != 0 {
				s.Errorf("List leaves the events out, got %d in session %q", n, one.ID())
			}
			if one.LastUpdateTime().IsZero() {
				s.Errorf("List says when session %q was updated, got the zero time", one.ID())
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			s.Errorf("%s (-want +got):\n%s", tt.rule, diff)
		}
	}
}

func (s *suite) delete() {
	s.append(s.make("s1", nil), sets(map[string]any{"k": 1, "user:k": 2, "app:k": 3}))
	s.append(s.make("s2", nil), says("stays"))
	req := &session.DeleteRequest{AppName: app, UserID: ana, SessionID: "s1"}
	s.must(s.svc.Delete(s.Context(), req), "Delete of a session that is there")
	_, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
	s.wantErr(err, session.ErrNotFound, "Get of a deleted session")
	s.works(s.svc.Delete(s.Context(), req), "Delete of a deleted session")
	s.wantTexts(s.get("s2"), []string{"stays"}, "Delete leaves other sessions alone")

	again := s.make("s1", nil)
	shared := map[string]any{"user:k": 2, "app:k": 3}
	s.wantState(again, shared, "a deleted session's own keys are gone and shared ones are not")
	s.wantTexts(again, []string{}, "a deleted session's events are gone, also under the same ID")
	if ev := s.append(again, says("anew")); ev.Seq != 1 {
		s.Errorf("a session that was created anew counts from 1, got Seq %d", ev.Seq)
	}
}

func (s *suite) appendToDeleted() {
	s.make("s1", nil)
	held := s.get("s1")
	s.remove("s1")
	ev := says("late")
	s.wantErr(s.svc.AppendEvent(s.Context(), held, ev), session.ErrNotFound,
		"AppendEvent to a session that was deleted meanwhile")
	if ev.Seq != 0 {
		s.Errorf("an event that was not appended keeps Seq 0, got %d", ev.Seq)
	}
	_, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
	s.wantErr(err, session.ErrNotFound, "AppendEvent does not bring a deleted session back")
}
