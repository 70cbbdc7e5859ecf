// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
)

func (s *suite) initialState() {
	made := s.make("s1", map[string]any{"k": 1, "user:k": 2, "app:k": 3, "temp:k": 4, "iteration:k": 5, "none": nil})
	want := map[string]any{"k": 1, "user:k": 2, "app:k": 3}
	s.wantState(made, want, "a session's first state has no temp:, no iteration: and no nil values")
	s.wantState(s.get("s1"), want, "a session's first state has no temp:, no iteration: and no nil values")

	s.wantState(s.make("s2", nil), map[string]any{"user:k": 2, "app:k": 3},
		"user: and app: keys of one session's first state are shared at once")
	s.wantState(s.makeFor(app, bob, "s1", nil), map[string]any{"app:k": 3},
		"app: keys are shared with other users, user: keys are not")
	s.wantState(s.makeFor("other", ana, "s1", nil), map[string]any{}, "nothing is shared with another application")
}

func (s *suite) scopes() {
	one := s.make("s1", nil)
	s.make("s2", nil)
	s.makeFor(app, bob, "s1", nil)
	s.makeFor("other", ana, "s1", nil)
	s.append(one, sets(map[string]any{"k": "mine", "user:k": "ours", "app:k": "everybody's"}))

	for _, tt := range []struct {
		rule string
		req  session.GetRequest
		want map[string]any
	}{
		{"an appended delta is in the session's state", session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"}, map[string]any{"k": "mine", "user:k": "ours", "app:k": "everybody's"}},
		{"a user's sessions share user: and app: keys", session.GetRequest{AppName: app, UserID: ana, SessionID: "s2"}, map[string]any{"user:k": "ours", "app:k": "everybody's"}},
		{"two users share app: keys only", session.GetRequest{AppName: app, UserID: bob, SessionID: "s1"}, map[string]any{"app:k": "everybody's"}},
		{"two applications share nothing", session.GetRequest{AppName: "other", UserID: ana, SessionID: "s1"}, map[string]any{}},
	} {
		s.wantState(s.fetch(tt.req), tt.want, tt.rule)
	}

	two := s.get("s2")
	s.append(two, sets(map[string]any{"user:k": "changed", "k": "also mine"}))
	s.wantState(s.get("s1"), map[string]any{"k": "mine", "user:k": "changed", "app:k": "everybody's"},
		"the newest delta wins, also from another session")
}

func (s *suite) shortLived() {
	made := s.make("s1", nil)
	delta := map[string]any{"temp:k": 1, "iteration:k": 2, "k": 3}
	ev := s.append(made, sets(delta))
	if diff := cmp.Diff(asJSON(s.T, delta), asJSON(s.T, ev.Actions.StateDelta)); diff != "" {
		s.Errorf("the event that is appended keeps its temp: keys, for those whom it is shown to (-want +got):\n%s",
			diff)
	}
	s.wantState(made, map[string]any{"temp:k": 1, "iteration:k": 2, "k": 3},
		"the writer sees temp: and iteration: keys")

	got := s.get("s1")
	s.wantState(got, map[string]any{"k": 3}, "temp: and iteration: keys do not outlive the invocation")
	if got.Events().Len() != 1 {
		s.Fatalf("got %d events, want 1", got.Events().Len())
	}
	stored := got.Events().At(0).Actions.StateDelta
	if diff := cmp.Diff(asJSON(s.T, map[string]any{"iteration:k": 2, "k": 3}), asJSON(s.T, stored)); diff != "" {
		s.Errorf("a stored event has no temp: keys, but its iteration: keys, for replay (-want +got):\n%s", diff)
	}
}

func (s *suite) nilRemoves() {
	made := s.make("s1", map[string]any{"k": 1, "user:k": 2, "app:k": 3, "stays": 4})
	s.append(made, sets(map[string]any{"k": nil, "user:k": nil, "app:k": nil, "never": nil}))
	for _, got := range []session.Session{made, s.get("s1")} {
		s.wantState(got, map[string]any{"stays": 4}, "nil in a delta removes the key")
		if v, err := got.State().Get("k"); err == nil {
			s.Errorf("State().Get of a removed key: got %v and no error, want one that is ErrStateKeyNotExist", v)
		} else {
			s.wantErr(err, session.ErrStateKeyNotExist, "State().Get of a removed key")
		}
	}
	s.wantState(s.make("s2", nil), map[string]any{}, "nil in a delta removes shared keys for everybody")
	s.append(made, sets(map[string]any{"k": "back"}))
	s.wantState(s.get("s1"), map[string]any{"k": "back", "stays": 4}, "a removed key can be set again")
}

func (s *suite) setIsLocal() {
	s.make("s1", map[string]any{"k": 1})
	held := s.get("s1")
	s.must(held.State().Set("k", 2), "State().Set")
	s.wantState(held, map[string]any{"k": 2}, "State().Set takes effect at once for its holder")
	s.wantState(s.get("s1"), map[string]any{"k": 1}, "State().Set alone is not stored: what is to last is in an "+
		"event's delta")
}

func (s *suite) values() {
	values := map[string]any{
		"text": "naïve \u2028 \"quoted\" 漢字", "empty": "", "yes": true, "no": false, "zero": 0, "whole": int64(1) << 52, "part": 7.25, "neg": -3,
		"list": []any{"a", 1.5, nil, map[string]any{"b": false}}, "map": map[string]any{"deep": map[string]any{"er": []any{}}},
		"a key with spaces, ünïcode and 'quotes'": "v",

		"id": int64(math.MaxInt64), "negative id": int64(math.MinInt64), "number": uint64(math.MaxUint64), "beyond": 1<<53 + 1, "limit": 1 << 53,
		"large": 1e300, "round": 1e17, "deep id": map[string]any{"ids": []any{int64(math.MaxInt64), 1}}, "long": slices.Repeat([]any{int64(math.MaxInt64)}, 100),
		"duration": time.Minute, "bytes": []byte("data"), "ints": []int{1, 2}, "typed": map[string][]string{"a": {"b"}},
		"struct": struct {
			Name string `json:"name"`
			ID   uint64
		}{"n", math.MaxUint64},
	}
	want, err := session.Normalize(values)
	s.must(err)
	made := s.make("s1", values)
	s.wantValues(made, want, "the first state has its values as session.Plain has them")
	s.wantValues(s.get("s1"), want, "the first state has its values as session.Plain has them")
	changed, all := map[string]any{}, maps.Clone(want)
	for k, v := range values {
		changed["user:"+k], all["user:"+k] = v, want[k]
		changed["app:"+k], all["app:"+k] = v, want[k]
		changed["new "+k], all["new "+k] = v, want[k]
	}
	s.append(made, sets(changed))
	s.wantValues(made, all, "who appends sees values as session.Plain has them")
	got := s.get("s1")
	s.wantValues(got, all, "values of a delta come back as session.Plain has them")
	delta, err := session.Normalize(changed)
	s.must(err)
	if diff := cmp.Diff(delta, got.Events().At(0).Actions.StateDelta); diff != "" {
		s.Errorf("a stored event has its values as session.Plain has them (-want +got):\n%s", diff)
	}
}

// refused: a value that JSON does not have is refused, whole.
func (s *suite) refused() {
	made := s.make("s1", nil)
	for name, v := range map[string]any{"NaN": math.NaN(), "+Inf": []any{math.Inf(1)}, "a function": func() {}} {
		ev := sets(map[string]any{"a": 1, "k": v})
		s.wantErr(s.svc.AppendEvent(s.Context(), made, ev), session.ErrNotJSON, "AppendEvent of "+name)
		_, err := s.svc.Create(s.Context(), &session.CreateRequest{AppName: app, UserID: ana, SessionID: name,
			State: map[string]any{"k": v}})
		s.wantErr(err, session.ErrNotJSON, "Create with "+name)
	}
	s.wantValues(s.get("s1"), map[string]any{}, "nothing of a refused event is stored")
	s.append(made, sets(map[string]any{"a": 1}))
	s.wantValues(s.get("s1"), map[string]any{"a": 1.0}, "a session goes on after a refused event")
}

// wantValues demands a session's whole state, with the types of its values.
func (s *suite) wantValues(of session.Session, want map[string]any, rule string) {
	s.Helper()
	if diff := cmp.Diff(want, maps.Collect(of.State().All())); diff != "" {
		s.Errorf("%s: state of session %q (-want +got):\n%s", rule, of.ID(), diff)
	}
}
