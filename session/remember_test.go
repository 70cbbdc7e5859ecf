// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// outlinedView is a view of n events, all but the last ten of which are read from a store. Reads has
// how many were read each time.
func outlinedView(n int, reads *[]int, fail func() error) *session.View {
	cfg := session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1", LastSeq: int64(n), Older: n - 10}
	for seq := n - 9; seq <= n; seq++ {
		cfg.Events = append(cfg.Events, &session.Event{Seq: int64(seq)})
	}
	cfg.Load = func(first, last int64) (evs []*session.Event, err error) {
		for seq := first; seq <= last; seq++ {
			evs = append(evs, &session.Event{Seq: seq})
		}
		return evs, nil
	}
	cfg.Outline = func(first, last int64) ([]*session.Event, error) {
		if err := fail(); err != nil {
			return nil, err
		}
		*reads = append(*reads, int(last-first+1))
		return cfg.Load(first, last)
	}
	return session.NewView(cfg)
}

func seqs(events func(func(*session.Event) bool)) (all []int64) {
	for ev := range events {
		all = append(all, ev.Seq)
	}
	return all
}

func TestOutlineIsRememberedUntilForget(t *testing.T) {
	var reads []int
	v := outlinedView(3000, &reads, never)
	read := func() (sum int) {
		for _, n := range reads {
			sum += n
		}
		reads = nil
		return sum
	}
	want := seqs(v.Log().Outline())
	if len(want) != 3000 || read() != 2990 {
		t.Fatalf("got %d events", len(want))
	}
	v.Log().CacheOutline()
	for ev := range v.Log().Outline() {
		if ev.Seq == 1500 { // whoever looks at a part reads no more
			break
		}
	}
	if n := read(); n != 2048 {
		t.Errorf("half of an outline has read %d events, want two pages", n)
	}
	if got := seqs(v.Log().Outline()); !slices.Equal(got, want) || read() != 2990-2048 {
		t.Errorf("the rest: got %d events, want all, and only the rest read", len(got))
	}
	back := v.Rewind(5, nil)
	v.Apply(&session.Event{Seq: 3001})
	if got := seqs(v.Log().Outline()); len(got) != 3001 || got[3000] != 3001 || read() != 0 {
		t.Errorf("once more: got %d events and something read, want 3001 and nothing", len(got))
	}
	if got := seqs(back.Log().Outline()); !slices.Equal(got, want) || read() != 0 {
		t.Errorf("rewound: got %d events, want those of the view, and nothing read", len(got))
	}
	v.Log().DropOutline()
	if got := seqs(v.Log().Outline()); len(got) != 3001 || read() != 2990 {
		t.Errorf("forgotten: got %d events, want 3001, read again", len(got))
	}
}

func TestOutlineThatCannotBeReadIsNotRemembered(t *testing.T) {
	var reads []int
	broken := errors.New("the disk is gone")
	fail := never
	v := outlinedView(3000, &reads, func() error { return fail() })
	v.Log().CacheOutline()
	for range v.Log().Outline() {
		fail = func() error { return broken }
	}
	if got := seqs(v.Log().Outline()); len(got) != 3000 || got[2999] != 3000 || !errors.Is(v.Err(), broken) {
		t.Errorf("got %d events and error %v, want 3000 and %v", len(got), v.Err(), broken)
	}
	for ev := range v.Log().Outline() {
		if unread := ev.ErrorCode == "UNREADABLE"; unread != (ev.Seq > 1024 && ev.Seq <= 2990) {
			t.Fatalf("event %d: unreadable is %v", ev.Seq, unread)
		}
	}
}

func TestRenew(t *testing.T) {
	view := func(seq int64, run string, state map[string]any) *session.View {
		if run != "" {
			state[mark.KeyRun] = run
		}
		return session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1", LastSeq: seq, State: state})
	}
	for _, tt := range []struct {
		name  string
		later *session.View
		ok    bool
	}{
		{"nothing has happened", view(3, "one", map[string]any{"own": "old", "app:a": "new", "user:c": "come"}), true},
		{"an event was appended", view(4, "one", map[string]any{"app:a": "new"}), false},
		{"another session of that name", view(3, "two", map[string]any{"app:a": "new"}), false},
	} {
		v := view(3, "one", map[string]any{"own": "mine", "app:a": "old", "user:b": "gone"})
		want := map[string]any{"own": "mine", "app:a": "old", "user:b": "gone"}
		if tt.ok {
			want = map[string]any{"own": "mine", "app:a": "new", "user:c": "come"}
		}
		if ok := v.RefreshShared(tt.later); ok != tt.ok {
			t.Errorf("%s: got %v, want %v", tt.name, ok, tt.ok)
		}
		if got := maps.Collect(v.State().All()); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, want)
		}
	}
}
