// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	llm "github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// again has a step run so often in all.
func again(rec **loop.StopRecord, step string, attempts uint) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		into(rec)(c)
		c.Rules.Steps = []loop.Step{{Name: step, Retry: &loop.Retry{Attempts: attempts}}}
	}
}

// G10, LOOP 20: a failed step runs again, and its events say which attempt it is.
func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		errs   []error
		want   []string
		failed bool
		record [2]int // failures, retries
	}{
		{"at once", nil, []string{"l[1]/a #1: try", "l[1]/a #1: fine", "l[1]/b #1: x"}, false, [2]int{0, 0}},
		{"the second time", []error{errBroken}, []string{"l[1]/a #1: try", "l[1]/a #2: try", "l[1]/a #2: fine", "l[1]/b #1: x"}, false,
			[2]int{0, 1}},
		{"the third time", []error{errBroken, errBroken}, []string{"l[1]/a #1: try", "l[1]/a #2: try", "l[1]/a #3: try", "l[1]/a #3: fine",
			"l[1]/b #1: x"}, false, [2]int{0, 2}},
		{"never", []error{errBroken, errBroken, errBroken, nil}, []string{"l[1]/a #1: try", "l[1]/a #2: try", "l[1]/a #3: try"}, true,
			[2]int{1, 2}},
		{"permanent", []error{fmt.Errorf("wrapped: %w", permanentError{}), nil}, []string{"l[1]/a #1: try"}, true, [2]int{1, 0}},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				var rec *loop.StopRecord
				errs := tt.errs
				step := does(t, "a", func(_ agent.InvocationContext, say say) error {
					say(words("try"))
					var err error
					if len(errs) > 0 {
						err, errs = errs[0], errs[1:]
					}
					if err == nil {
						say(words("fine"))
					}
					return err
				})
				s := newStage(t, loopOf(t, "l", 1, again(&rec, "a", 3), step, says(t, "b", "x")), durable)
				evs, err := s.send(t, t.Context(), "go")
				if tt.failed != (err != nil) {
					t.Errorf("error %v", err)
				}
				var got []string
				for _, ev := range evs {
					if ev.Mark == nil {
						got = append(got, fmt.Sprintf("%s #%d: %s", ev.Address, ev.Attempt, ev.Text()))
					}
				}
				check(t, "events", got, tt.want)
				check(t, "failures, retries", [2]int{rec.Failures, rec.Retries}, tt.record)
				balanced(t, evs)
			})
		}
	}
}

type permanentError struct{}

func (permanentError) Error() string   { return "no use" }
func (permanentError) Permanent() bool { return true }

// G10, LOOP 20: who failed may ask to wait, as a provider does; that is waited at least.
func TestRetryAfter(t *testing.T) {
	for _, durable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			var rec *loop.StopRecord
			start := time.Now()
			root := loopOf(t, "l", 1, func(c *loopagent.Config) {
				into(&rec)(c)
				c.Rules.Steps = []loop.Step{{Name: "line", Retry: &loop.Retry{Attempts: 9, Backoff: loop.Duration(time.Second)}}}
			}, sequence(t, "line", does(t, "a", func(agent.InvocationContext, say) error {
				at = append(at, time.Since(start).Round(time.Second))
				switch len(at) {
				case 1:
					return fmt.Errorf("ask: %w", &llm.APIError{Provider: "p", Status: 429, Retryable: true, RetryAfter: 30 * time.Second})
				case 2:
					return fmt.Errorf("ask: %w", &llm.APIError{Provider: "p", Status: 429, Retryable: true})
				case 3:
					return fmt.Errorf("ask: %w", &llm.APIError{Provider: "p", Status: 429, Retryable: true, RetryAfter: 61 * time.Second})
				}
				return nil
			})))
			_, err := newStage(t, root, durable).send(t, t.Context(), "go")
			check(t, "at", at, []time.Duration{0, 30 * time.Second, 32 * time.Second})
			const want = "(not tried again: it asks to wait 1m 01s, and retry.max_backoff is 1m)"
			if err == nil || rec == nil || !strings.HasSuffix(rec.Detail, want) {
				t.Errorf("error %v, stopped by %+v", err, rec)
			}
		})
	}
}

