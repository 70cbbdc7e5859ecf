// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// slow says that it needs six seconds to end after its context has.
type slow struct{ agent.Agent }

func (slow) Traits(bool) drive.Traits { return drive.Traits{EndsWithin: 6 * time.Second} }

// An agent that says how long it needs to end is not left behind before that, so that no other one begins beside it.
func TestAStepThatNeedsLongToEndIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var rec *loop.StopRecord
		start := time.Now()
		var ended []time.Duration
		step := slow{deaf(t, "slow", func(agent.InvocationContext, say) { ended = append(ended, time.Since(start)) }, 8*time.Second, 8*time.Second)}
		check(t, "grace of the runner", drive.GraceOf(step, true), 6*time.Second)
		_, err := play(t, loopOf(t, "l", 2, within(&rec, "slow", 3*time.Second), step))
		if err == nil || strings.Contains(err.Error(), "abandoned") {
			t.Errorf("it ended with %v", err)
		}
		check(t, "ended", ended, []time.Duration{8 * time.Second, 16 * time.Second})
	})
}

// deaf is an agent that needs so long, one after another, and does not heed its
// context; then it does what it likes.
func deaf(t testing.TB, name string, after func(agent.InvocationContext, say), times ...time.Duration) agent.Agent {
	var mu sync.Mutex // it may be left behind, and run again at the same time
	return does(t, name, func(ctx agent.InvocationContext, say say) error {
		mu.Lock()
		var d time.Duration
		if len(times) > 0 {
			d, times = times[0], times[1:]
		}
		mu.Unlock()
		time.Sleep(d)
		after(ctx, say)
		return nil
	})
}

// bubble is synctest.Test for a test that leaves steps behind: it ends when they
// have.
func bubble(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
	})
}

// LOOP 22: a step that does not heed its context is left behind; what it says
// later is dropped, and it works again in the next iteration.
func TestDeafStepIsAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var rec *loop.StopRecord
		var late bool
		heard := make(chan bool, 2)
		step := deaf(t, "deaf", func(_ agent.InvocationContext, say say) { heard <- say(sets("here", "key", "mine")) }, time.Hour)
		start := time.Now()
		root := loopOf(t, "l", 2, within(&rec, "deaf", 3*time.Second), step, says(t, "next", "x"))
		s := newStage(t, root, false)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, "events", lines(evs), []string{"next: x", "deaf: here", "next: x"})
		check(t, "took", time.Since(start), 5*time.Second) // with the two seconds of grace
		check(t, "timeouts", rec.Timeouts, 1)
		check(t, "heard", <-heard, true)
		late = <-heard // an hour later
		check(t, "heard when it was late", late, false)
		check(t, "log", lines(s.log(t)), []string{"next: x", "deaf: here", "next: x"})
	})
}

// AbandonAfter says how long the loop waits, and the error that it did.
func TestAbandonAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start := time.Now()
		root := loopOf(t, "l", 2, func(c *loopagent.Config) {
			c.Rules.OnError, c.AbandonAfter = loop.StopOnError, 10*time.Second
			c.Rules.Steps = []loop.Step{{Name: "deaf", Timeout: loop.Duration(3 * time.Second)}}
		}, deaf(t, "deaf", func(agent.InvocationContext, say) {}, time.Hour))
		_, err := play(t, root)
		check(t, "took", time.Since(start), 13*time.Second)
		check(t, "timeout", *timeoutOf(t, err), loopagent.TimeoutError{Kind: loop.Timeout, Step: "deaf", After: 3 * time.Second, Abandoned: true})
		check(t, "error", err.Error(), `agent "deaf" (l[1]/deaf): deaf took longer than 3s; it does not heed its context and was abandoned`)
	})
	// One that ends within the time of grace is not abandoned.
	bubble(t, func(t *testing.T) {
		start := time.Now()
		root := loopOf(t, "l", 2, func(c *loopagent.Config) {
			c.Rules.OnError = loop.StopOnError
			c.Rules.Steps = []loop.Step{{Name: "deaf", Timeout: loop.Duration(3 * time.Second)}}
		}, deaf(t, "deaf", func(agent.InvocationContext, say) {}, 4*time.Second))
		_, err := play(t, root)
		check(t, "took", time.Since(start), 4*time.Second)
		check(t, "abandoned", timeoutOf(t, err).Abandoned, false)
	})
}

