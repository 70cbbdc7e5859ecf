// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// nest is outer[first, pipeline[inner[judge, after judge], after inner], last].
func nest(t *testing.T, outer, inner func(*loopagent.Config), judge agent.Agent) agent.Agent {
	return loopOf(t, "outer", 2, outer,
		says(t, "first", "1"),
		sequence(t, "pipeline",
			loopOf(t, "inner", 3, inner, judge, says(t, "after judge", "again")),
			says(t, "after inner", "2")),
		says(t, "last", "3"))
}

func propagate(c *loopagent.Config) { c.Propagate = true }

// C20, A13: an exit from an inner loop leaves that loop alone; the sequence
// around it and the outer loop go on.
func TestInnerExitLeavesOnlyTheInnerLoop(t *testing.T) {
	root := nest(t, nil, nil, turns(t, "judge", words("hm"), exits("ok"), exits("ok again")))
	check(t, "events", mustPlay(t, root), []string{
		"first: 1", "judge: hm", "after judge: again", "judge: exit ok", "after inner: 2", "last: 3",
		"first: 1", "judge: exit ok again", "after inner: 2", "last: 3",
	})
}

// C20: Propagate lets the exit leak to the outer loop, as in ADK. The sequence
// between them belongs to what is left, and stops.
func TestPropagateLeavesTheOuterLoopToo(t *testing.T) {
	root := nest(t, nil, propagate, turns(t, "judge", exits("ok")))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", lines(evs), []string{"first: 1", "judge: exit ok"})
	check(t, "handled by", evs[1].Actions.Exit.HandledBy, session.Address("outer"))
}

// With Propagate at every loop nobody takes the exit, and an ADK-style consumer
// above still sees it.
func TestPropagateAllTheWayUp(t *testing.T) {
	root := sequence(t, "story", nest(t, propagate, propagate, turns(t, "judge", exits("ok"))), says(t, "printer", "printed"))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	// As in ADK a sequence that no loop has ended runs to its end.
	check(t, "events", lines(evs), []string{"first: 1", "judge: exit ok", "after inner: 2", "printer: printed"})
	x := evs[1].Actions
	if !x.Escalate || x.Exit.HandledBy != "" {
		t.Errorf("escalate %v, exit %+v", x.Escalate, x.Exit)
	}
}

// C20, T32: a request may reach further than the nearest loop.
func TestExitScopes(t *testing.T) {
	onlyInner := []string{
		"first: 1", "judge: exit ", "after inner: 2", "last: 3",
		"first: 1", "judge: exit ", "after inner: 2", "last: 3",
	}
	both := []string{"first: 1", "judge: exit "}
	for _, tt := range []struct {
		scope     string
		want      []string
		handledBy session.Address
	}{
		{"", onlyInner, "outer[1]/pipeline/inner"},
		{"inner", onlyInner, "outer[1]/pipeline/inner"},
		{"outer", both, "outer"},
		{session.ScopeAll, both, "outer"},
		{"nobody", onlyInner, "outer[1]/pipeline/inner"},
	} {
		t.Run("scope "+tt.scope, func(t *testing.T) {
			evs, err := play(t, nest(t, nil, nil, turns(t, "judge", exitsBy(session.Exit{Scope: tt.scope}), exits(""))))
			if err != nil {
				t.Fatal(err)
			}
			check(t, "events", lines(evs), tt.want)
			check(t, "handled by", evs[1].Actions.Exit.HandledBy, tt.handledBy)
		})
	}
}

// A named loop between the nearest and the outermost is as far as it goes.
func TestNamedScopeStopsAtThatLoop(t *testing.T) {
	judge := turns(t, "judge", exitsBy(session.Exit{Scope: "middle"}), exitsBy(session.Exit{Scope: "middle"}))
	root := repeat(t, "outer", 2,
		repeat(t, "middle", 9, repeat(t, "inner", 9, judge), says(t, "in middle", "never")),
		says(t, "in outer", "went on"))
	check(t, "events", mustPlay(t, root), []string{"judge: exit ", "in outer: went on", "judge: exit ", "in outer: went on"})
}

// T3, T30: an exit in a sequence inside the loop skips the rest of the sequence.
func TestExitSkipsTheRestOfASequence(t *testing.T) {
	root := repeat(t, "refine", 0,
		sequence(t, "checks",
			sequence(t, "deep", turns(t, "lint", words("bad"), exits("clean")), says(t, "in deep", "1")),
			says(t, "test", "2")),
		says(t, "editor", "3"))
	check(t, "events", mustPlay(t, root), []string{
		"lint: bad", "in deep: 1", "test: 2", "editor: 3", "lint: exit clean",
	})
}

// C2: an exit in a parallel agent lets its siblings finish.
func TestExitInAParallelLetsTheSiblingsFinish(t *testing.T) {
	asked := make(chan struct{})
	judge := does(t, "judge", func(_ agent.InvocationContext, say say) error {
		say(exits("ok"))
		close(asked)
		return nil
	})
	slow := does(t, "slow", func(_ agent.InvocationContext, say say) error {
		<-asked
		say(words("a"))
		say(words("b"))
		return nil
	})
	got := mustPlay(t, repeat(t, "refine", 0, parallel(t, "panel", judge, slow), says(t, "editor", "never")))
	check(t, "events", got, []string{"judge: exit ok", "slow: a", "slow: b"})
}

// What one loop does has no bearing on a loop beside it.
func TestParallelLoopsAreIndependent(t *testing.T) {
	root := parallel(t, "both",
		repeat(t, "short", 9, turns(t, "quick", words("1"), exits("enough"))),
		repeat(t, "long", 3, says(t, "slow", "x")))
	got := mustPlay(t, root)
	slices.Sort(got)
	check(t, "events", got, []string{"quick: 1", "quick: exit enough", "slow: x", "slow: x", "slow: x"})
}

// C22, C23: a nested loop starts afresh in each iteration of the outer one.
func TestInnerLoopStartsAfreshEachTime(t *testing.T) {
	var recs []*loop.StopRecord
	inner := loopOf(t, "inner", 2, func(c *loopagent.Config) {
		c.OnStop = func(_ agent.InvocationContext, r *loop.StopRecord) { recs = append(recs, r) }
	}, says(t, "step", "x"))
	evs, err := play(t, repeat(t, "outer", 2, inner))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"outer[1]/inner[1]/step: x", "outer[1]/inner[2]/step: x",
		"outer[2]/inner[1]/step: x", "outer[2]/inner[2]/step: x",
	})
	for _, r := range recs {
		check(t, "iterations", r.Iterations, 2)
	}
	check(t, "stops", len(recs), 2)
}

// A loop that an orchestration runs twice has two addresses, and an exit of the
// second is taken by the second.
func TestLoopRunTwiceByHand(t *testing.T) {
	inner := repeat(t, "inner", 0, turns(t, "judge", exits("one"), words("hm"), exits("two")))
	root := does(t, "hand", func(ctx agent.InvocationContext, say say) error {
		for range 2 {
			for ev, err := range inner.Run(ctx) {
				if err != nil {
					return err
				}
				if !say(ev) {
					return nil
				}
			}
		}
		return nil
	})
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"hand/inner[1]/judge: exit one", "hand/inner#2[1]/judge: hm", "hand/inner#2[2]/judge: exit two",
	})
	check(t, "handled by", evs[2].Actions.Exit.HandledBy, session.Address("hand/inner#2"))
}
