// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
)

// noon is a time that every store can keep.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func (s *suite) partial() {
	made := s.make("s1", nil)
	piece := says("hel")
	piece.Partial = true
	piece.Actions.StateDelta = map[string]any{"k": 1}
	s.must(s.svc.AppendEvent(s.Context(), made, piece), "AppendEvent of a partial event does nothing, and is no error")
	if piece.Seq != 0 {
		s.Errorf("a partial event has no place in the log: its Seq stays 0, got %d", piece.Seq)
	}
	if whole := s.append(made, says("hello")); whole.Seq != 1 {
		s.Errorf("a partial event leaves no gap: the next event's Seq is 1, got %d", whole.Seq)
	}
	for _, got := range []session.Session{made, s.get("s1")} {
		s.wantTexts(got, []string{"hello"}, "partial events are not stored")
		s.wantState(got, map[string]any{}, "a partial event's delta is not stored")
	}
}

func (s *suite) order() {
	made := s.make("s1", nil)
	for i, at := range []time.Time{noon, noon.Add(-time.Hour), noon, noon, noon.Add(time.Hour), noon.Add(-2 * time.Hour)} {
		ev := says(strconv.Itoa(i))
		ev.Timestamp = at
		s.append(made, ev)
	}
	want := []string{"0", "1", "2", "3", "4", "5"}
	s.wantTexts(s.get("s1"), want, "events come in the order they were appended, whatever their timestamps say")
	s.wantTexts(made, want, "events come in the order they were appended, whatever their timestamps say")
}

func (s *suite) many() {
	const n = 200
	made := s.make("s1", nil)
	for i := range n {
		ev := s.append(made, says(strconv.Itoa(i)))
		if want := int64(i) + 1; ev.Seq != want {
			s.Fatalf("Seq counts from 1 without gaps: event %d got Seq %d, want %d", i+1, ev.Seq, want)
		}
	}
	got := s.get("s1").Events()
	if got.Len() != n {
		s.Fatalf("got %d events, want the %d that were appended", got.Len(), n)
	}
	s.consistent(got)
	for i := range n {
		if ev := got.At(i); ev.Seq != int64(i)+1 || ev.Text() != strconv.Itoa(i) {
			s.Fatalf("a stored event keeps its Seq: event %d has Seq %d and says %q", i+1, ev.Seq, ev.Text())
		}
	}
}

func (s *suite) fillIn() {
	made := s.make("s1", nil)
	own := says("own")
	own.ID, own.Timestamp = "my-id", noon
	s.append(made, own)
	if own.ID != "my-id" || !own.Timestamp.Equal(noon) {
		s.Errorf("AppendEvent keeps an ID and a Timestamp that are set, got %q and %v", own.ID, own.Timestamp)
	}
	before := time.Now().Add(-time.Minute)
	blank := s.append(made, says("blank"))
	if blank.ID == "" || blank.ID == own.ID {
		s.Errorf("AppendEvent gives an event without an ID one of its own, got %q", blank.ID)
	}
	if blank.Timestamp.Before(before) || blank.Timestamp.After(time.Now().Add(time.Minute)) {
		s.Errorf("AppendEvent gives an event without a Timestamp the time of now, got %v", blank.Timestamp)
	}
	other := s.append(made, says("other"))
	if other.ID == blank.ID {
		s.Errorf("the IDs that AppendEvent gives differ within a session, got %q twice", other.ID)
	}

	got := s.get("s1")
	for i, want := range []*session.Event{own, blank, other} {
		ev := got.Events().At(i)
		if ev.ID != want.ID {
			s.Errorf("the stored event has the ID that its author sees: got %q, want %q", ev.ID, want.ID)
		}
		if d := ev.Timestamp.Sub(want.Timestamp).Abs(); d > time.Millisecond {
			s.Errorf("the stored event has the Timestamp that its author sees: got %v, want %v", ev.Timestamp,
				want.Timestamp)
		}
	}
	if got.LastUpdateTime().Before(before) {
		s.Errorf("LastUpdateTime is when the last event was appended, got %v", got.LastUpdateTime())
	}
}

func (s *suite) recent() {
	made := s.make("s1", nil)
	for i := range 5 {
		s.append(made, sets(map[string]any{"k" + strconv.Itoa(i): i}))
	}
	for _, tt := range []struct{ ask, want int }{{0, 5}, {1, 1}, {2, 2}, {5, 5}, {9, 5}} {
		got := s.fetch(session.GetRequest{AppName: app, UserID: ana, SessionID: "s1", NumRecentEvents: tt.ask})
		evs := got.Events()
		if evs.Len() != tt.want {
			s.Fatalf("NumRecentEvents %d (0: all) of 5 events gives %d of them, got %d", tt.ask, tt.want, evs.Len())
		}
		s.consistent(evs)
		if first := evs.At(0).Seq; first != int64(5-tt.want+1) {
			s.Errorf("NumRecentEvents %d gives the newest events in order: the first has Seq %d, got %d", tt.ask,
				5-tt.want+1, first)
		}
		s.wantState(got, map[string]any{"k0": 0, "k1": 1, "k2": 2, "k3": 3, "k4": 4},
			"the state is that of the whole session, however few events are asked for")
	}
	window := s.fetch(session.GetRequest{AppName: app, UserID: ana, SessionID: "s1", NumRecentEvents: 1})
	s.append(window, says("more"))
	if n := window.Events().Len(); n != 2 {
		s.Errorf("a session fetched with 1 event shows 2 after its holder appended one, got %d", n)
	}
}