// LOOP 22: whatever an abandoned step writes is without effect, by whatever way
// it writes; and it is told so.
func TestLateWritesHaveNoEffect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type result struct {
			name string
			err  error
		}
		results := make(chan []result, 1)
		var mu sync.Mutex
		begun := 0
		inner := does(t, "inner", func(ctx agent.InvocationContext, say say) error {
			mu.Lock()
			begun++
			first := begun == 1
			mu.Unlock()
			early, held := ctx.Session().State(), ctx.Session() // taken while it was allowed
			cb := agent.NewCallbackContext(ctx, nil)
			state, other := cb.State(), ctx.WithContext(context.WithoutCancel(ctx))
			if err := early.Set("temp:early", "set"); err != nil {
				t.Errorf("set in time: %v", err)
			}
			if !first {
				return nil
			}
			time.Sleep(time.Minute)
			writes := []result{
				{"a state that was held", early.Set("temp:a", 1)},
				{"a session that was held", held.State().Set("temp:b", 1)},
				{"the session", ctx.Session().State().Set("temp:c", 1)},
				{"a callback's state that was held", state.Set("temp:d", 1)},
				{"a callback's state", cb.State().Set("temp:e", 1)},
				{"StateOf", drive.At(ctx).State().Set("temp:f", 1)},
				{"another context", other.Session().State().Set("temp:g", 1)},
			}
			_, err := cb.Artifacts().Save(context.WithoutCancel(ctx), "report.txt", genai.NewPartFromText("late"))
			writes = append(writes, result{"an artifact", err})
			for range drive.Run(ctx.WithContext(context.WithoutCancel(ctx)), does(t, "child", func(ctx agent.InvocationContext, hand func(*session.Event) bool) error {
				writes = append(writes, result{"a step of its own", ctx.Session().State().Set("temp:h", 1)})
				hand(sets("x", "i", 1))
				return nil
			})) {
			}
			say(sets("x", "j", 1))
			if v, err := early.Get("temp:early"); v != "set" || err != nil {
				t.Errorf("it cannot read any more: %v, %v", v, err)
			}
			results <- writes
			return nil
		})
		var seen, files int
		root := loopOf(t, "outer", 1, nil,
			loopOf(t, "l", 2, func(c *loopagent.Config) {
				c.Rules.Steps = []loop.Step{{Name: "seq", Timeout: loop.Duration(time.Second)}}
			}, sequence(t, "seq", inner), takes(t, "rest", time.Hour)),
			does(t, "look", func(ctx agent.InvocationContext, _ say) error {
				for k := range ctx.Session().State().All() {
					if len(strings.TrimPrefix(k, session.KeyPrefixTemp)) == 1 {
						t.Errorf("the state has %q", k)
					}
					seen++
				}
				got, err := ctx.Artifacts().List(ctx)
				files = len(got.FileNames)
				return err
			}))
		s := newStageWith(t, root)
		if _, err := s.send(t, t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		for _, r := range <-results {
			if r.err == nil {
				t.Errorf("%s: no error", r.name)
				continue
			}
			if late := timeoutOf(t, r.err); late.Kind != loop.Timeout {
				t.Errorf("%s: error %v", r.name, r.err)
			}
		}
		if seen == 0 {
			t.Error("nothing was looked at")
		}
		check(t, "artifacts", files, 0)
	})
}

// What an abandoned step looks at does not change under its hands: this is for
// the race detector. It is in loops and branches whose contexts are used again.
func TestAbandonedStepSharesNothing(t *testing.T) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	runs := 0
	busy := does(t, "busy", func(ctx agent.InvocationContext, say say) error {
		mu.Lock()
		runs++
		kind := runs % 4
		mu.Unlock()
		if kind == 0 || kind == 3 {
			return nil
		}
		wg.Add(1)
		defer wg.Done()
		for {
			select {
			case <-over:
				return nil
			default:
			}
			for l := drive.At(ctx).Loop(); l != nil; l = l.Outer {
				_, _, _ = l.Iteration, l.IterationAddress, l.Score
			}
			ctx.Value(t)
			ctx.Deadline()
			runtime.Gosched()
			if kind == 1 { // nothing that takes a lock, which would hide a race
				continue
			}
			lookup := drive.At(ctx).Lookup
			for _, name := range []string{"iteration", "score", "best.score", "prev.a", "rejected.reason", "a", "user_input"} {
				lookup(name)
			}
			drive.At(ctx).Address()
			if ctx.Err() != nil {
				_ = context.Cause(ctx).Error()
			}
			_ = drive.At(ctx).State().Set("a", 1)
			drive.At(ctx).Budget().Used()
			ctx.Session().Events().Len()
			for range drive.Run(ctx, says(t, "child", "x")) {
			}
			say(words("late"))
		}
	})
	keep := func(c *loopagent.Config) { c.Rules.Score, c.KeepStates = &loop.Score{Key: "score"}, true }
	inner := loopOf(t, "inner", 2, func(c *loopagent.Config) {
		keep(c)
		c.AbandonAfter = time.Millisecond
		c.Rules.Steps = []loop.Step{{Name: "busy", Timeout: loop.Duration(time.Millisecond)}}
	}, busy, drafts(t, "w", "score", 3, 2, 1))
	for _, root := range []agent.Agent{
		loopOf(t, "outer", 3, keep, inner, says(t, "after", "y")),
		loopOf(t, "outer", 3, keep, sequence(t, "seq", parallel(t, "par", inner, says(t, "other", "x")), says(t, "after", "y"))),
	} {
		for _, durable := range []bool{false, true} {
			evs, err := newStage(t, root, durable).send(t, t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, evs)
		}
	}
	close(over)
	wg.Wait()
}