// G10: the wait between attempts doubles, up to its limit, shortened by up to a
// fifth.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		root := loopOf(t, "l", 1, func(c *loopagent.Config) {
			c.Rules.Steps = []loop.Step{{Name: "a", DelayBefore: loop.Duration(time.Hour), Retry: &loop.Retry{
				Attempts: 5, Backoff: loop.Duration(10 * time.Second), MaxBackoff: loop.Duration(30 * time.Second),
			}}}
		}, does(t, "a", func(agent.InvocationContext, say) error {
			at = append(at, time.Now())
			return errBroken
		}))
		if _, err := play(t, root); !errors.Is(err, errBroken) {
			t.Errorf("error %v", err)
		}
		check(t, "attempts", len(at), 5)
		for i, most := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 30 * time.Second} {
			if d := at[i+1].Sub(at[i]); d > most || d < most*8/10 {
				t.Errorf("waited %s before attempt %d, want up to %s", d, i+2, most)
			}
		}
	})
}

// F5, G10: an attempt that takes too long is made again, in a time of its own.
func TestRetryAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		start := time.Now()
		root := loopOf(t, "l", 1, func(c *loopagent.Config) {
			again(&rec, "a", 3)(c)
			c.Rules.Steps[0].Timeout = loop.Duration(time.Second)
		}, takes(t, "a", time.Hour, time.Hour, 900*time.Millisecond))
		check(t, "events", mustPlay(t, root), []string{"a: done"})
		check(t, "took", time.Since(start), 2900*time.Millisecond)
		check(t, "retries", rec.Retries, 2)
	})
}

