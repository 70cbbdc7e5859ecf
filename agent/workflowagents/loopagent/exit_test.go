// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// canExit also keeps the loop's stop record.
func canExit(rec **loop.StopRecord, names ...string) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		c.Rules.CanExit = append([]string{}, names...)
		into(rec)(c)
	}
}

// T9, C5: who is not on the list cannot end the loop; the attempt is recorded
// and the loop goes on, until somebody may.
func TestExitWithoutPermissionIsRefused(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "refine", 9, canExit(&rec, "judge"),
		turns(t, "writer", exits("I am tired")),
		turns(t, "judge", words("go on"), exits("good")))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", lines(evs), []string{"writer: exit I am tired", "judge: go on", "judge: exit good"})

	x := evs[0].Actions
	if x.Escalate || x.Exit.HandledBy != "" || x.Exit.Refused != "writer may not end the loop refine: it does not have can_exit_loop: true" {
		t.Errorf("refused event: escalate %v, exit %+v", x.Escalate, x.Exit)
	}
	if x := evs[2].Actions; !x.Escalate || x.Exit.Refused != "" || x.Exit.HandledBy != "refine" {
		t.Errorf("followed event: escalate %v, exit %+v", x.Escalate, x.Exit)
	}
	check(t, "refusals", rec.Refused, []loop.Refusal{{Iteration: 1, By: "writer", Reason: "I am tired"}})
	check(t, "reason", rec.Reason, loop.ReasonExit)
	check(t, "by", rec.By, "judge")
	check(t, "detail", rec.Detail, "good")
}

// A refused request is no exit for a loop further out either.
func TestRefusedExitDoesNotReachTheOuterLoop(t *testing.T) {
	var rec, outer *loop.StopRecord
	root := loopOf(t, "outer", 2, into(&outer),
		loopOf(t, "inner", 1, canExit(&rec), turns(t, "writer", exitsBy(session.Exit{Scope: session.ScopeAll}))))
	if _, err := play(t, root); err != nil {
		t.Fatal(err)
	}
	check(t, "outer reason", outer.Reason, loop.ReasonMaxIterations)
	check(t, "outer refusals", outer.Refusals, 0)
}

// An empty list is not no list: nobody may exit.
func TestEmptyListLetsNobodyExit(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "refine", 2, canExit(&rec), says(t, "a", "x"), turns(t, "writer", exits("1"), escalate(words("2"))))
	mustPlay(t, root)
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
	check(t, "refusals", rec.Refusals, 2)
}

// T9: a listed step stands for everything inside it.
func TestAgentsInsideAListedStepMayExit(t *testing.T) {
	for _, listed := range []string{"checks", "lint"} {
		var rec *loop.StopRecord
		root := loopOf(t, "refine", 9, canExit(&rec, listed),
			turns(t, "writer", exits("no")),
			sequence(t, "checks", parallel(t, "all", turns(t, "lint", words("bad"), exits("clean"))), says(t, "test", "x")))
		mustPlay(t, root)
		check(t, listed+": by", rec.By, "lint")
		check(t, listed+": iteration", rec.Iteration, 2)
	}
}

// An outer loop has a list of its own: it stays where only the inner one may be
// left.
func TestEachLoopAsksForItsOwnPermission(t *testing.T) {
	var inner, outer *loop.StopRecord
	root := loopOf(t, "outer", 2, canExit(&outer, "boss"),
		loopOf(t, "inner", 0, into(&inner), turns(t, "judge", exitsBy(session.Exit{Scope: session.ScopeAll}), exits("done"))),
		says(t, "boss", "on with it"))
	mustPlay(t, root)
	check(t, "inner", inner.Reason, loop.ReasonExit)
	check(t, "outer", outer.Reason, loop.ReasonMaxIterations)
	check(t, "outer refusals", outer.Refusals, 1)
}

// LOOP 8, C3: giving up is a way to leave as good as success.
func TestWaysToLeaveHaveTheirOwnReasons(t *testing.T) {
	score := 9.5
	for _, tt := range []struct {
		ev     *session.Event
		reason loop.StopReason
		detail string
	}{
		{exits("all is well"), loop.ReasonExit, "all is well"},
		{exits(""), loop.ReasonExit, "no reason given by judge"},
		{exitsBy(session.Exit{Reason: "no such file", Status: session.ExitImpossible}), loop.ReasonImpossible, "no such file"},
		{exitsBy(session.Exit{Reason: "need a key", Status: session.ExitBlocked}), loop.ReasonBlocked, "need a key"},
		{exitsBy(session.Exit{Score: &score}), loop.ReasonExit, "no reason given by judge"},
		{escalate(words("out")), loop.ReasonEscalated, "no reason given by judge"},
	} {
		var rec *loop.StopRecord
		root := loopOf(t, "refine", 9, into(&rec), turns(t, "judge", words("hm"), tt.ev), says(t, "editor", "x"))
		mustPlay(t, root)
		if rec.Reason != tt.reason || rec.Detail != tt.detail || rec.By != "judge" || rec.Reason.Failed() {
			t.Errorf("%s: got %s %q by %q", tt.reason, rec.Reason, rec.Detail, rec.By)
		}
	}
}

