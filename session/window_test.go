// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/testkit/heaptest"
	"github.com/refrain-dev/refrain/session"
)

// longEvent says a text of size bytes that is also a state key.
func longEvent(seq int64, size int) *session.Event {
	text := fmt.Sprintf("%d %s", seq, strings.Repeat("x", size))
	ev := &session.Event{Seq: seq, Author: "writer"}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	ev.Actions.StateDelta = map[string]any{"draft": text}
	return ev
}

// longView is a view of n events, which were appended one after another, whose store
// makes each event when it is asked for it.
func longView(n, size int) *session.View {
	v := session.NewView(session.ViewConfig{
		AppName: "app", UserID: "ana", SessionID: "s1",
		Load: func(first, last int64) (evs []*session.Event, err error) {
			for seq := first; seq <= last; seq++ {
				evs = append(evs, longEvent(seq, size))
			}
			return evs, nil
		},
	})
	for seq := range int64(n) {
		v.Apply(longEvent(seq+1, size))
	}
	return v
}

// The memory of a view does not grow with its log: what it does not hold is read from
// the store. Events of 50 kB; looking at all of them does not change it.
func TestViewHoldsAWindowOfItsLog(t *testing.T) {
	view := func(n int) func() any {
		return func() any {
			v := longView(n, 50_000)
			seq := int64(0)
			for ev := range v.Events().All() {
				if seq++; ev.Seq != seq || !strings.HasPrefix(ev.Text(), fmt.Sprint(seq, " ")) {
					t.Fatalf("event %d of the log is event %d", seq, ev.Seq)
				}
			}
			if got := v.Events().Len(); seq != int64(n) || got != n {
				t.Fatalf("the log has %d events, and says %d, want %d", seq, got, n)
			}
			return v
		}
	}
	few, many := heaptest.Held(view(500)), heaptest.Held(view(2500))
	if many > few+few/4+1<<20 {
		t.Errorf("a view of 500 events holds %d bytes, one of 2500 holds %d", few, many)
	}
	if most := int64(40 << 20); many > most {
		t.Errorf("a view holds %d bytes, want no more than %d", many, most)
	}
}

// A snapshot of the events stays what it was while the view lets events go.
func TestSnapshotsOutliveTheWindow(t *testing.T) {
	v := longView(300, 50_000)
	snapshot := v.Events()
	for seq := range int64(700) {
		v.Apply(longEvent(seq+301, 50_000))
	}
	if n := snapshot.Len(); n != 300 {
		t.Fatalf("the snapshot has %d events, want 300", n)
	}
	for i := range 300 {
		if ev := snapshot.At(i); ev.Seq != int64(i)+1 || !strings.HasPrefix(ev.Text(), fmt.Sprint(i+1, " ")) {
			t.Fatalf("event %d of the snapshot is event %d", i+1, ev.Seq)
		}
	}
	if n := v.Events().Len(); n != 1000 || v.Events().At(999).Seq != 1000 {
		t.Errorf("the view has %d events, want 1000", n)
	}
}

// A view of a session that was rewound has the same log.
func TestRewoundViewHoldsAWindow(t *testing.T) {
	v := longView(1000, 50_000)
	back := v.Rewind(10, nil)
	if n := back.Events().Len(); n != 10 {
		t.Fatalf("a rewound view shows %d events, want 10", n)
	}
	for ev := range v.Log().All() {
		back.Replay(ev)
	}
	for seq := range int64(500) {
		back.Apply(longEvent(1001+seq, 50_000))
	}
	seq := int64(0)
	for ev := range back.Events().All() {
		if seq++; ev.Seq != seq {
			t.Fatalf("event %d is event %d", seq, ev.Seq)
		}
	}
	if seq != 1500 {
		t.Errorf("the rewound view shows %d events, want 1500", seq)
	}
}