// retryState runs a step whose first attempt changes the state and fails, and
// whose second one looks at it.
func retryState(t *testing.T, change func(ctx agent.InvocationContext, say say), more func(*loopagent.Config),
	wrap func(agent.Agent) agent.Agent) (s *stage, seen map[string]any, evs []*session.Event) {
	t.Helper()
	attempt := 0
	step := wrap(does(t, "a", func(ctx agent.InvocationContext, say say) error {
		if attempt++; attempt%2 == 1 {
			change(ctx, say)
			return errBroken
		}
		seen = maps.Collect(drive.At(ctx).State().All())
		say(words("fine"))
		return nil
	}))
	var rec *loop.StopRecord
	before := does(t, "before", func(_ agent.InvocationContext, say say) error {
		ev := words("x")
		ev.Actions.StateDelta = map[string]any{
			"kept": "as it was", "changed": "before", "removed": "before", "object": map[string]any{"list": []any{1.0,
				map[string]any{"deep": "before"}}},
			"iteration:note": "before", "temp:note": "before", "app:count": 1, "user:count": 1,
		}
		say(ev)
		return nil
	})
	s = newStage(t, loopOf(t, "l", 1, func(c *loopagent.Config) {
		again(&rec, step.Name(), 2)(c)
		if more != nil {
			more(c)
		}
	}, before, step), false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	return s, seen, evs
}

// changes every kind of key.
func changes(_ agent.InvocationContext, say say) {
	ev := words("half")
	ev.Actions.StateDelta = map[string]any{
		"changed": "after", "removed": nil, "added": "after", "object": map[string]any{"list": []any{}},
		"iteration:note": "after", "iteration:other": "after", "temp:note": "after", "temp:other": "after",
		"app:count": 2, "user:count": 2, "user:other": 2,
	}
	say(ev)
}

// LOOP 18, 20: an attempt sees only what attempts that finished have left: what
// a failed one has changed is taken back, by an event, before the next. Keys
// that other sessions share are left alone.
func TestRetryTakesBackTheState(t *testing.T) {
	plain := func(a agent.Agent) agent.Agent { return a }
	want := map[string]any{
		"kept": "as it was", "changed": "before", "removed": "before", "object": map[string]any{"list": []any{1.0,
			map[string]any{"deep": "before"}}},
		"iteration:note": "before", "temp:note": "before", "app:count": 2.0, "user:count": 2.0, "user:other": 2.0,
	}
	s, seen, evs := retryState(t, changes, nil, plain)
	check(t, "state of the second attempt", seen, want)
	check(t, "events", addressed(evs), []string{"l[1]/before: x", "l[1]/a: half", "l[1]/a: ", "l[1]/a: fine"})
	undo := evs[2]
	check(t, "taken back", undo.Actions.StateDelta, map[string]any{
		"changed": "before", "removed": "before", "added": nil, "object": want["object"],
		"iteration:note": "before", "iteration:other": nil, "temp:note": "before", "temp:other": nil,
	})
	if undo.Author != "a" || undo.Attempt != 2 || undo.Iteration != 1 || undo.InvocationID == "" {
		t.Errorf("event %+v", undo)
	}
	got, err := s.sessions.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	stored := maps.Collect(got.Session.State().All())
	delete(want, "iteration:note")
	delete(want, "temp:note")
	check(t, "stored state", stored, want)

	t.Run("in a sequence", func(t *testing.T) {
		_, got, _ := retryState(t, changes, nil, func(a agent.Agent) agent.Agent { return sequence(t, "seq", a) })
		want["iteration:note"], want["temp:note"] = "before", "before"
		check(t, "state of the second attempt", got, want)
	})
	t.Run("of an inner loop", func(t *testing.T) {
		_, got, _ := retryState(t, changes, nil, func(a agent.Agent) agent.Agent { return repeat(t, "inner", 1, a) })
		check(t, "state of the second attempt", got, want)
	})
	t.Run("changed in place", func(t *testing.T) {
		_, got, _ := retryState(t, func(ctx agent.InvocationContext, say say) {
			v, err := ctx.Session().State().Get("object")
			if err != nil {
				t.Fatal(err)
			}
			list := v.(map[string]any)["list"].([]any)
			list[0] = 2.0
			list[1].(map[string]any)["deep"] = "after"
			say(sets("half", "object", v))
		}, nil, plain)
		check(t, "object", got["object"], want["object"])
	})
	t.Run("without an event", func(t *testing.T) {
		_, got, _ := retryState(t, func(ctx agent.InvocationContext, _ say) {
			if err := ctx.Session().State().Set("temp:changed", "after"); err != nil {
				t.Fatal(err)
			}
		}, nil, plain)
		check(t, "temp:changed", got["temp:changed"], nil)
	})
}

// An attempt that has changed nothing needs no event.
func TestRetryWithoutAChangeSaysNothing(t *testing.T) {
	_, _, evs := retryState(t, func(_ agent.InvocationContext, say say) { say(words("half")) }, nil,
		func(a agent.Agent) agent.Agent { return a })
	check(t, "events", addressed(evs), []string{"l[1]/before: x", "l[1]/a: half", "l[1]/a: fine"})
}

// Beside other branches a loop takes back what is its own.
func TestRetryBesideOtherBranches(t *testing.T) {
	var rec *loop.StopRecord
	other := make(chan bool)
	attempt := 0
	var seen any
	root := parallel(t, "par", loopOf(t, "l", 1, again(&rec, "a", 2), does(t, "a", func(ctx agent.InvocationContext, say say) error {
		if attempt++; attempt == 1 {
			say(sets("", "mine", 1))
			other <- true
			<-other
			return errBroken
		}
		seen, _ = ctx.Session().State().Get("mine")
		return nil
	})), does(t, "b", func(_ agent.InvocationContext, say say) error {
		<-other
		say(sets("", "theirs", 1))
		other <- true
		return nil
	}))
	s := newStage(t, root, false)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	check(t, "its own", seen, nil)
	check(t, "theirs", s.state(t, "theirs"), any(1.0))
}

// LOOP 4, 20: what a failed attempt has asked for does not count if there is
// another, neither in its loop nor in those around.
func TestExitOfAFailedAttemptDoesNotCount(t *testing.T) {
	for _, x := range []session.Exit{{Reason: "too early"}, {Scope: session.ScopeAll}, {Scope: "outer"}} {
		for _, propagate := range []bool{false, true} {
			var rec, outer *loop.StopRecord
			attempt := 0
			asks := does(t, "a", func(_ agent.InvocationContext, say say) error {
				if attempt++; attempt == 1 {
					say(exitsBy(x))
					return errBroken
				}
				say(words("fine"))
				return nil
			})
			evs, err := play(t, loopOf(t, "outer", 2, into(&outer), loopOf(t, "l", 2, func(c *loopagent.Config) {
				again(&rec, "seq", 2)(c)
				c.Propagate = propagate
			}, sequence(t, "seq", says(t, "first", "1"), asks), says(t, "b", "x"))))
			if err != nil {
				t.Fatal(err)
			}
			check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
			check(t, "outer reason", outer.Reason, loop.ReasonMaxIterations)
			check(t, "attempts", attempt, 5)
			if taken := evs[2].Actions.Exit; taken == nil || taken.Refused == "" || evs[2].Actions.Escalate {
				t.Errorf("event %+v does not take it back", evs[2])
			}
		}
	}
}

// G6: a step that fails again and again is not run for a while.
func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		runs := 0
		root := loopOf(t, "l", 10, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.OnError = loop.SkipStep
			c.Rules.Steps = []loop.Step{{Name: "probe", Circuit: &loop.Circuit{Failures: 3, Cooldown: loop.Duration(25 * time.Second)}}}
		}, does(t, "probe", func(_ agent.InvocationContext, say say) error {
			if runs++; runs <= 4 {
				return errBroken
			}
			say(words("up"))
			return nil
		}), takes(t, "log", 10*time.Second, 10*time.Second, 10*time.Second, 10*time.Second, 10*time.Second, 10*time.Second, 10*time.Second,
			10*time.Second, 10*time.Second))
		got := mustPlay(t, root)
		// Open in iterations 4 and 5, tried in 6, open again in 7 and 8.
		check(t, "runs", runs, 6)
		check(t, "events", got, []string{
			"log: done", "log: done", "log: done", "log: done", "log: done", "log: done", "log: done", "log: done",
			"probe: up", "log: done", "probe: up", "log: done",
		})
		check(t, "failures", rec.Failures, 8)
	})
}

