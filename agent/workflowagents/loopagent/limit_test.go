// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// F11, M17: a step that would make the state too large fails, under its own policy, and the state stays as
// it was; the step that comes near to that says so.
func TestStateLimit(t *testing.T) {
	for policy, reason := range map[loop.ErrorPolicy]loop.StopReason{loop.StopOnError: loop.ReasonError, loop.SkipStep: loop.ReasonMaxIterations} {
		var rec *loop.StopRecord
		var its []loop.IterationRecord
		grow := does(t, "grow", func(ctx agent.InvocationContext, say say) error {
			v, _ := ctx.Session().State().Get("text")
			text, _ := v.(string)
			say(sets("grown", "text", text+strings.Repeat("x", 300)))
			return nil
		})
		evs, err := play(t, loopOf(t, "l", 5, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.StateLimit, c.Rules.OnError = 1000, policy
			c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
				its = append(its, it)
				return nil
			}}
		}, grow))
		const want = `agent "grow" (l[4]/grow): the state would have 1212 bytes, 1210 of them in key "text", and state_limit of the ` +
			`loop "l" is 1000: keep less in it, set keys that nobody reads to null, or raise the limit`
		if policy == loop.StopOnError && (err == nil || err.Error() != want || !errors.Is(err, session.ErrStateLimit)) {
			t.Errorf("error %v, want %s", err, want)
		}
		check(t, "reason", rec.Reason, reason)
		check(t, "size", rec.StateSize, int64(912))
		check(t, "iterations", its[2].Warning, "the state has 912 of 1000 bytes")
		var warned []string
		for _, ev := range evs {
			if text, ok := ev.CustomMetadata[mark.MetadataWarning].(string); ok {
				warned = append(warned, text)
			}
		}
		check(t, "warnings", warned, []string{"the state has 912 of 1000 bytes"})
	}
}

// F11: within one iteration too; to make the state smaller is always possible, and the limit of a loop
// around the step counts.
func TestStateLimitWithinAnIteration(t *testing.T) {
	sizes := []int{500, 900, 2000, 0, 900}
	var got []string
	var steps []agent.Agent
	for i, n := range sizes {
		steps = append(steps, does(t, fmt.Sprint("s", i), func(_ agent.InvocationContext, say say) error {
			say(sets("set", "text", strings.Repeat("x", n)))
			return nil
		}))
	}
	inner := loopOf(t, "inner", 1, func(c *loopagent.Config) { c.Rules.OnError = loop.SkipStep }, steps...)
	seen := does(t, "seen", func(ctx agent.InvocationContext, say say) error {
		v, _ := ctx.Session().State().Get("text")
		text, _ := v.(string)
		got = append(got, fmt.Sprint(len(text)))
		say(words("seen"))
		return nil
	})
	evs, err := play(t, loopOf(t, "outer", 1, func(c *loopagent.Config) { c.Rules.StateLimit = 1000 }, inner, seen))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", got, []string{"900"})
	var set []string
	for _, ev := range evs {
		if text, ok := ev.Actions.StateDelta["text"].(string); ok {
			set = append(set, fmt.Sprint(len(text)))
		}
	}
	check(t, "set", set, []string{"500", "900", "0", "900"})
}

// M17: the size is known wherever the state is looked at.
func TestStateSizeIsInTheRecord(t *testing.T) {
	var rec *loop.StopRecord
	mustPlay(t, loopOf(t, "l", 1, scored(&rec, loop.Score{}), drafts(t, "w", "score", 5)))
	if rec.StateSize <= 0 || rec.StateSize > 100 {
		t.Errorf("size %d", rec.StateSize)
	}
}

// C6, LOOP 17: the other reading of the seed: the finalizer is the last step of
// every iteration, and may not exit.
func TestFinalizeEach(t *testing.T) {
	var rec *loop.StopRecord
	s := newStage(t, loopOf(t, "l", 2, func(c *loopagent.Config) {
		into(&rec)(c)
		finalizeWith(c, "final")
		c.Rules.FinalizeEach, c.OutputKey = true, "result"
		c.Rules.Order = []string{"b", "a"}
	}, turns(t, "final", words("end 1"), exits("not mine")), says(t, "a", "x"), says(t, "b", "y")), false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"l[1]/b: y", "l[1]/a: x", "l[1]/final: end 1", "l[2]/b: y", "l[2]/a: x", "l[2]/final: exit not mine", "l: ",
	})
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
	check(t, "refusals", rec.Refusals, 1)
	check(t, "result", rec.Result, loop.Result{Source: loop.FromLast, Iteration: 2})
	check(t, "output", s.state(t, "result"), any("exit not mine"))

	_, err = loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}}, Rules: loop.Plan{FinalizeEach: true},
	})
	if want := `loop agent "l": finalize_each needs a finalizer`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// LOOP 6, 21: with Propagate an exit that a timed step has asked for ends the
// loops around too, and one that a step asked for before its time was over does.
func TestPropagateWithTimeouts(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var inner, outer *loop.StopRecord
			leave := does(t, "w", func(ctx agent.InvocationContext, say say) error {
				say(exits("enough"))
				if late {
					<-ctx.Done()
				}
				return ctx.Err()
			})
			evs, err := play(t, loopOf(t, "outer", 5, func(c *loopagent.Config) {
				into(&outer)(c)
				c.Rules.Timeout = loop.Duration(time.Hour)
			}, loopOf(t, "inner", 5, func(c *loopagent.Config) {
				within(&inner, "w", time.Minute)(c)
				c.Propagate = true
			}, leave)))
			if err != nil {
				t.Fatal(err)
			}
			check(t, "events", len(evs), 1)
			check(t, "reasons", []loop.StopReason{inner.Reason, outer.Reason}, []loop.StopReason{loop.ReasonExit, loop.ReasonExit})
			check(t, "handled by", evs[0].Actions.Exit.HandledBy, session.Address("outer"))
			check(t, "timeouts", inner.Timeouts, map[bool]int{true: 1}[late])
		})
	}
}

// OnStop is told of every limit, once, with a result where there is one.
func TestOnStopIsToldOfEveryLimit(t *testing.T) {
	for want, more := range map[loop.StopReason]func(*loopagent.Config){
		loop.ReasonTimeout:       func(c *loopagent.Config) { c.Rules.Timeout = loop.Duration(25 * time.Second) },
		loop.ReasonMaxIterations: func(c *loopagent.Config) { c.MaxIterations = 2 },
		loop.ReasonNoProgress:    func(c *loopagent.Config) { c.Rules.NoProgress = &loop.NoProgress{Repeats: 2} },
		loop.ReasonCondition:     func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: "elapsed >= 20.0"} },
	} {
		synctest.Test(t, func(t *testing.T) {
			var recs []*loop.StopRecord
			mustPlay(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
				c.OnStop = func(_ agent.InvocationContext, r *loop.StopRecord) { recs = append(recs, r) }
				more(c)
			}, takes(t, "w", 10*time.Second, 10*time.Second, 10*time.Second)))
			check(t, string(want)+": stops", len(recs), 1)
			check(t, "reason", recs[0].Reason, want)
			check(t, "result", recs[0].Result, loop.Result{Source: loop.FromLast, Iteration: 2})
			fired := ""
			for _, c := range recs[0].Conditions {
				if c.Fired {
					fired = c.Name
				}
			}
			if fired == "" {
				t.Errorf("%s: no condition has fired: %+v", want, recs[0].Conditions)
			}
		})
	}
}