// A later condition does not relabel an exit: the last step of the last
// iteration leaves by exit_loop, not by the limit.
func TestExitInTheLastStepOfTheLastIteration(t *testing.T) {
	var rec *loop.StopRecord
	mustPlay(t, loopOf(t, "refine", 2, into(&rec), says(t, "critic", "x"), turns(t, "judge", words("hm"), exits("good"))))
	check(t, "reason", rec.Reason, loop.ReasonExit)
	check(t, "iterations", rec.Iterations, 2)
}

// Of several requests in one step the first counts.
func TestFirstOfSeveralExitsCounts(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "refine", 9, into(&rec), does(t, "judge", func(_ agent.InvocationContext, say say) error {
		say(exitsBy(session.Exit{Reason: "cannot", Status: session.ExitImpossible}))
		say(exits("done"))
		return nil
	}))
	mustPlay(t, root)
	check(t, "reason", rec.Reason, loop.ReasonImpossible)
	check(t, "detail", rec.Detail, "cannot")
}

// T11: the finalizer may not exit, whatever the list says, nor anything in it.
func TestFinalizerMayNotExit(t *testing.T) {
	var inner, outer *loop.StopRecord
	root := loopOf(t, "outer", 2, into(&outer), loopOf(t, "refine", 1, func(c *loopagent.Config) {
		finalizeWith(c, "closing")
		c.Rules.CanExit = []string{"closing", "critic"}
		into(&inner)(c)
	}, says(t, "critic", "x"), sequence(t, "closing", turns(t, "final", exitsBy(session.Exit{Scope: session.ScopeAll})), says(t, "end", "the end"))))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	x := evs[1].Actions
	if x.Escalate || !strings.Contains(x.Exit.Refused, "final is the finalizer") {
		t.Errorf("escalate %v, exit %+v", x.Escalate, x.Exit)
	}
	check(t, "inner reason", inner.Reason, loop.ReasonMaxIterations)
	check(t, "outer reason", outer.Reason, loop.ReasonMaxIterations)
}

// A loop in the finalizer has exits of its own.
func TestLoopInsideTheFinalizerCanExit(t *testing.T) {
	root := loopOf(t, "refine", 1, func(c *loopagent.Config) { finalizeWith(c, "polish") },
		says(t, "critic", "x"),
		repeat(t, "polish", 0, turns(t, "final", words("so"), exits("shiny"))))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"refine[1]/critic: x", "refine/polish[1]/final: so", "refine/polish[2]/final: exit shiny",
	})
	check(t, "handled by", evs[2].Actions.Exit.HandledBy, session.Address("refine/polish"))
}

// A refusal is about the event that was said, not about the next one.
func TestExitsAreNotSharedBetweenEvents(t *testing.T) {
	asked := session.Exit{Reason: "good"}
	judge := does(t, "judge", func(_ agent.InvocationContext, say say) error {
		ev := words("x")
		ev.Actions.Escalate, ev.Actions.Exit = true, &asked
		say(ev)
		return nil
	})
	mustPlay(t, repeat(t, "outer", 2, repeat(t, "inner", 3, judge)))
	if diff := cmp.Diff(session.Exit{Reason: "good"}, asked); diff != "" {
		t.Errorf("the judge's own exit changed: %s", diff)
	}
}

// T2: a callback around a step may ask to leave, like a tool.
func TestCallbackOfAStepMayEscalate(t *testing.T) {
	step := must(t)(agent.New(agent.Config{Name: "step", AfterAgentCallbacks: []agent.AfterAgentCallback{
		func(ctx agent.Context) (*genai.Content, error) {
			ctx.Actions().Escalate = true
			return nil, nil
		},
	}}))
	check(t, "events", mustPlay(t, repeat(t, "refine", 5, says(t, "critic", "x"), step)), []string{"critic: x", "step: "})
}

// LOOP 7: who has asked, and which loop has taken it, is for the loops to say: what a step
// writes there neither hides its request nor puts it in another's name.
func TestExitCannotBeForged(t *testing.T) {
	for _, by := range []session.Address{"", "l[1]/gone", "l[1]/w", "l[1]/w[1]/x", "l"} {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 1, canExit(&rec, "critic"), says(t, "critic", "c"), turns(t, "w", exitsBy(session.Exit{By: "critic", Reason: "r", HandledBy: by})))
		evs, err := play(t, root)
		if err != nil {
			t.Fatal(err)
		}
		x := evs[len(evs)-1].Actions.Exit
		if x == nil || x.By != "w" || x.Refused == "" || evs[len(evs)-1].Actions.Escalate {
			t.Errorf("handled by %q: the log has %+v", by, x)
		}
		check(t, string(by)+": refused", rec.Refused, []loop.Refusal{{Iteration: 1, By: "w", Reason: "r"}})
	}
}
