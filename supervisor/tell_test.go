// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// hearing is an agent that notes the hints that it gets, by its address, and then does what a step of the world does.
type hearing struct {
	mu    sync.Mutex
	heard map[session.Address]string
}

func (h *hearing) step(t testing.TB, w *world, name string) agent.Agent {
	inner := w.step(t, name)
	return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
		h.mu.Lock()
		if text := drive.At(ctx).Loop().HintText(ctx.Agent().Name()); text != "" {
			h.heard[drive.At(ctx).Address()] = strings.TrimPrefix(text, "A person says for this iteration:\n")
		}
		h.mu.Unlock()
		for ev, err := range inner.Run(ctx) {
			if !yield(ev, err) {
				return
			}
		}
	})
}

// A text is for the next iteration that begins, in whichever process, and only for that; a paused run gets it when it is resumed, and a
// fork of the run has what its iterations had.
func TestTellTheNextIteration(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w, h := newWorld("work"), &hearing{heard: make(map[session.Address]string)}
			root := loop(t, "fix", 4, h.step(t, w, "work"))
			one, two := process(t, store, root, named("one")), process(t, store, root, named("two"))
			run := start(t, one)
			<-w.seen
			for _, text := range []string{"use tabs", " and no globals\n"} {
				if driven, err := two.Tell(t.Context(), run.ID(), text); err != nil || !driven {
					t.Fatal(driven, err)
				}
			}
			w.gate["work"] <- struct{}{} // the first iteration has begun before
			<-w.seen
			if err := one.Pause(t.Context(), run.ID(), ""); err != nil {
				t.Fatal(err)
			}
			w.gate["work"] <- struct{}{}
			wait(t, run)
			if driven, err := one.Tell(t.Context(), run.ID(), "be quick"); err != nil || driven {
				t.Fatal(driven, err)
			}
			run = resume(t, two, run.ID())
			<-w.seen
			gate := w.gate["work"]
			w.ungate("work")
			close(gate)
			completed(t, run)
			want := map[session.Address]string{"fix[2]/work": "use tabs\nand no globals", "fix[3]/work": "be quick"}
			if diff := cmp.Diff(want, h.heard); diff != "" {
				t.Error(diff)
			}
			var by []string
			for ev := range view(t, store, run.ID()).Events().All() {
				var m mark.Hinted
				if ev.Mark != nil && ev.Mark.Kind == mark.KindHinted && ev.Mark.Decode(&m) == nil {
					for _, hint := range m.Hints {
						by = append(by, hint.By)
					}
				}
			}
			if diff := cmp.Diff([]string{"two", "two", "one"}, by); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is told while an iteration is under way is for the next one, also if a crash cuts the iteration short; an iteration of a nested
// loop can take it, and that of the loop around them takes it for all in it.
func TestTellARunThatIsCutOff(t *testing.T) {
	store := database(t)
	w, h := newWorld("work", "check"), &hearing{heard: make(map[session.Address]string)}
	inner := loop(t, "inner", 2, h.step(t, w, "work"))
	root := loop(t, "outer", 2, inner, h.step(t, w, "check"))
	one, two := process(t, store, root, named("one")), process(t, store, root, named("two"))
	run := start(t, one)
	<-w.seen // outer[1]/inner[1]/work
	if _, err := two.Tell(t.Context(), run.ID(), "first"); err != nil {
		t.Fatal(err)
	}
	w.gate["work"] <- struct{}{}
	<-w.seen // outer[1]/inner[2]/work, which has it
	if _, err := one.Tell(t.Context(), run.ID(), "second"); err != nil {
		t.Fatal(err)
	}
	if err := one.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	run = resume(t, two, run.ID())
	<-w.seen // outer[1]/inner[2]/work again
	gates := []chan struct{}{w.gate["work"], w.gate["check"]}
	w.ungate("work")
	w.ungate("check")
	for _, gate := range gates {
		close(gate)
	}
	completed(t, run)
	want := map[session.Address]string{"outer[1]/inner[2]/work": "first", "outer[2]/inner[1]/work": "second", "outer[2]/inner[2]/work": "second",
		"outer[2]/check": "second"}
	if diff := cmp.Diff(want, h.heard); diff != "" {
		t.Error(diff)
	}
}

func TestTellRefuses(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("work")
	sup := process(t, store, w.step(t, "work"))
	run := start(t, sup)
	<-w.seen
	for _, text := range []string{" ", strings.Repeat("x", supervisor.MostHint+1)} {
		if _, err := sup.Tell(t.Context(), run.ID(), text); !errors.Is(err, supervisor.ErrNoHint) {
			t.Errorf("a text of %d bytes: %v", len(text), err)
		}
	}
	close(w.gate["work"])
	completed(t, run)
	if _, err := sup.Tell(t.Context(), run.ID(), "late"); !errors.Is(err, supervisor.ErrOver) {
		t.Errorf("got %v", err)
	}
	if _, err := sup.Tell(t.Context(), "r_nowhere", "late"); !errors.Is(err, supervisor.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
