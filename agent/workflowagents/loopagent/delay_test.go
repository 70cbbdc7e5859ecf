// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

// clock is an agent that notes when it ran, and needs so long.
func clock(t testing.TB, name string, at *[]string, start *time.Time, d time.Duration) agent.Agent {
	return does(t, name, func(agent.InvocationContext, say) error {
		*at = append(*at, fmt.Sprint(name, " ", time.Since(*start)))
		time.Sleep(d)
		return nil
	})
}

// A21, C14: delays before and after steps and iterations. There is none after
// the last step of all.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		var at []string
		start := time.Now()
		root := loopOf(t, "l", 2, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.DelayBefore, c.Rules.DelayAfter = loop.Duration(1000*time.Second), loop.Duration(2000*time.Second)
			c.Rules.Steps = []loop.Step{
				{Name: "a", DelayBefore: loop.Duration(10 * time.Second), DelayAfter: loop.Duration(20 * time.Second)},
				{Name: "b", DelayAfter: loop.Duration(300 * time.Second)},
			}
		}, clock(t, "a", &at, &start, time.Second), clock(t, "b", &at, &start, time.Second))
		mustPlay(t, root)
		check(t, "times", at, []string{
			"a 16m50s", // 1000 + 10
			"b 17m11s", // a second of a, and 20
			"a 1h12m22s",
			"b 1h12m43s",
		})
		check(t, "took", time.Since(start), (2*(1000+10+1+20+1)+300+2000)*time.Second)
		check(t, "elapsed", rec.Elapsed, time.Since(start))
	})
}

// T20: a cancellation during a delay ends it at once.
func TestCancelDuringADelay(t *testing.T) {
	for _, more := range []func(*loopagent.Config){
		func(c *loopagent.Config) { c.Rules.DelayBefore = loop.Duration(time.Hour) },
		func(c *loopagent.Config) { c.Rules.DelayAfter = loop.Duration(time.Hour) },
		func(c *loopagent.Config) {
			c.Rules.Steps = []loop.Step{{Name: "b", DelayBefore: loop.Duration(time.Hour)}}
		},
		func(c *loopagent.Config) {
			c.Rules.Steps = []loop.Step{{Name: "a", DelayAfter: loop.Duration(time.Hour)}}
		},
		func(c *loopagent.Config) {
			c.Rules.Steps = []loop.Step{{Name: "fail", Retry: &loop.Retry{Attempts: 2, Backoff: loop.Duration(time.Hour)}}}
		},
	} {
		for _, durable := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var rec *loop.StopRecord
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(errEnough) })
				start := time.Now()
				s := newStage(t, loopOf(t, "l", 2, func(c *loopagent.Config) {
					into(&rec)(c)
					c.Rules.OnError = loop.SkipStep
					more(c)
				}, says(t, "a"), says(t, "b"), fails(t, "fail", errBroken, errBroken, errBroken, errBroken)), durable)
				evs, err := s.send(t, ctx, "go")
				if err != errEnough {
					t.Errorf("error %v", err)
				}
				check(t, "took", time.Since(start), time.Minute)
				check(t, "reason", rec.Reason, loop.ReasonCanceled)
				balanced(t, evs)
			})
		}
	}
}

// A21, LOOP 21: a delay counts for the total time and for that of the iteration,
// and not for the step's own.
func TestDelaysCountAgainstTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec *loop.StopRecord
		start := time.Now()
		mustPlay(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.Timeout, c.Rules.DelayBefore = loop.Duration(25*time.Second), loop.Duration(10*time.Second)
		}, takes(t, "a", time.Second, time.Second, time.Second)))
		check(t, "took", time.Since(start), 25*time.Second)
		check(t, "reason", rec.Reason, loop.ReasonTimeout)
		check(t, "detail", rec.Detail, `agent "a" (l[3]/a): the loop's time was over before a began`)
		check(t, "complete", rec.Iterations, 2)
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		check(t, "events", mustPlay(t, loopOf(t, "l", 2, func(c *loopagent.Config) {
			c.Rules.IterationTimeout = loop.Duration(10 * time.Second)
			c.Rules.Steps = []loop.Step{{Name: "a", DelayBefore: loop.Duration(8 * time.Second), Timeout: loop.Duration(5 * time.Second)}}
		}, takes(t, "a", 4*time.Second, time.Second), says(t, "b", "x"))), []string{"a: done", "b: x"})
		check(t, "took", time.Since(start), 19*time.Second)
	})
}

// The finalizer does not wait, and neither does it after a delay that the limit
// cut short.
func TestNoDelayBeforeTheFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		root := loopOf(t, "l", 1, func(c *loopagent.Config) {
			finalizeWith(c, "final")
			c.Rules.DelayAfter = loop.Duration(time.Hour)
		}, says(t, "a", "x"), says(t, "final", "the end"))
		check(t, "events", mustPlay(t, root), []string{"a: x", "final: the end"})
		check(t, "took", time.Since(start), time.Duration(0))
	})
}
