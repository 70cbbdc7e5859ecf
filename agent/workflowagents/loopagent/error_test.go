// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

var errBroken = errors.New("broken")

// G2, C13, T18: by default the first error ends everything, and comes last.
func TestErrorEndsTheLoop(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "refine", 5, func(c *loopagent.Config) {
		into(&rec)(c)
		c.OutputKey = "result" // so that it has more to say than ADK's loop
	}, says(t, "critic", "x"), fails(t, "editor", nil, errBroken), says(t, "printer", "y"))
	evs, err := play(t, root)
	check(t, "events", lines(evs), []string{
		"critic: x", "editor: fine", "printer: y", "critic: x",
		"refine: y", // what the last complete iteration came to
	})
	if !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
	check(t, "reason", rec.Reason, loop.ReasonError)
	check(t, "by", rec.By, "editor")
	check(t, "result", rec.Result, loop.Result{Source: loop.FromLast, Iteration: 1})
}

// With ADK's two fields nothing is said besides.
func TestErrorEndsAPlainLoop(t *testing.T) {
	evs, err := play(t, repeat(t, "refine", 0, says(t, "critic", "x"), fails(t, "editor", errBroken), says(t, "printer", "never")))
	check(t, "events", lines(evs), []string{"critic: x"})
	if !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

// LOOP 20: the error says which step it was, once, however deep.
func TestErrorNamesTheInnermostStep(t *testing.T) {
	root := sequence(t, "story", repeat(t, "outer", 2, repeat(t, "inner", 2,
		parallel(t, "panel", sequence(t, "seq", fails(t, "judge", nil, errBroken))))))
	_, err := play(t, root)
	const want = `agent "judge" (story/outer[1]/inner[2]/panel/seq/judge): broken`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	step, ok := errors.AsType[*agent.StepError](err)
	if !ok || step.Address != "story/outer[1]/inner[2]/panel/seq/judge" {
		t.Errorf("step error %+v", step)
	}
}

// What a step has said before it failed is said and kept.
func TestEventsBeforeAnErrorAreKept(t *testing.T) {
	root := repeat(t, "refine", 3, does(t, "editor", func(_ agent.InvocationContext, say say) error {
		say(sets("half", "draft", "half"))
		return errBroken
	}))
	s := newStage(t, root, false)
	evs, err := s.send(t, t.Context(), "go")
	check(t, "events", lines(evs), []string{"editor: half"})
	check(t, "state", s.state(t, "draft"), any("half"))
	if !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

// C13, C14, F7: the other policies, for the loop and for single steps.
func TestErrorPolicies(t *testing.T) {
	one := []string{"critic: x", "printer: y"}
	for _, tt := range []struct {
		name string
		more func(*loopagent.Config)
		want []string
	}{
		{"skip_step", func(c *loopagent.Config) { c.Rules.OnError = loop.SkipStep },
			[]string{"critic: x", "printer: y", "critic: x", "editor: fine", "printer: y"}},
		{"next_iteration", func(c *loopagent.Config) { c.Rules.OnError = loop.NextIteration },
			[]string{"critic: x", "critic: x", "editor: fine", "printer: y"}},
		{"step overrides loop", func(c *loopagent.Config) {
			c.Rules.Steps = []loop.Step{{Name: "editor", OnError: loop.SkipStep}}
		}, append(one, "critic: x", "editor: fine", "printer: y")},
		{"step is stricter than loop", func(c *loopagent.Config) {
			c.Rules.OnError = loop.SkipStep
			c.Rules.Steps = []loop.Step{{Name: "editor", OnError: loop.StopOnError}}
		}, []string{"critic: x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := loopOf(t, "refine", 2, tt.more, says(t, "critic", "x"), fails(t, "editor", errBroken), says(t, "printer", "y"))
			evs, err := play(t, root)
			check(t, "events", lines(evs), tt.want)
			if fatal := tt.name == "step is stricter than loop"; fatal != errors.Is(err, errBroken) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A request to leave counts even if its step fails afterwards, where a failure
// does not end the loop.
func TestExitBeforeAToleratedFailure(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "refine", 9, func(c *loopagent.Config) {
		c.Rules.OnError = loop.SkipStep
		into(&rec)(c)
	}, does(t, "judge", func(_ agent.InvocationContext, say say) error {
		say(exits("good"))
		return errBroken
	}))
	mustPlay(t, root)
	check(t, "reason", rec.Reason, loop.ReasonExit)
	check(t, "failures", rec.Failures, 1)
}

// G6, C13: too many failures running open the circuit, whatever the policy.
func TestConsecutiveFailuresOpenTheCircuit(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "poll", 0, func(c *loopagent.Config) {
		c.Rules.OnError, c.Rules.MaxConsecutiveFailures = loop.SkipStep, 3
		into(&rec)(c)
	}, fails(t, "probe", errBroken, errBroken, nil, errBroken, errBroken, errBroken, nil))
	evs, err := play(t, root)
	check(t, "events", len(evs), 1)
	if !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
	check(t, "reason", rec.Reason, loop.ReasonError)
	check(t, "failures", rec.Failures, 5)
	check(t, "result", rec.Result, loop.Result{Source: loop.FromLast, Iteration: 5})
}

// Two steps that fail by turns with a success between never open it.
func TestASuccessClosesTheCircuit(t *testing.T) {
	root := loopOf(t, "poll", 3, func(c *loopagent.Config) { c.Rules.OnError, c.Rules.MaxConsecutiveFailures = loop.SkipStep, 2 },
		fails(t, "probe", errBroken, errBroken, errBroken), says(t, "log", "x"))
	check(t, "events", mustPlay(t, root), []string{"log: x", "log: x", "log: x"})
}

// A panic of a step is an error of the step.
func TestPanicIsAnError(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "refine", 5, into(&rec), does(t, "editor", func(agent.InvocationContext, say) error {
		panic("oh")
	}))
	_, err := play(t, root)
	p, ok := errors.AsType[*agent.PanicError](err)
	if !ok || p.Value != "oh" {
		t.Errorf("error %v", err)
	}
	check(t, "detail", rec.Detail, `editor: panic: agent "editor" (refine[1]/editor): panic: oh`)
	check(t, "result", rec.Result, loop.Result{Source: loop.FromPartial, Iteration: 1})

	tolerant := loopOf(t, "refine", 2, func(c *loopagent.Config) { c.Rules.OnError = loop.NextIteration },
		does(t, "editor", func(agent.InvocationContext, say) error { panic("oh") }))
	_, err = play(t, tolerant) // nothing has worked: LOOP 16
	if _, ok = errors.AsType[*agent.PanicError](err); !ok || !strings.HasPrefix(err.Error(), "No iteration succeeded; the last failure: ") {
		t.Errorf("error %v", err)
	}
}

// A panic of whoever consumes the events is not the loop's to catch.
func TestPanicOfTheConsumerGoesOn(t *testing.T) {
	s := newStage(t, repeat(t, "refine", 5, says(t, "editor", "x")), false)
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
	}()
	for range s.Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
		panic("mine")
	}
}

// A pair without event and error is a mistake of the agent, not a crash.
func TestAgentThatYieldsNothingAtAll(t *testing.T) {
	root := repeat(t, "refine", 5, does(t, "editor", func(_ agent.InvocationContext, say say) error {
		say(nil)
		return nil
	}))
	_, err := play(t, root)
	const want = `agent "editor" (refine[1]/editor): agent yielded neither an event nor an error; each pair needs one of them`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// G5: a failing inner loop is a failing step of the outer one.
func TestFailedInnerLoopIsAFailedStep(t *testing.T) {
	root := loopOf(t, "outer", 2, func(c *loopagent.Config) { c.Rules.OnError = loop.SkipStep },
		repeat(t, "inner", 2, fails(t, "probe", errBroken)), says(t, "log", "x"))
	check(t, "events", mustPlay(t, root), []string{"log: x", "probe: fine", "probe: fine", "log: x"})
}
