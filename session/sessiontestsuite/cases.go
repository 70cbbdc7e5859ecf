// SPDX-License-Identifier: Apache-2.0

package sessiontestsuite

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

const ana, bob = "ana", "bob"

func (s *suite) createWithID() {
	if !s.SupportsUserProvidedSessionID {
		s.Skip("the service makes the IDs")
	}
	made, err := s.svc.Create(s.Context(), &session.CreateRequest{AppName: s.app, UserID: ana, SessionID: "s1"})
	if err != nil {
		s.Fatal(err)
	}
	if got := Snapshot(made.Session); got.AppName != s.app || got.UserID != ana || got.SessionID != "s1" {
		s.Errorf("Create returns session %q of %q in %q, want what was asked for", got.SessionID, got.UserID, got.AppName)
	}
}

func (s *suite) createWithoutID() {
	one, two := s.create(ana, nil), s.create(ana, nil)
	if one.ID() == "" || one.ID() == two.ID() {
		s.Errorf("Create makes the IDs %q and %q, want two", one.ID(), two.ID())
	}
}

func (s *suite) createExisting() {
	made := s.create(ana, nil)
	req := &session.CreateRequest{AppName: s.app, UserID: ana, SessionID: made.ID()}
	if _, err := s.svc.Create(s.Context(), req); err == nil {
		s.Errorf("Create with the ID %q, which is taken, returns no error", made.ID())
	}
}

func (s *suite) get() {
	made := s.create(ana, map[string]any{"k": "v", "n": 5.0})
	got := s.read(made)
	if got.AppName != s.app || got.UserID != ana || got.SessionID != made.ID() || len(got.Events) != 0 {
		s.Errorf("Get returns %+v", got)
	}
	s.want("Get returns the first state", got.State, map[string]any{"k": "v", "n": 5.0})
}

func (s *suite) getMissing() {
	req := &session.GetRequest{AppName: s.app, UserID: ana, SessionID: "none"}
	if _, err := s.svc.Get(s.Context(), req); err == nil {
		s.Error("Get of a session that was never created returns no error")
	}
}

func (s *suite) getOfOther() {
	made := s.create(ana, nil)
	req := &session.GetRequest{AppName: s.app, UserID: bob, SessionID: made.ID()}
	if _, err := s.svc.Get(s.Context(), req); err == nil {
		s.Error("Get returns another user's session")
	}
}

func (s *suite) windows() {
	made := s.create(ana, nil)
	for i := range 5 {
		ev := event(strconv.Itoa(i))
		ev.Timestamp = noon.Add(time.Duration(i) * time.Second)
		s.add(made, ev)
	}
	for _, tt := range []struct {
		recent int
		after  time.Time
		want   string
	}{
		{0, time.Time{}, "0 1 2 3 4"},
		{3, time.Time{}, "2 3 4"},
		{9, time.Time{}, "0 1 2 3 4"},
		{0, noon.Add(time.Second), "1 2 3 4"}, // the time itself is in
		{2, noon.Add(time.Second), "3 4"},
		{0, noon.Add(time.Hour), ""},
	} {
		got := s.read(made, func(r *session.GetRequest) { r.NumRecentEvents, r.After = tt.recent, tt.after })
		if said := texts(got.Events); said != tt.want {
			s.Errorf("Get with NumRecentEvents %d and After %v returns the events %q, want %q", tt.recent, tt.after, said, tt.want)
		}
	}
}

func (s *suite) list() {
	one, two, other := s.create(ana, nil), s.create(ana, nil), s.create(bob, nil)
	for _, tt := range []struct {
		user string
		want []string
	}{
		{ana, []string{one.ID(), two.ID()}},
		{bob, []string{other.ID()}},
		{"nobody", nil},
		{"", []string{one.ID(), two.ID(), other.ID()}}, // all users
	} {
		all, err := s.svc.List(s.Context(), &session.ListRequest{AppName: s.app, UserID: tt.user})
		if err != nil {
			s.Errorf("List for user %q: %v", tt.user, err)
			continue
		}
		var got []string
		for _, one := range all.Sessions {
			got = append(got, one.ID())
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			s.Errorf("List for user %q returns %q, want %q", tt.user, got, tt.want)
		}
	}
}

func (s *suite) remove(user, id string) error {
	return s.svc.Delete(s.Context(), &session.DeleteRequest{AppName: s.app, UserID: user, SessionID: id})
}

func (s *suite) delete() {
	made := s.create(ana, nil)
	if err := s.remove(ana, made.ID()); err != nil {
		s.Fatal(err)
	}
	req := &session.GetRequest{AppName: s.app, UserID: ana, SessionID: made.ID()}
	if _, err := s.svc.Get(s.Context(), req); err == nil {
		s.Error("Get returns a deleted session")
	}
}

func (s *suite) deleteOfOther() {
	made := s.create(ana, nil)
	_ = s.remove(bob, made.ID()) // it may fail
	s.read(made)
}

func (s *suite) append() {
	made := s.create(ana, nil)
	s.add(made, event("e1"))
	got := s.read(made).Events
	if texts(got) != "e1" {
		s.Fatalf("the session has the events %q, want e1", texts(got))
	}
	if !s.ProvidesServerAssignedEventID && got[0].ID != "e1" {
		s.Errorf("the event's ID is %q, want e1", got[0].ID)
	}
}

// unknownSession is a session that no service knows.
type unknownSession struct{ app string }

func (unknownSession) ID() string                { return "none" }
func (g unknownSession) AppName() string         { return g.app }
func (unknownSession) UserID() string            { return ana }
func (unknownSession) State() session.State      { return nil }
func (unknownSession) Events() session.Events    { return nil }
func (unknownSession) LastUpdateTime() time.Time { return noon }

