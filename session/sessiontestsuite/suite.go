// SPDX-License-Identifier: Apache-2.0

// Package sessiontestsuite checks that a session service does what ADK promises. It has ADK's names, for
// the tests of services that were written for ADK.
//
//	func TestService(t *testing.T) {
//		opts := sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}
//		sessiontestsuite.RunServiceTests(t, opts, func(t *testing.T) session.Service { return mystore.Open(t.TempDir()) })
//	}
//
// A service that passes works in a runner. For durable runs and several processes, it needs what
// [sessiontest.TestService] demands: sequence numbers, errors for [errors.Is], and conflicts for stale
// writers.
//
// [sessiontest.TestService]: https://pkg.go.dev/github.com/refrain-dev/refrain/session/sessiontest#TestService
package sessiontestsuite

import (
	"cmp"
	"maps"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// SuiteOptions says what a service can do.
type SuiteOptions struct {
	// SupportsUserProvidedSessionID says that Create takes a SessionID. Without it the service makes every ID.
	SupportsUserProvidedSessionID bool
	// ProvidesServerAssignedEventID says that the service replaces the IDs of events.
	ProvidesServerAssignedEventID bool
	// AppName is the application of the sessions; the default is "testApp".
	AppName string
}

// ExpectedSession is what a session holds, as plain values.
type ExpectedSession struct {
	AppName, UserID, SessionID string
	State                      map[string]any
	Events                     []*session.Event
}

// Snapshot returns the contents of a session, and the zero value for nil. The events are those of the session,
// not copies.
func Snapshot(s session.Session) ExpectedSession {
	if s == nil {
		return ExpectedSession{}
	}
	held := ExpectedSession{AppName: s.AppName(), UserID: s.UserID(), SessionID: s.ID(), State: map[string]any{}}
	if state := s.State(); state != nil {
		maps.Insert(held.State, state.All())
	}
	if events := s.Events(); events != nil {
		for ev := range events.All() {
			held.Events = append(held.Events, ev)
		}
	}
	return held
}

// RunServiceTests runs the suite. Each subtest gets its own service from setup, which must be empty; setup
// cleans up with t.Cleanup.
func RunServiceTests(t *testing.T, opts SuiteOptions, setup func(t *testing.T) session.Service) {
	for _, tt := range []struct {
		name string
		run  func(*suite)
	}{
		{"create with an ID", (*suite).createWithID},
		{"create without an ID", (*suite).createWithoutID},
		{"create what exists", (*suite).createExisting},
		{"get", (*suite).get},
		{"get what is not there", (*suite).getMissing},
		{"get is for the user of the session", (*suite).getOfOther},
		{"recent events and events after", (*suite).windows},
		{"list", (*suite).list},
		{"delete", (*suite).delete},
		{"delete is for the user of the session", (*suite).deleteOfOther},
		{"append", (*suite).append},
		{"append to what is not there", (*suite).appendToMissing},
		{"append to a deleted session", (*suite).appendToDeleted},
		{"partial events", (*suite).partial},
		{"bytes", (*suite).bytes},
		{"order", (*suite).order},
		{"fields", (*suite).fields},
		{"app state", (*suite).appState},
		{"user state", (*suite).userState},
		{"session state", (*suite).sessionState},
		{"temporary state", (*suite).tempState},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.run(&suite{T: t, SuiteOptions: opts, svc: setup(t), app: cmp.Or(opts.AppName, "testApp")})
		})
	}
}

// suite is one subtest with its service.
type suite struct {
	*testing.T
	SuiteOptions
	svc session.Service
	app string
}

// create makes a session, whose ID the service chooses.
func (s *suite) create(user string, state map[string]any) session.Session {
	s.Helper()
	made, err := s.svc.Create(s.Context(), &session.CreateRequest{AppName: s.app, UserID: user, State: state})
	if err != nil {
		s.Fatalf("Create for user %q: %v", user, err)
	}
	return made.Session
}

// read returns what the service has of a session.
func (s *suite) read(of session.Session, change ...func(*session.GetRequest)) ExpectedSession {
	s.Helper()
	req := &session.GetRequest{AppName: s.app, UserID: of.UserID(), SessionID: of.ID()}
	for _, f := range change {
		f(req)
	}
	got, err := s.svc.Get(s.Context(), req)
	if err != nil {
		s.Fatalf("Get session %q of user %q: %v", of.ID(), of.UserID(), err)
	}
	return Snapshot(got.Session)
}

// add appends an event that must be accepted.
func (s *suite) add(to session.Session, ev *session.Event) {
	s.Helper()
	if err := s.svc.AppendEvent(s.Context(), to, ev); err != nil {
		s.Fatalf("AppendEvent to session %q: %v", to.ID(), err)
	}
}

// want demands the values of some keys; nil demands that a key is not there.
func (s *suite) want(rule string, state, want map[string]any) {
	s.Helper()
	for key, v := range want {
		if state[key] != v {
			s.Errorf("%s: state %q is %v, want %v", rule, key, state[key], v)
		}
	}
}

// event is an event of the user's.
func event(id string) *session.Event {
	ev := &session.Event{ID: id, Author: "user", InvocationID: "i-" + id, Timestamp: noon}
	ev.Content = genai.NewContentFromText(id, genai.RoleUser)
	return ev
}

// sets is an event that changes the state.
func sets(delta map[string]any) *session.Event {
	ev := event("e1")
	ev.Actions.StateDelta = delta
	return ev
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
