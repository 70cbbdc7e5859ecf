// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// several appends events together: what a store.BulkAppender makes of that is what
// one after another would.
func (s *suite) several() {
	made := s.make("s1", map[string]any{"old": 1})
	s.append(made, says("first"))
	held := s.get("s1")
	evs := []*session.Event{
		{Author: "writer", Actions: session.EventActions{StateDelta: map[string]any{"a": 1, "b": 1, "user:k": 1, "temp:t": 1}}},
		says("second"),
		{Author: "writer", Actions: session.EventActions{StateDelta: map[string]any{"piece": 1}}},
		{Author: "writer", Actions: session.EventActions{StateDelta: map[string]any{"a": nil, "b": 2, "c": 3, "old": nil, "app:k": 1}}},
		says("third"),
	}
	evs[1].ID, evs[1].Timestamp, evs[2].Partial, evs[4].Seq = "my-id", noon, true, 5
	s.must(store.AppendAll(s.Context(), s.svc, held, slices.Values(evs)), "append several events")
	for i, want := range []int64{2, 3, 0, 4, 5} {
		if evs[i].Seq != want || want > 0 && (evs[i].ID == "" || evs[i].Timestamp.IsZero()) {
			s.Errorf("event %d of several has Seq %d, ID %q and Timestamp %v: want Seq %d, and all filled in", i+1,
				evs[i].Seq, evs[i].ID, evs[i].Timestamp, want)
		}
	}
	if evs[1].ID != "my-id" || !evs[1].Timestamp.Equal(noon) {
		s.Errorf("an ID and a Timestamp that are set are kept, got %q and %v", evs[1].ID, evs[1].Timestamp)
	}
	want := map[string]any{"b": 2, "c": 3, "user:k": 1, "app:k": 1}
	s.wantTexts(s.get("s1"), []string{"first", "", "second", "", "third"}, "several events are stored in their order")
	s.wantState(s.get("s1"), want, "the state is what the deltas come to, one after another")
	s.wantTexts(held, []string{"first", "", "second", "", "third"}, "whoever appended sees them")
	if ev := s.append(held, says("fourth")); ev.Seq != 6 {
		s.Errorf("the next event has Seq 6, got %d", ev.Seq)
	}
	s.severalShown(held)
	many := s.make("s2", nil)
	var lots []*session.Event
	for i := range 40 {
		lots = append(lots, sets(map[string]any{"n": i, "k" + strconv.Itoa(i%7): i}))
	}
	if err := store.AppendAll(s.Context(), s.svc, many, slices.Values(lots)); err != nil {
		s.Fatalf("append %d events: %v", len(lots), err)
	}
	got := s.get("s2")
	if n := got.Events().Len(); n != len(lots) || got.Events().At(n-1).Seq != int64(n) {
		s.Errorf("%d events are stored, want %d", n, len(lots))
	}
	if v, err := got.State().Get("n"); err != nil || asJSON(s.T, v) != float64(39) {
		s.Errorf("the state has n = %v, %v, want 39", v, err)
	}
}

// severalShown: events that a view shows already, as a runner does with those that it stores
// later, are not shown twice.
func (s *suite) severalShown(held session.Session) {
	v := session.ViewBehind(held)
	svc, ok := s.svc.(store.BulkAppender)
	if v == nil || !ok {
		return
	}
	shown := []*session.Event{says("fifth"), sets(map[string]any{"c": 4}), says("sixth")}
	for i, ev := range shown[:2] {
		ev.Seq, ev.ID, ev.Timestamp = v.LastSeq()+1, "shown-"+strconv.Itoa(i), noon
		v.Apply(ev)
	}
	s.must(svc.AppendEvents(s.Context(), v, shown), "append events that the view shows")
	texts := []string{"first", "", "second", "", "third", "fourth", "fifth", "", "sixth"}
	s.wantTexts(held, texts, "events that were shown already are there once")
	s.wantTexts(s.get("s1"), texts, "and are stored")
	if shown[0].Seq != 7 || shown[0].ID != "shown-0" || !shown[0].Timestamp.Equal(noon) || shown[2].Seq != 9 {
		s.Errorf("events that were shown keep their Seq, ID and Timestamp, got %d %q %v, and %d for the next", shown[0].Seq,
			shown[0].ID, shown[0].Timestamp, shown[2].Seq)
	}
}

