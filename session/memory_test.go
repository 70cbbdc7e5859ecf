// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/testkit/heaptest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// A18, A20, D1, D8, D9, D15, E4
func TestInMemoryService(t *testing.T) {
	sessiontest.TestService(t, func(*testing.T) session.Service { return session.InMemoryService() })
}

// LOOP 33
func TestInMemoryLeaser(t *testing.T) {
	sessiontest.TestLeaser(t, func(*testing.T) session.Service { return session.InMemoryService() })
}

func TestInMemoryWatcher(t *testing.T) {
	sessiontest.TestWatcher(t, func(*testing.T) session.Service { return session.InMemoryService() })
}

func create(t testing.TB, svc session.Service) session.Session {
	t.Helper()
	resp, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

func get(t testing.TB, svc session.Service) session.Session {
	t.Helper()
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

// wrapped hands a view of the service's to its user and another Session type
// to the service, as a service that adds something may do.
type wrapped struct{ *session.View }

// E4: whoever applies events to a view of his own must not write into the
// store's log.
func TestApplyToAViewLeavesTheStoreAlone(t *testing.T) {
	svc := session.InMemoryService()
	created := create(t, svc)
	for range 10 {
		if err := svc.AppendEvent(t.Context(), created, &session.Event{}); err != nil {
			t.Fatal(err)
		}
	}
	writer := get(t, svc).(*session.View)
	for i := range 200 { // across several chunks of the log
		ev := &session.Event{Author: "writer"}
		ev.Actions.StateDelta = map[string]any{"temp:n": i, "n": i}
		if err := svc.AppendEvent(t.Context(), wrapped{writer}, ev); err != nil {
			t.Fatal(err)
		}
		writer.Apply(ev)
	}
	stored := get(t, svc).Events()
	if stored.Len() != 210 {
		t.Fatalf("got %d stored events, want 210", stored.Len())
	}
	for ev := range stored.All() {
		if _, ok := ev.Actions.StateDelta["temp:n"]; ok {
			t.Fatalf("event %d was replaced in the store by the one that was applied to a view", ev.Seq)
		}
	}
	if n := writer.Events().Len(); n != 210 {
		t.Errorf("the view shows %d events, want 10 and the 200 applied to it", n)
	}
}

// E4: a writer that presets a sequence number it knows better than its view
// then sees what it had missed.
func TestViewCatchesUpWhenAPresetSeqIsAhead(t *testing.T) {
	svc := session.InMemoryService()
	old := create(t, svc)
	fresh := get(t, svc)
	one := &session.Event{}
	one.Actions.StateDelta = map[string]any{"missed": true}
	if err := svc.AppendEvent(t.Context(), fresh, one); err != nil {
		t.Fatal(err)
	}
	two := &session.Event{Seq: 2}
	if err := svc.AppendEvent(t.Context(), old, two); err != nil {
		t.Fatal(err)
	}
	if n := old.Events().Len(); n != 2 {
		t.Errorf("the view shows %d events, want 2", n)
	}
	if _, err := old.State().Get("missed"); err != nil {
		t.Errorf("the view shows an event without its delta: %v", err)
	}
}

// A view that another store made shows what it did, and what was appended.
func TestViewOfAnotherStoreKeepsItsWindow(t *testing.T) {
	svc := session.InMemoryService()
	writer := create(t, svc)
	for range 3 {
		if err := svc.AppendEvent(t.Context(), writer, &session.Event{}); err != nil {
			t.Fatal(err)
		}
	}
	narrow := session.NewView(session.ViewConfig{
		AppName: "app", UserID: "ana", SessionID: "s1",
		Events: []*session.Event{writer.Events().At(2)}, LastSeq: 3,
	})
	if err := svc.AppendEvent(t.Context(), narrow, &session.Event{}); err != nil {
		t.Fatal(err)
	}
	if n := narrow.Events().Len(); n != 2 {
		t.Errorf("a view of one event shows %d after one append, want 2", n)
	}
}

// A session to which nothing is appended takes the memory of its events and little more; doc/performance.md
// states the bound.
func TestMemoryOfIdleSessions(t *testing.T) {
	const sessions, events = 100, 100
	held := heaptest.Held(func() any {
		svc := session.InMemoryService()
		for range sessions {
			made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana"})
			if err != nil {
				t.Fatal(err)
			}
			for range events {
				ev := session.NewEvent(t.Context(), "e-1")
				ev.Author, ev.Content = "writer", genai.NewContentFromText(strings.Repeat("word ", 8), genai.RoleModel)
				ev.Actions.StateDelta["draft"] = ev.Content.Parts[0].Text
				if err := svc.AppendEvent(t.Context(), made.Session, ev); err != nil {
					t.Fatal(err)
				}
			}
		}
		return svc
	})
	t.Logf("%d bytes an event", held/(sessions*events))
	if most := int64(sessions * events * 1200); held > most {
		t.Errorf("%d sessions with %d events each take %d bytes, want %d at most", sessions, events, held, most)
	}
}

// BenchmarkAppend shows that appending costs the same in a long session.
func BenchmarkAppend(b *testing.B) {
	for _, length := range []int{100, 10000} {
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			b.ReportAllocs()
			svc := session.InMemoryService()
			writer := create(b, svc)
			for range length {
				if err := svc.AppendEvent(b.Context(), writer, &session.Event{}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if err := svc.AppendEvent(b.Context(), writer, &session.Event{Author: "writer"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGet shows that a snapshot does not copy events.
func BenchmarkGet(b *testing.B) {
	for _, length := range []int{100, 10000} {
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			b.ReportAllocs()
			svc := session.InMemoryService()
			writer := create(b, svc)
			for range length {
				if err := svc.AppendEvent(b.Context(), writer, &session.Event{}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				get(b, svc)
			}
		})
	}
}
