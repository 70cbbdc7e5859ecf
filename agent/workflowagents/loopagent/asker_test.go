// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
	"iter"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 7: who asks to leave is the step that runs, whatever the event says.
func TestExitIsStampedByTheLoop(t *testing.T) {
	forge := func(at session.Address) *session.Event {
		ev := exitsBy(session.Exit{By: "critic", Reason: "forged"})
		ev.Address, ev.Author = at, "critic"
		return ev
	}
	for _, at := range []session.Address{"", "refine[1]/critic", "refine[1]/writer/critic", "refine[1]/seq/writer/critic"} {
		for _, nested := range []bool{false, true} {
			var rec *loop.StopRecord
			step := turns(t, "writer", forge(at))
			if nested {
				step = sequence(t, "seq", step)
			}
			root := loopOf(t, "refine", 2, canExit(&rec, "critic"), step, says(t, "critic", "x"))
			evs, err := play(t, root)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("address %q, nested %v", at, nested)
			check(t, name+": reason", rec.Reason, loop.ReasonMaxIterations)
			check(t, name+": refused", rec.Refused, []loop.Refusal{{Iteration: 1, By: "writer", Reason: "forged"}})
			check(t, name+": event", evs[0].Actions.Exit.By, "writer")
		}
	}
}

// LOOP 6: an Exit without Escalate asks to leave, as one with it does.
func TestExitWithoutEscalateLeaves(t *testing.T) {
	var inner, outer *loop.StopRecord
	ev := words("done")
	ev.Actions.Exit = &session.Exit{Reason: "good"}
	root := loopOf(t, "outer", 1, into(&outer), loopOf(t, "refine", 5, into(&inner), sequence(t, "seq", turns(t, "judge", ev), says(t, "rest", "x"))))
	check(t, "events", mustPlay(t, root), []string{"judge: done"})
	check(t, "reason", inner.Reason, loop.ReasonExit)
	check(t, "detail", inner.Detail, "good")
	check(t, "outer", outer.Reason, loop.ReasonMaxIterations)
}

// LOOP 6: an iteration callback that asks to leave leaves its own loop and no other,
// with or without a change of the state.
func TestIterationCallbackThatLeaves(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, tt := range []struct {
			name   string
			before bool
			change bool
			exit   *session.Exit
			want   []string // what was said
			reason loop.StopReason
			detail string
		}{
			{"before", true, false, nil, []string{"step: x", "next: y"}, loop.ReasonEscalated, "an iteration callback asked to leave"},
			{"before, with a change", true, true, nil, []string{"step: x", "next: y"}, loop.ReasonEscalated, "an iteration callback asked to leave"},
			{"after", false, false, nil, []string{"step: x", "step: x", "next: y"}, loop.ReasonEscalated, "an iteration callback asked to leave"},
			{"after, with a change", false, true, nil, []string{"step: x", "step: x", "next: y"}, loop.ReasonEscalated, "an iteration callback asked to leave"},
			{"gives up", false, false, &session.Exit{By: "somebody", Reason: "no way", Status: session.ExitImpossible}, []string{"step: x", "step: x", "next: y"}, loop.ReasonImpossible, "no way"},
			{"all loops", false, false, &session.Exit{Scope: session.ScopeAll}, []string{"step: x", "step: x"}, loop.ReasonExit, "an iteration callback asked to leave"},
		} {
			var inner, outer *loop.StopRecord
			leave := func(ctx agent.Context, n int) error {
				if n < 2 {
					return nil
				}
				if ctx.Actions().Escalate, ctx.Actions().Exit = tt.exit == nil, tt.exit; tt.change {
					return ctx.State().Set("left", n)
				}
				return nil
			}
			root := loopOf(t, "outer", 1, into(&outer), loopOf(t, "refine", 5, func(c *loopagent.Config) {
				into(&inner)(c)
				c.Rules.CanExit = []string{}
				if tt.before {
					c.BeforeIteration = []loopagent.BeforeIterationCallback{leave}
				} else {
					c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, it loop.IterationRecord) error { return leave(ctx, it.Number) }}
				}
			}, says(t, "step", "x")), says(t, "next", "y"))
			s := newStage(t, root, durable)
			evs, err := s.send(t, t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, ev := range evs {
				if ev.Mark == nil && ev.Text() != "" && ev.Author != "outer" {
					said = append(said, lines([]*session.Event{ev})...)
				}
				if x := ev.Actions.Exit; x != nil && (x.By != "refine" || x.HandledBy == "") {
					t.Errorf("%s: exit %+v", tt.name, x)
				}
			}
			name := fmt.Sprintf("%s, durable %v", tt.name, durable)
			check(t, name, said, tt.want)
			check(t, name+": reason", inner.Reason, tt.reason)
			check(t, name+": detail", inner.Detail, tt.detail)
			check(t, name+": by", inner.By, "refine")
			if tt.change {
				check(t, name+": state", s.state(t, "left"), any(2.0))
			}
			want := loop.ReasonMaxIterations
			if tt.exit != nil && tt.exit.Scope != "" {
				want = loop.ReasonExit
			}
			check(t, name+": outer", outer.Reason, want)
		}
	}
}