// G6: steps that depend on the same endpoint share a circuit: when one opens it,
// the other is not run either, and when it closes both are.
func TestStepsShareACircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		var ran []string
		down := true
		asks := func(name string) agent.Agent {
			return does(t, name, func(ctx agent.InvocationContext, say say) error {
				if ran = append(ran, name); down {
					return errBroken
				}
				say(words("up"))
				return nil
			})
		}
		shared := loop.Circuit{Failures: 2, Cooldown: loop.Duration(25 * time.Second), Endpoint: "books"}
		root := loopOf(t, "l", 5, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.OnError = loop.SkipStep
			c.Rules.Steps = []loop.Step{{Name: "search", Circuit: new(shared)}, {Name: "fetch", Circuit: new(shared)}}
		}, asks("search"), does(t, "log", func(_ agent.InvocationContext, say say) error {
			time.Sleep(10 * time.Second)
			down = len(ran) < 2
			return nil
		}), asks("fetch"))
		mustPlay(t, root)
		// Open after the first iteration, for 25 s: tried in the fourth.
		check(t, "ran", ran, []string{"search", "fetch", "fetch", "search", "fetch"})
		check(t, "failures", rec.Failures, 7)
	})
}

// A circuit that is open is a failure, with a reason for people.
func TestOpenCircuitCanEndTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := loopOf(t, "l", 10, func(c *loopagent.Config) {
			c.Rules.OnError, c.Rules.MaxConsecutiveFailures = loop.SkipStep, 3
			c.Rules.Steps = []loop.Step{{Name: "probe", Circuit: &loop.Circuit{Failures: 1, Cooldown: loop.Duration(time.Hour)}}}
		}, fails(t, "probe", errBroken, errBroken), fails(t, "other", errBroken, errBroken))
		_, err := play(t, root)
		const want = `agent "probe" (l[2]/probe): not run: it failed 1 times running and is tried again after 1h`
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// When nothing but steps with open circuits is left to run, the loop waits.
func TestLoopWaitsForItsOnlyCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		root := loopOf(t, "l", 4, func(c *loopagent.Config) {
			c.Rules.OnError = loop.SkipStep
			c.Rules.Steps = []loop.Step{{Name: "probe", Circuit: &loop.Circuit{Failures: 2, Cooldown: loop.Duration(time.Hour)}}}
		}, fails(t, "probe", errBroken, errBroken))
		check(t, "events", mustPlay(t, root), []string{"probe: fine", "probe: fine"})
		check(t, "took", time.Since(start), time.Hour)
	})
}

// T20: a cancellation between two attempts ends the run.
func TestCancelBetweenAttempts(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var rec *loop.StopRecord
	runs := 0
	s := newStage(t, loopOf(t, "l", 1, again(&rec, "a", 3), does(t, "a", func(_ agent.InvocationContext, say say) error {
		runs++
		say(sets("", "key", runs))
		return errBroken
	})), true)
	var err error
	for ev, e := range s.Run(ctx, "ana", "s1", nil, agent.RunConfig{}) {
		if err = e; e == nil && ev.Mark == nil && ev.Actions.StateDelta["key"] == nil {
			cancel(errEnough) // the event that takes back
		}
	}
	if err != errEnough {
		t.Errorf("error %v", err)
	}
	check(t, "runs", runs, 1)
	check(t, "reason", rec.Reason, loop.ReasonCanceled)
	balanced(t, s.log(t))
}
