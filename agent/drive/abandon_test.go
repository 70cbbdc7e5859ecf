// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 22: a step that was left behind is told why what it writes has no effect; it sees
// the loops around it as they were, and reads the state as it is.
func TestAbandonedStepChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := session.NewView(session.ViewConfig{State: map[string]any{"key": "before"}})
		ctx, cancel := context.WithCancelCause(t.Context())
		inv := drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Session: view})
		heard := true
		var errs []error
		var seen []any
		a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
			early := ctx.Session().State()
			if err := early.Set("key", "in time"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
			errs = append(errs, early.Set("key", "late"), ctx.Session().State().Set("key", "late"), drive.At(ctx).State().Set("iteration:key", "late"))
			v, _ := drive.At(ctx).State().Get("key")
			seen = append(seen, v, drive.At(ctx).Loop().Iteration, drive.At(ctx).Loop().Outer.Iteration)
			heard = yield(says("late"), nil)
		})
		l := &drive.Loop{Name: "inner", IterationAddress: "inner[1]", Iteration: 1, Outer: &drive.Loop{Name: "outer", Iteration: 5}}
		step := drive.NewStep(inv, drive.StepConfig{Agent: a, Loop: l, Grace: 3 * time.Second})
		time.AfterFunc(time.Minute, func() { cancel(errBoom) })
		start := time.Now()
		res := step.Run(func(*session.Event) bool { t.Error("the consumer is told"); return true })
		if took := time.Since(start); !res.Abandoned || res.Err != errBoom || took != time.Minute+3*time.Second {
			t.Errorf("got %+v after %v", res, took)
		}
		l.Iteration, l.Outer.Iteration = 2, 6
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for i, err := range errs {
			if !errors.Is(err, errBoom) {
				t.Errorf("write %d: error %v", i+1, err)
			}
		}
		if diff := cmp.Diff([]any{"in time", 1, 5}, seen); diff != "" || heard {
			t.Errorf("seen, heard %v (-want +got):\n%s", heard, diff)
		}
		if v, err := view.State().Get("key"); v != "in time" || err != nil {
			t.Errorf("the state has %v, %v", v, err)
		}
	})
}

// watch runs an agent as a step with a grace of three seconds.
func watch(ctx context.Context, a agent.Agent, yield func(*session.Event) bool) drive.StepResult {
	inv := drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
	return drive.NewStep(inv, drive.StepConfig{Agent: a, Grace: 3 * time.Second}).Run(yield)
}

// LOOP 22: the time that the consumer takes is not the step's: one that does heed its
// context is not left behind because of it.
func TestGraceIsTheStepsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := false
		a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
			yield(says("one"), nil)
			time.Sleep(2 * time.Second)
			ended = true
		})
		res := watch(ctx, a, func(*session.Event) bool {
			cancel(errBoom)
			time.Sleep(time.Minute)
			return false
		})
		if res.Abandoned || res.ConsumerLeft || res.Err != errBoom || !ended {
			t.Errorf("got %+v", res)
		}
	})
}

// T19: an agent is told that nobody listens any more when its consumer panics or calls runtime.Goexit, and
// has its grace to end. The panic goes on in the consumer's goroutine.
func TestConsumerThatDoesNotComeBack(t *testing.T) {
	for name, leaves := range map[string]func(){"panics": func() { panic(errBoom) }, "exits": runtime.Goexit} {
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hangs %v", name, hangs), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var heard []bool
					a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
						heard = append(heard, yield(says("one"), nil), yield(says("two"), nil))
						if hangs {
							time.Sleep(time.Hour)
						}
					})
					start, done, goesOn := time.Now(), make(chan any), false
					go func() {
						defer func() { done <- recover() }()
						watch(t.Context(), a, func(*session.Event) bool { leaves(); return true })
						goesOn = true
					}()
					r := <-done
					if goesOn || (r == errBoom) != (name == "panics") {
						t.Errorf("the consumer goes on: %v, panic %v", goesOn, r)
					}
					want := time.Duration(0)
					if hangs {
						want = 3 * time.Second
					}
					if took := time.Since(start); took != want {
						t.Errorf("it took %v, want %v", took, want)
					}
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					if diff := cmp.Diff([]bool{false, false}, heard); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

