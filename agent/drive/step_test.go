// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var errBoom = errors.New("boom")

// nest puts an agent under two others that pass on what it yields.
func nest(t *testing.T, inner agent.Agent) agent.Agent {
	pass := func(sub agent.Agent) func(agent.InvocationContext, yield) {
		return func(ctx agent.InvocationContext, yield yield) { sub.Run(ctx)(yield) }
	}
	middle := custom(t, "middle", pass(inner), inner)
	return custom(t, "root", pass(middle), middle)
}

// stepError demands one error, wrapped once, with an address.
func stepError(t *testing.T, errs []error, at session.Address) *agent.StepError {
	t.Helper()
	if len(errs) != 1 {
		t.Fatalf("got %d errors, want 1: %v", len(errs), errs)
	}
	step, ok := errs[0].(*agent.StepError)
	if !ok {
		t.Fatalf("got %T, want a *StepError: %[1]v", errs[0])
	}
	if step.Address != at {
		t.Errorf("got address %q, want %q", step.Address, at)
	}
	if inner, ok := errors.AsType[*agent.StepError](step.Err); ok {
		t.Errorf("a step error is wrapped once, found another in it: %v", inner)
	}
	return step
}

// E3: pairs that hold too little or too much.
func TestOddPairs(t *testing.T) {
	t.Run("neither event nor error", func(t *testing.T) {
		a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
			if yield(nil, nil) {
				t.Error("the agent was told to go on")
			}
		})
		_, errs := collect(a.Run(invocation(t.Context())))
		if step := stepError(t, errs, "a"); step.Err.Error() != "agent yielded neither an event nor an error; each pair needs one of them" {
			t.Errorf("got %v", step)
		}
	})
	t.Run("event and error", func(t *testing.T) {
		a := custom(t, "a", func(_ agent.InvocationContext, yield yield) { yield(says("hello"), errBoom) })
		pairs := 0
		for ev, err := range a.Run(invocation(t.Context())) {
			if pairs++; (ev == nil) == (err == nil) {
				t.Errorf("pair %d: %v, %v", pairs, ev, err)
			}
		}
		if pairs != 2 {
			t.Errorf("got %d pairs, want the event and then the error", pairs)
		}
	})
}

// E6, E4
func TestEventIsStampedByTheStepThatSaidIt(t *testing.T) {
	leaf := custom(t, "leaf", func(_ agent.InvocationContext, yield yield) {
		yield(says("as myself"), nil)
		user := says("as the user")
		user.Content.Role = genai.RoleUser
		yield(user, nil)
		other := says("as somebody else")
		other.Author, other.InvocationID, other.Branch = "narrator", "e-0", "side"
		yield(other, nil)
	})
	events, errs := collect(nest(t, leaf).Run(invocation(t.Context())))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	type stamp struct {
		Author, InvocationID, Branch string
		Address                      session.Address
		Iteration, Attempt           int
	}
	var got []stamp
	for _, ev := range events {
		got = append(got, stamp{ev.Author, ev.InvocationID, ev.Branch, ev.Address, ev.Iteration, ev.Attempt})
	}
	want := []stamp{
		{"leaf", "e-1", "", "root/middle/leaf", 0, 1},
		{"user", "e-1", "", "root/middle/leaf", 0, 1},
		{"narrator", "e-0", "side", "root/middle/leaf", 0, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A12: agents that are not made by this package are stamped, checked and
// stopped like the others.
func TestStrangersAgentRunsAsAStep(t *testing.T) {
	leaf := stranger{name: "leaf", said: []string{"one", "two"}}
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		drive.Run(ctx, leaf)(yield)
	}, leaf)
	events, errs := collect(root.Run(invocation(t.Context())))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff([]string{"leaf: one", "leaf: two"}, texts(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]session.Address{"root/leaf", "root/leaf"}, addresses(events)); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// A second run under the same parent has an address of its own.
func TestSecondRunOfASubAgentIsNumbered(t *testing.T) {
	critic, editor := speaker(t, "critic", "bad"), speaker(t, "editor", "done")
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		for _, sub := range []agent.Agent{critic, editor, critic, critic} {
			for ev, err := range sub.Run(ctx) {
				if !yield(ev, err) {
					return
				}
			}
		}
	}, critic, editor)
	want := []session.Address{"root/critic", "root/editor", "root/critic#2", "root/critic#3"}
	ctx := invocation(t.Context())
	for range 2 { // the next run of the orchestrator counts anew
		events, errs := collect(drive.Run(ctx, root))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if diff := cmp.Diff(want, addresses(events)); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		want = []session.Address{"root#2/critic", "root#2/editor", "root#2/critic#2", "root#2/critic#3"}
	}
}

// E4: an event that was stored and is said again is another event.
func TestEventSaidAgainIsACopy(t *testing.T) {
	kept := says("as I said")
	a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
		for range 2 {
			if !yield(kept, nil) {
				return
			}
		}
	})
	var got []*session.Event
	for i, id := range []string{"e-1", "e-2"} {
		ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: id, Session: session.NewView(session.ViewConfig{})})
		for ev, err := range a.Run(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Seq != 0 || ev.ID != "" || !ev.Timestamp.IsZero() {
				t.Errorf("run %d: an event that is new has no place in the log yet, got Seq %d, ID %q", i+1, ev.Seq, ev.ID)
			}
			if ev.InvocationID != id {
				t.Errorf("run %d: an event belongs to the invocation in which it is said: got %q, want %q", i+1, ev.InvocationID, id)
			}
			got = append(got, ev)
			ev.Seq, ev.ID, ev.Timestamp = int64(len(got)), fmt.Sprint(len(got)), time.Now() // as a store does
		}
	}
	if len(got) != 4 {
		t.Fatalf("got %d events, want 4", len(got))
	}
	for i, ev := range got {
		if ev.Seq != int64(i)+1 || ev.Text() != "as I said" {
			t.Errorf("event %d was changed afterwards: Seq %d", i+1, ev.Seq)
		}
	}
}

