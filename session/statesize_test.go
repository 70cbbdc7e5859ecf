// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
)

// measured is what a view's state can do besides.
type measured interface {
	session.State
	Map() map[string]any
	Size() int64
}

// The size that is kept up as keys are written is that of a walk over the whole state, be the
// view fed by a store, by Apply, or by Set.
func TestStateSizeIsKeptUp(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		service := session.InMemoryService()
		made, err := service.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "u", SessionID: "s",
			State: map[string]any{"a": "first", "user:b": 1.0}})
		if err != nil {
			t.Fatal(err)
		}
		view := session.ViewOf(made.Session)
		if seed%2 == 0 {
			view = session.NewView(session.ViewConfig{State: map[string]any{"a": "first", "c": []any{"x"}}})
		}
		keys := []string{"a", "b", "c", "app:a", "user:b", "temp:c", "iteration:a", "iteration:b"}
		at := []session.Address{"", "l[1]/s", "l[2]/s", "l[1]/m[1]/s"}
		for step := range 60 {
			delta := make(map[string]any)
			for range r.IntN(3) {
				delta[keys[r.IntN(len(keys))]] = randomValue(r, 2)
			}
			ev := &session.Event{Address: at[r.IntN(len(at))], Actions: session.EventActions{StateDelta: delta}}
			switch {
			case seed%2 == 0:
				ev.Seq = int64(step + 1)
				view.Apply(ev)
			case step%7 == 0:
				if err := view.State().Set(keys[r.IntN(len(keys))], randomValue(r, 2)); err != nil {
					t.Fatal(err)
				}
			default:
				if err := service.AppendEvent(t.Context(), view, ev); err != nil {
					t.Fatal(err)
				}
			}
			if r.IntN(8) == 0 {
				view.EndIteration("l[1]")
			}
			if r.IntN(2) == 0 {
				continue
			}
			for _, a := range at {
				s := view.StateAt(a).(measured)
				all := maps.Collect(s.All())
				if got, want := s.Size(), session.StateSize(all); got != want {
					t.Fatalf("seed %d, step %d: the state at %q has %d bytes, want %d: %v", seed, step, a, got, want, all)
				}
				if diff := cmp.Diff(all, s.Map()); diff != "" {
					t.Fatalf("seed %d, step %d: All and Map differ (-All +Map):\n%s", seed, step, diff)
				}
				for k, v := range all {
					if got, err := s.Get(k); err != nil || !cmp.Equal(got, v) {
						t.Fatalf("seed %d, step %d: %q is %v, %v, want %v", seed, step, k, got, err, v)
					}
				}
			}
		}
	}
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(7); {
	case n == 0:
		return nil
	case n == 1:
		return r.Float64()
	case n == 2:
		return true
	case n == 3 && depth > 0:
		return map[string]any{"k": randomValue(r, depth-1), "l": "x"}
	case n == 4 && depth > 0:
		return []any{randomValue(r, depth-1), 1.0}
	}
	return strings.Repeat("é", r.IntN(9))
}

// What has not been written since is not looked at again, however large it is: a value that was
// changed without an event still has the size that the log gives it.
func TestStateSizeMeasuresWhatIsWritten(t *testing.T) {
	large := []any{"x"}
	view := session.NewView(session.ViewConfig{State: map[string]any{"large": large}})
	size := func() int64 { return view.State().(measured).Size() }
	before := size()
	large[0] = strings.Repeat("x", 1000)
	view.Apply(&session.Event{Seq: 1, Actions: session.EventActions{StateDelta: map[string]any{"n": 1.0}}})
	if got, want := size(), before+session.StateSize(map[string]any{"n": 1.0})-2; got != want {
		t.Errorf("%d bytes after a number was written, want %d", got, want)
	}
	view.Apply(&session.Event{Seq: 2, Actions: session.EventActions{StateDelta: map[string]any{"large": large}}})
	if got, want := size(), before+session.StateSize(map[string]any{"n": 1.0})-2+999; got != want {
		t.Errorf("%d bytes after the list was written, want %d", got, want)
	}
}

// A map that was handed out stays as it is, and the same one serves until the next write.
func TestStateMapIsASnapshot(t *testing.T) {
	view := session.NewView(session.ViewConfig{State: map[string]any{"n": 1.0}})
	s := view.State().(measured)
	first := s.Map()
	if n := testing.AllocsPerRun(100, func() { s.Map() }); n != 0 {
		t.Errorf("the same state again: %v allocations", n)
	}
	if err := s.Set("n", 2.0); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(first["n"], s.Map()["n"]); got != "1 2" {
		t.Errorf("before and after: %s", got)
	}
}