// A step that was left behind still runs: to run it again is refused with an error.
func TestAbandonedStepCannotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		runs := 0
		a := custom(t, "a", func(agent.InvocationContext, yield) { runs++; time.Sleep(time.Hour) })
		inv := drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
		step := drive.NewStep(inv, drive.StepConfig{Agent: a, Grace: 3 * time.Second})
		time.AfterFunc(time.Minute, func() { cancel(errBoom) })
		hears := func(*session.Event) bool { t.Error("the consumer is told"); return true }
		if res := step.Run(hears); !res.Abandoned {
			t.Fatalf("got %+v", res)
		}
		res := step.Run(hears)
		if serr, ok := errors.AsType[*agent.StepError](res.Err); !ok || serr.Address != "a" || !strings.Contains(res.Err.Error(), "make a new step") {
			t.Errorf("again: %+v", res)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if runs != 1 {
			t.Errorf("the agent ran %d times", runs)
		}
	})
}

// An agent that leaves its goroutine locked to a thread, or ends it, does not disturb later runs of its step.
// The consumer stays in its own goroutine, through steps in each other.
func TestStepsOutliveTheirGoroutines(t *testing.T) {
	goroutine := func() string {
		name, _, _ := strings.Cut(string(debug.Stack()), "[")
		return name
	}
	for name, leave := range map[string]func(){"locked": runtime.LockOSThread, "ended": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			runs, me := 0, goroutine()
			inner := custom(t, "inner", func(_ agent.InvocationContext, yield yield) {
				if runs++; yield(says("word"), nil) {
					leave()
				}
			})
			outer := custom(t, "outer", func(ctx agent.InvocationContext, yield yield) {
				step, own := drive.NewStep(ctx, drive.StepConfig{Agent: inner, Grace: drive.Grace}), goroutine()
				for range 3 {
					step.Run(func(ev *session.Event) bool {
						if goroutine() != own {
							t.Error("the agent around it is called in another goroutine")
						}
						return yield(ev, nil)
					})
				}
			}, inner)
			said := 0
			res := watch(t.Context(), outer, func(*session.Event) bool {
				if said++; goroutine() != me {
					t.Error("the consumer is called in another goroutine")
				}
				runtime.LockOSThread()
				return true
			})
			if runs != 3 || said != 3 || res.Err != nil {
				t.Errorf("%d runs said %d words, want 3 and 3; %v", runs, said, res.Err)
			}
			for range said {
				runtime.UnlockOSThread()
			}
		})
	}
}

// LOOP 30: a pause waits for no step that was left behind.
func TestPauseWaitsForNoAbandonedStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBoom)
		defer cancel()
		pause := new(agent.Pause)
		cfg := agent.RunConfig{Pause: pause}
		ctx, over := drive.Pausable(t.Context(), &cfg)
		defer over()
		deaf := custom(t, "deaf", func(agent.InvocationContext, yield) { time.Sleep(time.Hour) })
		inv := drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{}), RunConfig: &cfg})
		line := custom(t, "line", func(ctx agent.InvocationContext, yield yield) {
			for ev, err := range deaf.Run(ctx) {
				yield(ev, err)
			}
		}, deaf)
		timed, stop := context.WithCancelCause(inv)
		defer stop(nil)
		context.AfterFunc(own, func() { stop(errBoom) })
		gone := errors.New("gone")
		res := drive.NewStep(inv, drive.StepConfig{Agent: line, Grace: 3 * time.Second}).
			RunAs(&drive.StepRun{Context: timed, TimeoutErr: errBoom, AbandonErr: gone}, func(*session.Event) bool { return true })
		if !res.Abandoned || res.Err != gone {
			t.Errorf("got %+v", res)
		}
		pause.Ask(agent.ErrPaused)
		if ctx.Err() == nil {
			t.Error("the pause waits")
		}
		time.Sleep(time.Hour)
	})
}