func (s *suite) after() {
	made := s.make("s1", nil)
	for i := range 5 {
		ev := says(strconv.Itoa(i))
		ev.Timestamp = noon.Add(time.Duration(i) * time.Minute)
		s.append(made, ev)
	}
	for _, tt := range []struct {
		at     time.Time
		recent int
		want   []string
		rule   string
	}{
		{noon.Add(-time.Hour), 0, []string{"0", "1", "2", "3", "4"}, "After a time before the first event gives all"},
		{noon.Add(2 * time.Minute), 0, []string{"2", "3", "4"}, "After gives events that are not older, so also one of that very time"},
		{noon.Add(2*time.Minute + time.Second), 0, []string{"3", "4"}, "After leaves older events out"},
		{noon.Add(time.Minute), 2, []string{"3", "4"}, "After and NumRecentEvents both limit"},
		{noon.Add(4 * time.Minute), 3, []string{"4"}, "After and NumRecentEvents both limit"},
		{noon.Add(time.Hour), 0, []string{}, "After the last event gives none"},
	} {
		got := s.fetch(session.GetRequest{AppName: app, UserID: ana, SessionID: "s1", After: tt.at,
			NumRecentEvents: tt.recent})
		s.wantTexts(got, tt.want, tt.rule)
	}
	none := s.fetch(session.GetRequest{AppName: app, UserID: ana, SessionID: "s1", After: noon.Add(time.Hour)})
	if ev := s.append(none, says("5")); ev.Seq != 6 {
		s.Errorf("a session knows where its log ends, shown or not: the next event gets Seq 6, got %d", ev.Seq)
	}
}

func (s *suite) writerSees() {
	s.make("s1", nil)
	held := s.get("s1")
	for i := range 3 {
		s.append(held, &session.Event{Author: "writer", Actions: session.EventActions{StateDelta: map[string]any{"n": i + 1}}})
		if n := held.Events().Len(); n != i+1 {
			s.Fatalf("after %d appends the session that was appended to shows %d events, want %[1]d", i+1, n)
		}
		s.wantState(held, map[string]any{"n": i + 1}, "the session that was appended to shows the new state")
	}
	last := held.Events().At(2)
	if d := held.LastUpdateTime().Sub(last.Timestamp).Abs(); d > time.Millisecond {
		s.Errorf("the session that was appended to has a new LastUpdateTime: got %v, want %v", held.LastUpdateTime(),
			last.Timestamp)
	}
}

func (s *suite) snapshots() {
	writer := s.make("s1", map[string]any{"n": 0})
	s.append(writer, says("one"))
	before, events := s.get("s1"), writer.Events()
	for i := range 100 { // enough to grow whatever keeps them
		ev := says(fmt.Sprint("more ", i))
		ev.Actions.StateDelta = map[string]any{"n": i + 1, "app:n": i + 1}
		s.append(writer, ev)
	}
	s.wantTexts(before, []string{"one"}, "a session fetched earlier does not change when somebody else appends")
	s.wantState(before, map[string]any{"n": 0}, "a session fetched earlier does not change when somebody else appends")
	if diff := cmp.Diff([]string{"one"}, texts(events)); diff != "" {
		s.Errorf("Events is fixed: later appends do not change it (-want +got):\n%s", diff)
	}
}

func (s *suite) stale() {
	s.make("s1", nil)
	winner, loser := s.get("s1"), s.get("s1")
	s.append(winner, says("first"))

	ev := says("late")
	ev.Actions.StateDelta = map[string]any{"k": "late", "app:k": "late"}
	s.wantErr(s.svc.AppendEvent(s.Context(), loser, ev), session.ErrConflict,
		"AppendEvent through a session that has not seen the newest event")
	if ev.Seq != 0 || ev.ID != "" || !ev.Timestamp.IsZero() {
		s.Errorf("an event that was refused is unchanged: got Seq %d, ID %q, Timestamp %v", ev.Seq, ev.ID, ev.Timestamp)
	}
	s.wantTexts(loser, []string{}, "a refused event is not in the session that it was appended to")
	s.wantState(loser, map[string]any{}, "a refused event changes no state")
	s.wantErr(s.svc.AppendEvent(s.Context(), loser, ev), session.ErrConflict, "a stale session stays stale")

	fresh := s.get("s1")
	s.wantTexts(fresh, []string{"first"}, "a refused event is not stored")
	s.wantState(fresh, map[string]any{}, "a refused event's delta is not stored, shared keys included")
	if s.append(fresh, ev); ev.Seq != 2 {
		s.Errorf("a refused event can be appended to the session fetched again, as Seq 2, got %d", ev.Seq)
	}
	s.wantTexts(fresh, []string{"first", "late"}, "the writer sees what it appended after what it fetched")
}

func (s *suite) preset() {
	s.make("s1", nil)
	writer, old := s.get("s1"), s.get("s1")
	s.append(writer, says("one"))
	for _, seq := range []int64{1, 3, -1} {
		ev := says("wrong")
		ev.Seq = seq
		s.wantErr(s.svc.AppendEvent(s.Context(), writer, ev), session.ErrConflict,
			fmt.Sprintf("an event with Seq %d preset, where 2 is next", seq))
		if ev.Seq != seq || ev.ID != "" {
			s.Errorf("an event that was refused is unchanged: got Seq %d, want %d, and ID %q, want none", ev.Seq, seq,
				ev.ID)
		}
	}
	ev := says("two")
	ev.Seq = 2
	s.must(s.svc.AppendEvent(s.Context(), old, ev), "a preset Seq that is next counts, whatever the session has seen")
	if ev.Seq != 2 {
		s.Errorf("a preset Seq is kept, got %d", ev.Seq)
	}
	s.wantTexts(s.get("s1"), []string{"one", "two"}, "an event with a preset Seq is stored")
}