// In a durable run the marks of an abandoned step, and of those in it, are
// written in its place.
func TestMarksOfAnAbandonedStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var rec *loop.StopRecord
		slow := sequence(t, "seq", says(t, "quick", "x"), parallel(t, "par", deaf(t, "deaf", func(agent.InvocationContext, say) {}, time.Hour)))
		s := newStage(t, loopOf(t, "l", 1, within(&rec, "seq", time.Second), slow, says(t, "next", "y")), true)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, evs)
		var finished []string
		for _, ev := range s.log(t) {
			if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished {
				continue
			}
			var f mark.StepFinished
			if err := ev.Mark.Decode(&f); err != nil {
				t.Fatal(err)
			}
			if ev.InvocationID == "" || ev.Author != ev.Address.Agent() || ev.Attempt != 1 {
				t.Errorf("event %+v", ev)
			}
			line := string(ev.Address)
			if f.Error != "" {
				line += ": " + f.Error
				check(t, line+" is a timeout", f.Timeout, true)
				check(t, line+" seconds", f.Seconds, 3.0)
			}
			finished = append(finished, line)
		}
		const late = "seq took longer than 1s"
		check(t, "finished", finished, []string{
			"l[1]/seq/quick", "l[1]/seq/par/deaf: " + late + "; deaf does not heed its context and was abandoned",
			"l[1]/seq/par: " + late, "l[1]/seq: " + late, "l[1]/next", "l",
		})
	})
}

// T19, T20: whoever cancels, leaves or panics does not wait for a deaf step longer
// than AbandonAfter.
func TestDeafStepDoesNotHoldUpTheConsumer(t *testing.T) {
	tell := func(t *testing.T) agent.Agent {
		return loopOf(t, "l", 2, func(c *loopagent.Config) {
			c.Rules.Steps = []loop.Step{{Name: "deaf", Timeout: loop.Duration(time.Minute)}}
		}, does(t, "deaf", func(_ agent.InvocationContext, say say) error {
			say(words("x"))
			time.Sleep(time.Hour)
			say(words("late"))
			return nil
		}))
	}
	bubble(t, func(t *testing.T) { // nor at all for one that ends when it is told to
		start := time.Now()
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
			check(t, "took", time.Since(start), time.Duration(0))
		}()
		root := loopOf(t, "l", 2, func(c *loopagent.Config) { c.Rules.Timeout = loop.Duration(time.Minute) }, says(t, "a", "x", "y"))
		for range newStage(t, root, false).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
			panic("mine")
		}
	})
	for _, durable := range []bool{false, true} {
		bubble(t, func(t *testing.T) { // cancels
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errEnough) })
			start := time.Now()
			s := newStage(t, tell(t), durable)
			evs, err := s.send(t, ctx, "go")
			if err != errEnough {
				t.Errorf("error %v", err)
			}
			check(t, "took", time.Since(start), 3*time.Second)
			balanced(t, evs)
		})
		bubble(t, func(t *testing.T) { // leaves
			start := time.Now()
			for ev := range newStage(t, tell(t), durable).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
				if ev.Mark == nil {
					break
				}
			}
			check(t, "took", time.Since(start), 2*time.Second)
		})
		bubble(t, func(t *testing.T) { // panics
			start := time.Now()
			func() {
				defer func() {
					if r := recover(); r != "mine" {
						t.Errorf("recovered %v", r)
					}
				}()
				for ev := range newStage(t, tell(t), durable).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
					if ev.Mark == nil {
						panic("mine")
					}
				}
			}()
			check(t, "took", time.Since(start), 2*time.Second)
		})
	}
}

// An agent that leaves its goroutine has failed.
func TestTimedStepThatLeavesItsGoroutine(t *testing.T) {
	var rec *loop.StopRecord
	_, err := play(t, loopOf(t, "l", 2, within(&rec, "a", time.Minute), does(t, "a", func(agent.InvocationContext, say) error {
		runtime.Goexit()
		return nil
	})))
	const want = `agent "a" (l[1]/a): the agent ended its goroutine by runtime.Goexit; it must return instead`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
