// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// chained is an event of a run that can be added to a view.
func chained(v *session.View, invocation, text string) *session.Event {
	ev := &session.Event{Seq: v.LastSeq() + 1, InvocationID: invocation, Author: "a"}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

// folded is the chain over events, computed one by one.
func folded(t *testing.T, events []*session.Event) string {
	t.Helper()
	var c session.Chain
	for _, ev := range events {
		if err := c.Add(ev); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprint(c.Events, " ", c.Last, " ", c.String())
}

func chainOf(t *testing.T, v *session.View, invocation string) string {
	t.Helper()
	c, err := v.Chain(invocation)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(c.Events, " ", c.Last, " ", c.String())
}

// The chain of a run is the same while the run appends, in a view that is read later, and in one that is rewound, and the
// store is asked for no event twice.
func TestChainOfARun(t *testing.T) {
	const before, length = 10, 300
	all := session.NewView(session.ViewConfig{})
	for i := range before + length {
		ev := chained(all, []string{"e-1", "e-0"}[min(1, max(0, before-i))], strings.Repeat("word ", 300))
		all.Apply(ev)
		if i == before {
			all.SetRunStart("e-1", ev.Seq)
		}
		if i%50 == 0 && i > before {
			chainOf(t, all, "e-1")
		}
	}
	stored := slices.Collect(all.Log().All())
	want := folded(t, stored[before:])
	if got := chainOf(t, all, "e-1"); got != want {
		t.Errorf("live: %s, want %s", got, want)
	}
	loaded := make(map[int64]int)
	load := func(from, to int64) ([]*session.Event, error) {
		for seq := from; seq <= to; seq++ {
			loaded[seq]++
		}
		return stored[from-1 : to], nil
	}
	later := session.NewView(session.ViewConfig{LastSeq: all.LastSeq(), Older: len(stored), Load: load,
		Outline: func(from, to int64) (evs []*session.Event, err error) {
			for _, ev := range stored[from-1 : to] {
				evs = append(evs, ev.Outlined())
			}
			return evs, nil
		}})
	if got := chainOf(t, later, "e-1"); got != want {
		t.Errorf("read later: %s, want %s", got, want)
	}
	back := later.Rewind(before, nil).View
	clear(loaded)
	for range 100 {
		ev := chained(back, "e-1", "new")
		back.Apply(ev)
		later.Apply(ev) // the caller's own view, which gets each event too
		stored = append(stored, ev)
	}
	want = folded(t, stored[before:])
	if got := chainOf(t, back, "e-1"); got != want {
		t.Errorf("rewound: %s, want %s", got, want)
	}
	if got := chainOf(t, later, "e-1"); got != want {
		t.Errorf("the view that was rewound: %s, want %s", got, want)
	}
	if len(loaded) > 0 {
		t.Errorf("%d events were read again", len(loaded))
	}
	if got, want := chainOf(t, later, "e-0"), folded(t, stored); got != want {
		t.Errorf("another run: %s, want %s", got, want)
	}
}

// A runner that reads the outline of a log adds its events, so that Chain reads nothing.
func TestAddToChain(t *testing.T) {
	all := session.NewView(session.ViewConfig{})
	for range 200 {
		all.Apply(chained(all, "e-1", strings.Repeat("word ", 300)))
	}
	v := session.NewView(session.ViewConfig{Events: slices.Collect(all.Log().All()), LastSeq: all.LastSeq()})
	for ev := range v.Log().All() {
		v.AddToChain("e-1", ev.Outlined())
		v.AddToChain("e-1", ev) // no event counts twice
	}
	if got, want := chainOf(t, v, "e-1"), chainOf(t, all, "e-1"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Events that a rewound view has shown and that were never stored, because the append of their batch has failed, are not
// in the chain of the view that was rewound.
func TestChainWithoutEventsThatWereNotStored(t *testing.T) {
	v := session.NewView(session.ViewConfig{})
	v.Apply(chained(v, "e-1", "one"))
	want := chainOf(t, v, "e-1")
	back := v.Rewind(1, nil).View
	back.Pending().Apply(chained(back, "e-1", "never stored"))
	if got := chainOf(t, v, "e-1"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	again := v.Rewind(1, nil).View
	again.Pending().Apply(chained(again, "e-1", "never stored either"))
	v.Rewind(1, nil).Apply(chained(v, "e-1", "another one in its place"))
	v.Apply(chained(v, "e-1", "another one in its place"))
	if got, want := chainOf(t, v, "e-1"), folded(t, slices.Collect(v.Log().All())); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// An event that JSON cannot hold has no chain, and the error names the event.
func TestChainOfAnEventWithoutJSON(t *testing.T) {
	v := session.NewView(session.ViewConfig{})
	v.Apply(chained(v, "e-1", "one"))
	chainOf(t, v, "e-1")
	ev := chained(v, "e-1", "two")
	ev.CustomMetadata = map[string]any{"f": func() {}}
	v.Apply(ev)
	v.Apply(chained(v, "e-1", "three"))
	if _, err := v.Chain("e-1"); err == nil || !strings.Contains(err.Error(), "event 2") {
		t.Errorf("error %v", err)
	}
}

// A view that lacks events of the run says so.
func TestChainOfAViewThatLacksEvents(t *testing.T) {
	v := session.NewView(session.ViewConfig{LastSeq: 7, StateOnly: true})
	if _, err := v.Chain("e-1"); err != nil { // a run that has not begun
		t.Error(err)
	}
	v.SetRunStart("e-1", 3)
	if _, err := v.Chain("e-1"); err == nil || !strings.Contains(err.Error(), "lacks event 3") {
		t.Errorf("error %v", err)
	}
}

// Appending an event to a view does not encode it if no caller has asked for a chain.
func TestChainEncodesOnce(t *testing.T) {
	n := 0
	v := session.NewView(session.ViewConfig{})
	add := func() {
		ev := chained(v, "e-1", "one")
		ev.CustomMetadata = map[string]any{"n": encoded{&n}}
		v.Apply(ev)
	}
	v.SetRunStart("e-1", 1)
	if add(); n != 0 {
		t.Errorf("encoded %d times", n)
	}
	chainOf(t, v, "e-1")
	if add(); n != 2 {
		t.Errorf("encoded %d times, want 2", n)
	}
	if chainOf(t, v, "e-1"); n != 2 {
		t.Errorf("encoded %d times again", n-2)
	}
}

// encoded counts how often an event that holds it is encoded.
type encoded struct{ n *int }

func (c encoded) MarshalJSON() ([]byte, error) {
	*c.n++
	return []byte(`"counted"`), nil
}
