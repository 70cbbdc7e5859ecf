// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/session"
)

// oldView is a view of n events of which only the last ones were read. Loads
// counts what was read later.
func oldView(n, read int, loads *[][2]int64, fail func() error) *session.View {
	event := func(seq int64) *session.Event { return &session.Event{Seq: seq, Author: "writer"} }
	cfg := session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1", LastSeq: int64(n), Older: n - read}
	for seq := n - read + 1; seq <= n; seq++ {
		cfg.Events = append(cfg.Events, event(int64(seq)))
	}
	var mu sync.Mutex
	cfg.Load = func(first, last int64) (evs []*session.Event, err error) {
		mu.Lock()
		*loads = append(*loads, [2]int64{first, last})
		mu.Unlock()
		if err := fail(); err != nil {
			return nil, err
		}
		for seq := first; seq <= last; seq++ {
			evs = append(evs, event(seq))
		}
		return evs, nil
	}
	return session.NewView(cfg)
}

func never() error { return nil }

// A long session is opened without reading it.
func TestOlderEventsAreReadWhenLookedAt(t *testing.T) {
	var loads [][2]int64
	v := oldView(1000, 10, &loads, never)
	if n := v.Events().Len(); n != 1000 || len(loads) != 0 {
		t.Fatalf("got %d events after reading %v, want 1000 and nothing read", n, loads)
	}
	if seq := v.Events().At(995).Seq; seq != 996 || len(loads) != 0 {
		t.Errorf("At(995): got Seq %d after reading %v, want 996 and nothing read", seq, loads)
	}
	ev := v.Events().At(300)
	if ev.Seq != 301 || len(loads) != 1 {
		t.Errorf("At(300): got Seq %d after reading %v, want 301 and one read", ev.Seq, loads)
	}
	if v.Events().At(300) != ev || len(loads) != 1 {
		t.Errorf("what was read is kept: got another event, or it was read again: %v", loads)
	}
	v.Apply(&session.Event{Seq: 1001})
	seq := int64(0)
	for ev := range v.Events().All() {
		if seq++; ev.Seq != seq || v.Events().At(int(seq)-1) != ev {
			t.Fatalf("event %d has Seq %d, and At must have it too", seq, ev.Seq)
		}
	}
	if seq != 1001 {
		t.Errorf("All yields %d events, want 1001", seq)
	}
	if last := loads[len(loads)-1]; last[1] != 990 {
		t.Errorf("the last read was %v, want it to end with 990: the others were there", last)
	}
	if err := v.Err(); err != nil {
		t.Error(err)
	}
}

// Whoever goes through a log reads more at a time as it goes on, and each event once; but not where
// the events are heavy, or somebody looks here and there.
func TestOlderEventsAreReadAhead(t *testing.T) {
	var loads [][2]int64
	v := oldView(5000, 0, &loads, never)
	for range v.Events().All() {
	}
	if len(loads) > 30 || loads[0] != [2]int64{1, 64} {
		t.Errorf("5000 events are read by %d reads: %v", len(loads), loads)
	}
	for i, next := 0, int64(1); i < len(loads); i++ {
		if loads[i][0] != next {
			t.Fatalf("got reads %v, want each event read once", loads)
		}
		next = loads[i][1] + 1
	}
	loads = nil
	v = oldView(5000, 0, &loads, never)
	for _, i := range []int{3000, 70, 4000, 1000} {
		v.Events().At(i)
	}
	for _, l := range loads {
		if l[1]-l[0] > 64 {
			t.Errorf("a look at one event reads %v", l)
		}
	}
	most := int64(0)
	v = session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1", LastSeq: 500, Older: 500,
		Load: func(first, last int64) (evs []*session.Event, err error) {
			most = max(most, last-first+1)
			for seq := first; seq <= last; seq++ {
				evs = append(evs, longEvent(seq, 20_000))
			}
			return evs, nil
		}})
	for range v.Events().All() {
	}
	if most != 64 {
		t.Errorf("%d events of 40 kB are read at once, want 64", most)
	}
}

func TestOlderEventsAreReadOnceByManyReaders(t *testing.T) {
	var loads [][2]int64
	v := oldView(500, 0, &loads, never)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range v.Events().All() {
			}
		})
	}
	wg.Wait()
	slices.SortFunc(loads, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	for i, next := 0, int64(1); i < len(loads); i++ {
		if loads[i][0] != next {
			t.Fatalf("got reads %v, want each page read once", loads)
		}
		next = loads[i][1] + 1
	}
}

// A run must not go on with a history that it could not read.
func TestEventsThatCannotBeReadSayWhy(t *testing.T) {
	var loads [][2]int64
	gone := errors.New("the disk is gone")
	v := oldView(1000, 10, &loads, func() error { return gone })
	if err := v.Err(); err != nil {
		t.Errorf("nothing was read yet: got %v", err)
	}
	n := 0
	for ev := range v.Events().All() {
		if n++; ev.Seq != int64(n) || (ev.ErrorCode == "UNREADABLE") != (n <= 990) {
			t.Fatalf("event %d: got Seq %d, code %q", n, ev.Seq, ev.ErrorCode)
		}
	}
	if ev := v.Events().At(0); !strings.Contains(ev.ErrorMessage, gone.Error()) {
		t.Errorf("an event that cannot be read says why: got %q", ev.ErrorMessage)
	}
	if n != 1000 || len(loads) != 1 {
		t.Errorf("got %d events after %d reads, want all 1000, and one read that failed", n, len(loads))
	}
	if err := v.Err(); !errors.Is(err, gone) {
		t.Errorf("Err: got %v, want %v", err, gone)
	}
	svc := session.InMemoryService()
	create(t, svc)
	if err := svc.AppendEvent(t.Context(), v, &session.Event{Seq: 1}); !errors.Is(err, gone) {
		t.Errorf("AppendEvent through a view that could not be read: got %v, want %v", err, gone)
	}
}

func TestStoreThatHasTooFewEventsIsAnError(t *testing.T) {
	v := session.NewView(session.ViewConfig{LastSeq: 5, Older: 5, Load: func(int64, int64) ([]*session.Event, error) { return nil, nil }})
	if ev := v.Events().At(4); ev.ErrorCode == "" || v.Err() == nil {
		t.Errorf("got event %+v and error %v", ev, v.Err())
	}
}