// A reason that the loop had to stop before its callback asks to leave stays.
func TestIterationCallbackDoesNotRelabelTheReason(t *testing.T) {
	var rec *loop.StopRecord
	mustPlay(t, repeat(t, "outer", 1, loopOf(t, "refine", 2, func(c *loopagent.Config) {
		into(&rec)(c)
		c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, it loop.IterationRecord) error {
			ctx.Actions().Escalate = it.Number == 2
			return nil
		}}
	}, says(t, "step", "x"))))
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
}

// LOOP 9: of several that leave at once in a parallel agent the one counts that gives
// up, and then the one that comes first in the tree, whoever is faster.
func TestSeveralExitsAtOnce(t *testing.T) {
	for range 20 {
		for _, tt := range []struct {
			exits [3]session.Exit
			order []int // in which they ask
			want  string
		}{
			{[3]session.Exit{{}, {}, {}}, []int{2, 1, 0}, "a"},
			{[3]session.Exit{{}, {}, {}}, []int{1, 0, 2}, "a"},
			{[3]session.Exit{{}, {}, {Status: session.ExitImpossible}}, []int{0, 1, 2}, "c"},
			{[3]session.Exit{{}, {Status: session.ExitBlocked}, {Status: session.ExitImpossible}}, []int{1, 0, 2}, "c"},
			{[3]session.Exit{{}, {Status: session.ExitBlocked}, {}}, []int{2, 1, 0}, "b"},
		} {
			var rec *loop.StopRecord
			turn := []chan bool{make(chan bool), make(chan bool), make(chan bool), nil}
			next := make(map[int]int)
			for i, n := range tt.order {
				next[n] = 3
				if i < 2 {
					next[n] = tt.order[i+1]
				}
			}
			var subs []agent.Agent
			for i, name := range []string{"a", "b", "c"} {
				subs = append(subs, does(t, name, func(_ agent.InvocationContext, say say) error {
					<-turn[i]
					say(exitsBy(tt.exits[i]))
					if n := next[i]; n < 3 {
						close(turn[n])
					}
					return nil
				}))
			}
			close(turn[tt.order[0]])
			mustPlay(t, loopOf(t, "refine", 2, into(&rec), parallel(t, "all", subs...)))
			check(t, "by", rec.By, tt.want)
		}
	}
}

// T2: a callback before a step that asks to leave keeps the step from running.
func TestCallbackBeforeAStepThatLeaves(t *testing.T) {
	ran := false
	step := must(t)(agent.New(agent.Config{
		Name: "step", BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			ctx.Actions().Escalate = true
			return nil, ctx.State().Set("seen", true)
		}},
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			ran = true
			return func(func(*session.Event, error) bool) {}
		},
	}))
	s := newStage(t, repeat(t, "refine", 5, says(t, "critic", "x"), step), false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", lines(evs), []string{"critic: x", "step: "})
	check(t, "ran", ran, false)
	check(t, "state", s.state(t, "seen"), any(true))
}
