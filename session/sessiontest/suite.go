// SPDX-License-Identifier: Apache-2.0

// Package sessiontest checks that a session service keeps the promises of session.Service. Every service
// of this project passes it. Run it for your own service and for a wrapper around a service, too.
//
//	func TestService(t *testing.T) {
//		sessiontest.TestService(t, func(t *testing.T) session.Service { return mystore.Open(t.TempDir()) })
//	}
package sessiontest

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// TestService runs the suite. Each subtest opens a service of its own, which must be empty;
// open cleans up by t.Cleanup. State values come back in the form of session.Plain, for readers
// and for the writer.
func TestService(t *testing.T, open func(t *testing.T) session.Service) {
	tests := []struct {
		name string
		run  func(*suite)
	}{
		{"create", (*suite).create},
		{"create without an ID", (*suite).createWithoutID},
		{"create what exists", (*suite).createExisting},
		{"create keeps a copy of the state", (*suite).createCopies},
		{"incomplete requests", (*suite).incomplete},
		{"get what is not there", (*suite).getMissing},
		{"list", (*suite).list},
		{"open runs", (*suite).openRuns},
		{"delete", (*suite).delete},
		{"append to a deleted session", (*suite).appendToDeleted},
		{"initial state", (*suite).initialState},
		{"state scopes", (*suite).scopes},
		{"short-lived keys", (*suite).shortLived},
		{"nil removes a key", (*suite).nilRemoves},
		{"setting state is not storing it", (*suite).setIsLocal},
		{"values", (*suite).values},
		{"values that JSON does not have", (*suite).refused},
		{"partial events", (*suite).partial},
		{"order", (*suite).order},
		{"many events", (*suite).many},
		{"long texts", (*suite).longTexts},
		{"outline", (*suite).outline},
		{"ID and timestamp", (*suite).fillIn},
		{"recent events", (*suite).recent},
		{"events after", (*suite).after},
		{"the writer sees what it appends", (*suite).writerSees},
		{"snapshots", (*suite).snapshots},
		{"stale writer", (*suite).stale},
		{"preset sequence number", (*suite).preset},
		{"several events", (*suite).several},
		{"several events that are refused", (*suite).severalRefused},
		{"several events beside others", (*suite).severalBeside},
		{"start", (*suite).start},
		{"start with a lease", (*suite).startLeased},
		{"start what exists", (*suite).startExisting},
		{"start that is refused", (*suite).startRefused},
		{"start with a log", (*suite).startLog},
		{"starts beside one another", (*suite).startBeside},
		{"foreign session type", (*suite).foreignSession},
		{"foreign session without events", (*suite).eventlessSession},
		{"event fields", (*suite).fields},
		{"writers on many sessions", (*suite).manySessions},
		{"writers on one session", (*suite).oneSession},
		{"readers beside a writer", (*suite).readers},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(&suite{T: t, svc: open(t)}) })
	}
}

const app, ana, bob = "app", "ana", "bob"

// suite is one subtest with its service.
type suite struct {
	*testing.T
	svc session.Service
}

// make creates a session of ana's.
func (s *suite) make(id string, state map[string]any) session.Session {
	s.Helper()
	return s.makeFor(app, ana, id, state)
}

func (s *suite) makeFor(app, user, id string, state map[string]any) session.Session {
	s.Helper()
	resp, err := s.svc.Create(s.Context(), &session.CreateRequest{AppName: app, UserID: user, SessionID: id,
		State: state})
	if err != nil {
		s.Fatalf("Create(%q, %q, %q): %v", app, user, id, err)
	}
	return resp.Session
}

// get fetches a session of ana's.
func (s *suite) get(id string) session.Session {
	s.Helper()
	return s.fetch(session.GetRequest{AppName: app, UserID: ana, SessionID: id})
}

func (s *suite) fetch(req session.GetRequest) session.Session {
	s.Helper()
	resp, err := s.svc.Get(s.Context(), &req)
	if err != nil {
		s.Fatalf("Get(%q, %q, %q): %v", req.AppName, req.UserID, req.SessionID, err)
	}
	return resp.Session
}

// append adds an event that must be accepted.
func (s *suite) append(to session.Session, ev *session.Event) *session.Event {
	s.Helper()
	if err := s.svc.AppendEvent(s.Context(), to, ev); err != nil {
		s.Fatalf("AppendEvent to session %q: %v", to.ID(), err)
	}
	return ev
}

// says is an event with words.
func says(text string) *session.Event {
	ev := &session.Event{Author: "writer", InvocationID: "run"}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

// sets is an event with a state delta.
func sets(delta map[string]any) *session.Event {
	ev := &session.Event{Author: "writer", InvocationID: "run"}
	ev.Actions.StateDelta = delta
	return ev
}

// remove deletes a session of ana's.
func (s *suite) remove(id string) {
	s.Helper()
	s.must(s.svc.Delete(s.Context(), &session.DeleteRequest{AppName: app, UserID: ana, SessionID: id}))
}

// must ends the subtest if there is an error. The rule, if there is one, says what has to work.
func (s *suite) must(err error, rule ...string) {
	s.Helper()
	if err != nil {
		s.Fatal(strings.Join(append(rule, err.Error()), ": "))
	}
}

// works demands that there is no error, and goes on.
func (s *suite) works(err error, rule string) {
	s.Helper()
	if err != nil {
		s.Errorf("%s: %v", rule, err)
	}
}

// wantErr demands an error that errors.Is finds.
func (s *suite) wantErr(err, want error, rule string) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: got error %v, want one that is %q", rule, err, want)
	}
}

// wantState demands a session's whole state.
func (s *suite) wantState(of session.Session, want map[string]any, rule string) {
	s.Helper()
	if diff := cmp.Diff(asJSON(s.T, want), asJSON(s.T, maps.Collect(of.State().All()))); diff != "" {
		s.Errorf("%s: state of session %q (-want +got):\n%s", rule, of.ID(), diff)
	}
	for k := range want {
		if _, err := of.State().Get(k); err != nil {
			s.Errorf("%s: State().All yields %q, so State().Get(%q) must find it, got error %v", rule, k, k, err)
		}
	}
}

// wantTexts demands what the events say, in order.
func (s *suite) wantTexts(of session.Session, want []string, rule string) {
	s.Helper()
	if diff := cmp.Diff(want, texts(of.Events())); diff != "" {
		s.Errorf("%s: events of session %q (-want +got):\n%s", rule, of.ID(), diff)
	}
	s.consistent(of.Events())
}

// consistent demands that the three ways to read events agree.
func (s *suite) consistent(evs session.Events) {
	s.Helper()
	n := 0
	for ev := range evs.All() {
		if n < evs.Len() && evs.At(n) != ev {
			s.Errorf("Events.At(%d) must be the event that All yields at that place", n)
		}
		n++
	}
	if n != evs.Len() {
		s.Errorf("Events.All yields %d events, so Len must say so, got %d", n, evs.Len())
	}
}

func texts(evs session.Events) []string {
	all := []string{}
	for ev := range evs.All() {
		all = append(all, ev.Text())
	}
	return all
}

// asJSON is v after a way through JSON, where every number is a float64.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode %v: %v", v, err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
	return out
}