func (s *suite) appendToMissing() {
	if err := s.svc.AppendEvent(s.Context(), unknownSession{s.app}, event("e1")); err == nil {
		s.Error("AppendEvent to a session that was never created returns no error")
	}
}

func (s *suite) appendToDeleted() {
	made := s.create(ana, nil)
	if err := s.remove(ana, made.ID()); err != nil {
		s.Fatal(err)
	}
	if err := s.svc.AppendEvent(s.Context(), made, event("e1")); err == nil {
		s.Error("AppendEvent to a deleted session returns no error")
	}
}

func (s *suite) partial() {
	made := s.create(ana, nil)
	piece := sets(map[string]any{"k": "v"})
	piece.Partial = true
	s.add(made, piece)
	got := s.read(made)
	if len(got.Events) != 0 {
		s.Errorf("a partial event is stored: %q", texts(got.Events))
	}
	s.want("a partial event changes no state", got.State, map[string]any{"k": nil})
}

func (s *suite) bytes() {
	made := s.create(ana, nil)
	ev := event("e1")
	ev.Content = genai.NewContentFromBytes([]byte("\x00\xffdata"), "image/png", genai.RoleUser)
	s.add(made, ev)
	got := s.read(made).Events
	if len(got) != 1 {
		s.Fatalf("%d events, want 1", len(got))
	}
	if diff := cmp.Diff(ev.Content, got[0].Content); diff != "" {
		s.Errorf("the content (-want +got)\n%s", diff)
	}
}

func (s *suite) order() {
	made := s.create(ana, nil)
	for i := range 4 {
		ev := event(strconv.Itoa(i))
		ev.Timestamp = noon.Add(time.Duration(i) * time.Second)
		s.add(made, ev)
	}
	if got := texts(s.read(made).Events); got != "0 1 2 3" {
		s.Errorf("events come back as %q, want the order in which they were appended", got)
	}
}

func (s *suite) fields() {
	made := s.create(ana, nil)
	ev := sets(map[string]any{"user:k": "v"})
	ev.LongRunningToolIDs, ev.Branch = []string{"t1"}, "a.b"
	ev.TurnComplete, ev.Interrupted = true, true
	ev.ErrorCode, ev.ErrorMessage = "code", "message"
	ev.GroundingMetadata = &genai.GroundingMetadata{WebSearchQueries: []string{"cats"}}
	ev.CustomMetadata = map[string]any{"key": "value"}
	if !s.ProvidesServerAssignedEventID { // such a service does not keep these
		ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 1, CandidatesTokenCount: 2, TotalTokenCount: 3}
		ev.CitationMetadata = &genai.CitationMetadata{Citations: []*genai.Citation{{Title: "t", URI: "https://example.com"}}}
	}
	s.add(made, ev)
	got := s.read(made).Events
	if len(got) != 1 {
		s.Fatalf("%d events, want 1", len(got))
	}
	type fields struct {
		Author, InvocationID, Branch string
		LongRunningToolIDs           []string
		StateDelta                   map[string]any
		Response                     any
	}
	of := func(e *session.Event) fields {
		return fields{e.Author, e.InvocationID, e.Branch, e.LongRunningToolIDs, e.Actions.StateDelta, e.LLMResponse}
	}
	if diff := cmp.Diff(of(ev), of(got[0])); diff != "" {
		s.Errorf("the event (-want +got)\n%s", diff)
	}
	if d := got[0].Timestamp.Sub(ev.Timestamp).Abs(); d > time.Millisecond {
		s.Errorf("the event's time is %v, want %v", got[0].Timestamp, ev.Timestamp)
	}
}

func (s *suite) appState() {
	s.add(s.create(ana, map[string]any{"app:a": "1"}), sets(map[string]any{"app:b": "2"}))
	s.want("all users share app: keys", Snapshot(s.create(bob, nil)).State, map[string]any{"app:a": "1", "app:b": "2"})
}

func (s *suite) userState() {
	s.add(s.create(ana, map[string]any{"user:a": "1"}), sets(map[string]any{"user:b": "2"}))
	s.want("a user's sessions share user: keys", Snapshot(s.create(ana, nil)).State, map[string]any{"user:a": "1", "user:b": "2"})
	s.want("another user does not see them", Snapshot(s.create(bob, nil)).State, map[string]any{"user:a": nil, "user:b": nil})
}

func (s *suite) sessionState() {
	made := s.create(ana, map[string]any{"a": "1"})
	s.add(made, sets(map[string]any{"b": "2"}))
	s.want("a session keeps its keys", s.read(made).State, map[string]any{"a": "1", "b": "2"})
	s.want("another session does not see them", Snapshot(s.create(ana, nil)).State, map[string]any{"a": nil, "b": nil})
}

func (s *suite) tempState() {
	made := s.create(ana, nil)
	s.add(made, sets(map[string]any{"temp:k": "1", "k": "2"}))
	got := s.read(made)
	s.want("temp: keys are not stored", got.State, map[string]any{"temp:k": nil, "k": "2"})
	for _, ev := range got.Events {
		for key := range ev.Actions.StateDelta {
			if strings.HasPrefix(key, session.KeyPrefixTemp) {
				s.Errorf("the stored event has the key %q", key)
			}
		}
	}
}

// texts returns what events say, in their order.
func texts(events []*session.Event) string {
	var all []string
	for _, ev := range events {
		all = append(all, ev.Text())
	}
	return strings.Join(all, " ")
}