// severalRefused: all events are stored, or none.
func (s *suite) severalRefused() {
	svc, ok := s.svc.(store.BulkAppender)
	if !ok {
		s.Skipf("%T is no store.BulkAppender", s.svc)
	}
	s.make("s1", nil)
	winner, loser := s.get("s1"), s.get("s1")
	s.append(winner, says("first"))
	several := func() []*session.Event {
		return []*session.Event{sets(map[string]any{"k": 1, "app:k": 1}), says("two"), says("three")}
	}
	refused := func(what string, of session.Session, want error, evs []*session.Event) {
		s.Helper()
		seqs := make([]int64, len(evs))
		for i, ev := range evs {
			if ev != nil {
				seqs[i] = ev.Seq
			}
		}
		s.wantErr(svc.AppendEvents(s.Context(), of, evs), want, "AppendEvents "+what)
		for i, ev := range evs {
			if ev != nil && (ev.Seq != seqs[i] || ev.ID != "") {
				s.Errorf("%s: event %d is changed: it has Seq %d and ID %q", what, i+1, ev.Seq, ev.ID)
			}
		}
		s.wantTexts(s.get("s1"), []string{"first"}, what+": nothing is stored")
		s.wantState(s.get("s1"), map[string]any{}, what+": no delta is stored")
	}
	refused("through a stale session", loser, session.ErrConflict, several())
	gap := several()
	gap[1].Seq = 7
	refused("with a gap", winner, session.ErrConflict, gap)
	refused("without an event", winner, session.ErrInvalid, []*session.Event{says("two"), nil})
	refused("without a session", nil, session.ErrInvalid, several())
	if err := svc.AppendEvents(s.Context(), winner, nil); err != nil {
		s.Errorf("no events are no error, got %v", err)
	}
	odd := several()
	odd[2].Actions.StateDelta = map[string]any{"k": math.Inf(1)} // has no JSON
	if err := svc.AppendEvents(s.Context(), s.get("s1"), odd); err == nil {
		s.wantTexts(s.get("s1"), []string{"first", "", "two", "three"}, "a service that takes every value stores them")
		return
	}
	s.wantTexts(s.get("s1"), []string{"first"}, "an event without JSON: nothing is stored")
	if leaser, ok := s.svc.(lease.Leaser); ok {
		key := lease.Key{AppName: app, UserID: ana, SessionID: "s1"}
		l, err := leaser.Acquire(s.Context(), key, "one", 1<<40)
		s.must(err)
		s.must(leaser.Release(s.Context(), l))
		err = svc.AppendEvents(lease.With(s.Context(), l), s.get("s1"), several())
		s.wantErr(err, lease.ErrLost, "AppendEvents with a lease that is lost")
		s.wantTexts(s.get("s1"), []string{"first"}, "with a lease that is lost: nothing is stored")
	}
}

// severalBeside: those of two writers do not mix, whoever wins.
func (s *suite) severalBeside() {
	svc, ok := s.svc.(store.BulkAppender)
	if !ok {
		s.Skipf("%T is no store.BulkAppender", s.svc)
	}
	const writers, rounds, each = 4, 10, 5
	s.make("s1", nil)
	var wg sync.WaitGroup
	won := make([]int, writers)
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				resp, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
				if err != nil {
					s.Errorf("Get: %v", err)
					return
				}
				var evs []*session.Event
				for range each {
					evs = append(evs, says(fmt.Sprint("by ", w)))
				}
				switch err := svc.AppendEvents(s.Context(), resp.Session, evs); {
				case err == nil:
					won[w]++
				case !errors.Is(err, session.ErrConflict):
					s.Errorf("AppendEvents: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got, wins := make([]int, writers), 0
	said := texts(s.get("s1").Events())
	for i := 0; i < len(said); i += each {
		if i+each > len(said) || slices.ContainsFunc(said[i:i+each],
			func(text string) bool { return text != said[i] }) {
			s.Fatalf("events of two writers are mixed: %q", said)
		}
		var w int
		if _, err := fmt.Sscan(said[i][len("by "):], &w); err != nil {
			s.Fatal(err)
		}
		got[w]++
		wins++
	}
	if diff := cmp.Diff(won, got); diff != "" || wins == 0 {
		s.Errorf("who was told that it has appended, and who has (-told +stored):\n%s", diff)
	}
}