// What a step says of its run: the last words, and a request to leave.
func TestStepResult(t *testing.T) {
	exit := func(refused string) *session.Event {
		ev := &session.Event{}
		ev.Actions.Escalate = true
		ev.Actions.Exit = &session.Exit{Refused: refused}
		return ev
	}
	piece := says("pie")
	piece.Partial = true
	bare := &session.Event{}
	bare.Actions.Escalate = true
	for _, tt := range []struct {
		name       string
		events     []*session.Event
		said, exit int // index in events; -1 is none
	}{
		{"nothing", nil, -1, -1},
		{"words", []*session.Event{says("one"), says("two"), says("")}, 1, -1},
		{"a piece of a stream", []*session.Event{says("one"), piece}, 0, -1},
		{"a bare escalate", []*session.Event{bare, says("goodbye")}, 1, 0},
		{"a refused exit", []*session.Event{exit("may not")}, -1, -1},
		{"a refused exit after one that was not", []*session.Event{exit(""), exit("may not")}, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
				for _, ev := range tt.events {
					yield(ev, nil)
				}
			})
			at := func(i int) *session.Event {
				if i < 0 {
					return nil
				}
				return tt.events[i]
			}
			step := drive.NewStep(invocation(t.Context()), drive.StepConfig{Agent: a})
			res := step.Run(func(*session.Event) bool { return true })
			if res.Err != nil || res.ConsumerLeft || res.LastOutput != at(tt.said) || res.Exit != at(tt.exit) {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// B1: a step is run again for the next iteration, as if it were new.
func TestStepRunsAgainInTheNextIteration(t *testing.T) {
	fail := true
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		if fail {
			ctx.EndInvocation()
			yield(nil, errBoom)
			return
		}
		if ctx.Ended() {
			t.Error("the step remembers that it had ended")
		}
		yield(says("hello"), nil)
	})
	l := &drive.Loop{Name: "refine", Address: "story/refine"}
	step := drive.NewStep(invocation(t.Context()), drive.StepConfig{Agent: a, Loop: l})
	l.Iteration, l.IterationAddress = 1, "story/refine[1]"
	if res := step.Run(func(*session.Event) bool { return true }); !errors.Is(res.Err, errBoom) {
		t.Fatalf("got %+v", res)
	}
	fail, l.Iteration, l.IterationAddress = false, 2, "story/refine[2]"
	var got []*session.Event
	res := step.Run(func(ev *session.Event) bool { got = append(got, ev); return true })
	if res.Err != nil || len(got) != 1 {
		t.Fatalf("got %+v and %d events", res, len(got))
	}
	if got[0].Address != "story/refine[2]/a" || got[0].Iteration != 2 {
		t.Errorf("got address %q in iteration %d", got[0].Address, got[0].Iteration)
	}
}

// G9: with marks, a step's begin and end are in the log.
func TestMarksSayWhenAStepBeginsAndEnds(t *testing.T) {
	leaf := custom(t, "leaf", func(_ agent.InvocationContext, yield yield) {
		_ = yield(says("hello"), nil) && yield(nil, errBoom)
	})
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Marks: true, Session: session.NewView(session.ViewConfig{})})
	events, errs := collect(nest(t, leaf).Run(ctx))
	stepError(t, errs, "root/middle/leaf")
	var got []string
	for _, ev := range events {
		if ev.Mark == nil {
			got = append(got, fmt.Sprint(ev.Address, " says ", ev.Text()))
			continue
		}
		line := fmt.Sprint(ev.Address, " ", ev.Mark.Kind, " by ", ev.Author)
		if ev.Mark.Kind == mark.KindStepFinished {
			var fin mark.StepFinished
			if err := ev.Mark.Decode(&fin); err != nil {
				t.Fatal(err)
			}
			line += ": " + fin.Error
		}
		got = append(got, line)
	}
	const failed = `agent "leaf" (root/middle/leaf): boom`
	want := []string{
		"root step_started by root",
		"root/middle step_started by middle",
		"root/middle/leaf step_started by leaf",
		"root/middle/leaf says hello",
		"root/middle/leaf step_finished by leaf: " + failed,
		"root/middle step_finished by middle: " + failed,
		"root step_finished by root: " + failed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// E3: a Run that returns no sequence fails like any other.
func TestRunWithoutASequenceIsAnError(t *testing.T) {
	a, err := agent.New(agent.Config{
		Name: "a",
		Run:  func(agent.InvocationContext) iter.Seq2[*session.Event, error] { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
	for ev, err := range a.Run(ctx) {
		if ev != nil || err == nil || !strings.Contains(err.Error(), "Run returned no sequence") {
			t.Errorf("got %v, %v", ev, err)
		}
	}
}
