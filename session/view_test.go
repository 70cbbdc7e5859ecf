// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
)

func newView() *session.View {
	return session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"})
}

func set(t *testing.T, v *session.View, at session.Address, key string, value any) {
	t.Helper()
	if err := v.StateAt(at).Set(key, value); err != nil {
		t.Fatal(err)
	}
}

// wantValue demands what a step sees, by Get and by All; nil is nothing.
func wantValue(t *testing.T, v *session.View, at session.Address, key string, want any) {
	t.Helper()
	got, err := v.StateAt(at).Get(key)
	if want == nil {
		if !errors.Is(err, session.ErrStateKeyNotExist) {
			t.Errorf("at %q: Get(%q) = %v, %v; want ErrStateKeyNotExist", at, key, got, err)
		}
	} else if err != nil || !cmp.Equal(got, want) {
		t.Errorf("at %q: Get(%q) = %v, %v; want %v", at, key, got, err, want)
	}
	all := maps.Collect(v.StateAt(at).All())
	if got, ok := all[key]; ok != (want != nil) || !cmp.Equal(got, want) {
		t.Errorf("at %q: All has %q = %v (%t), want %v as Get says", at, key, got, ok, want)
	}
}

// D9, O7, C21
func TestIterationKeyLivesAsLongAsItsIteration(t *testing.T) {
	v := newView()
	set(t, v, "story/refine[1]/critic", "iteration:note", "dull")
	set(t, v, "story/refine[1]/critic", "note", "kept")
	wantValue(t, v, "story/refine[1]/critic", "iteration:note", "dull")
	wantValue(t, v, "story/refine[1]/editor", "iteration:note", "dull")
	wantValue(t, v, "story/refine[1]/panel/judge", "iteration:note", "dull")
	wantValue(t, v, "story/refine[2]/editor", "iteration:note", nil)
	wantValue(t, v, "story/refine[10]/editor", "iteration:note", nil)
	wantValue(t, v, "story/after", "iteration:note", nil)

	v.EndIteration("story/refine[1]")
	wantValue(t, v, "story/refine[1]/editor", "iteration:note", nil)
	wantValue(t, v, "story/refine[1]/editor", "note", "kept")
	if diff := cmp.Diff(map[string]any{"note": "kept"}, maps.Collect(v.State().All())); diff != "" {
		t.Errorf("state after the iteration (-want +got):\n%s", diff)
	}
}

// C20: loops in loops do not disturb each other.
func TestEndOfInnerIterationKeepsTheOuterKeys(t *testing.T) {
	const outer, inner = "a[1]/step", "a[1]/b[2]/step"
	v := newView()
	set(t, v, outer, "iteration:k", "outer")
	set(t, v, outer, "iteration:only", "outer")
	set(t, v, inner, "iteration:k", "inner")
	wantValue(t, v, inner, "iteration:k", "inner")
	wantValue(t, v, inner, "iteration:only", "outer")
	wantValue(t, v, outer, "iteration:k", "outer")

	v.EndIteration("a[1]/b[2]")
	wantValue(t, v, inner, "iteration:k", "outer")
	wantValue(t, v, outer, "iteration:only", "outer")

	set(t, v, "a[1]/b[3]/step", "iteration:k", "inner again")
	v.EndIteration("a[1]")
	wantValue(t, v, "a[1]/b[3]/step", "iteration:k", nil)
	wantValue(t, v, outer, "iteration:only", nil)
}

// A step beside an inner loop may set the outer loop's key after the inner one.
func TestInnerIterationKeyWinsWhateverWasSetLast(t *testing.T) {
	v := newView()
	set(t, v, "a[1]/p/b[1]/step", "iteration:k", "inner")
	set(t, v, "a[1]/p/other", "iteration:k", "outer")
	wantValue(t, v, "a[1]/p/b[1]/step", "iteration:k", "inner")
	wantValue(t, v, "a[1]/p/other", "iteration:k", "outer")
}

func TestRunSeesTheNewestIterationKey(t *testing.T) {
	v := newView()
	set(t, v, "a[1]/step", "iteration:k", 1.0)
	set(t, v, "a[1]/b[1]/step", "iteration:k", 2.0)
	wantValue(t, v, "", "iteration:k", 2.0)
	set(t, v, "a[1]/step", "iteration:k", 3.0)
	wantValue(t, v, "", "iteration:k", 3.0)
}

func TestNilRemovesAnIterationKey(t *testing.T) {
	v := newView()
	set(t, v, "a[1]/step", "iteration:k", 1.0)
	set(t, v, "a[1]/step", "iteration:k", nil)
	wantValue(t, v, "a[1]/step", "iteration:k", nil)
	wantValue(t, v, "", "iteration:k", nil)
	set(t, v, "a[1]/step", "iteration:k", 2.0)
	wantValue(t, v, "a[1]/step", "iteration:k", 2.0)
}

// Outside loops there is no iteration to end: the key lives with the run.
func TestIterationKeyOutsideLoopsIsSeenByItsStep(t *testing.T) {
	v := newView()
	set(t, v, "story", "iteration:k", 1.0)
	wantValue(t, v, "story", "iteration:k", 1.0)
	wantValue(t, v, "story/refine[1]/critic", "iteration:k", 1.0)
	v.EndIteration("story/refine[1]")
	wantValue(t, v, "story", "iteration:k", 1.0)
}

// D9
func TestAppliedDeltaGoesWhereTheEventWasSaid(t *testing.T) {
	v := newView()
	ev := &session.Event{Seq: 7, Address: "story/refine[1]/critic"}
	ev.Actions.StateDelta = map[string]any{"iteration:k": 1, "temp:k": 2, "k": 3}
	v.Apply(ev)
	wantValue(t, v, "story/refine[1]/editor", "iteration:k", 1.0)
	wantValue(t, v, "story/refine[2]/editor", "iteration:k", nil)
	wantValue(t, v, "other", "temp:k", 2.0)
	wantValue(t, v, "", "k", 3.0)
	if got := v.LastSeq(); got != 7 {
		t.Errorf("LastSeq is the applied event's: got %d, want 7", got)
	}
	if n := v.Events().Len(); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

func TestEventsAtPanicsOutsideTheWindow(t *testing.T) {
	v := newView()
	v.Apply(&session.Event{Seq: 1})
	for _, i := range []int{-1, 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("At(%d) of one event did not panic", i)
				}
			}()
			v.Events().At(i)
		}()
	}
}

func TestAllMayBeLeftEarly(t *testing.T) {
	v := newView()
	v.Apply(&session.Event{Seq: 1, Actions: session.EventActions{StateDelta: map[string]any{"a": 1, "b": 2}}})
	v.Apply(&session.Event{Seq: 2})
	for range v.Events().All() {
		break
	}
	for range v.State().All() {
		// Whoever reads may write: no lock is held meanwhile.
		set(t, v, "", "c", 3)
		break
	}
	if got, err := v.State().Get("c"); err != nil || got != 3.0 {
		t.Errorf("c is %v, %v after it was set while the state was read", got, err)
	}
}
