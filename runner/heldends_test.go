// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// computing is an agent that only computes, by its own account.
func computing(t testing.TB, name string, run func(agent.InvocationContext, yield)) agent.Agent {
	t.Helper()
	a := new(computes)
	base, err := drive.NewBase(agent.Config{Name: name}, a, func(ctx agent.InvocationContext, y func(*session.Event, error) bool) { run(ctx, y) })
	if err != nil {
		t.Fatal(err)
	}
	a.Base = base
	return a
}

// rounds is how many iterations the runs here make.
const rounds = 4

// course is a loop of steps that compute, and of one that speaks. In the second iteration one
// of those that compute does what a test says; by then the run holds events.
func course(t testing.TB, cfg loopagent.Config, meanwhile func(agent.InvocationContext)) agent.Agent {
	t.Helper()
	cfg.MaxIterations = rounds
	middle := computing(t, "middle", func(ctx agent.InvocationContext, yield yield) {
		if meanwhile != nil && drive.At(ctx).Loop().Iteration == 2 {
			meanwhile(ctx)
		}
		yield(sets("middle", drive.At(ctx).Loop().Iteration), nil)
	})
	return cycle(t, cfg, "loop", setter(t, "a", "iteration"), middle, setter(t, "b", "state.a + 1"), speaker(t, "say", "words"), setter(t, "c", "state.b + 1"))
}

// through takes what a run yields to its end.
func through(seq iter.Seq2[*session.Event, error]) (shown []*session.Event, err error) {
	for ev, e := range seq {
		if err = e; ev != nil && !ev.Partial {
			shown = append(shown, ev)
		}
	}
	return shown, err
}

func begin(ctx context.Context, t testing.TB, svc session.Service, root agent.Agent, cfg agent.RunConfig) iter.Seq2[*session.Event, error] {
	t.Helper()
	return newRunner(t, durable(root, svc)).Run(ctx, "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg)
}

// checkCourse demands that the events that were shown are in the log, that the run can be
// resumed, and that it comes to what the course comes to.
func checkCourse(t testing.TB, svc session.Service, shown []*session.Event, opts ...runner.ResumeOption) {
	t.Helper()
	checkShown(t, svc, shown)
	id := logOf(t, svc)[0].InvocationID
	shown, err := through(newRunner(t, durable(course(t, loopagent.Config{}, nil), svc)).Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}, opts...))
	if err != nil && !strings.Contains(err.Error(), "the run has ended: there is nothing to resume") {
		t.Fatal(err)
	}
	checkShown(t, svc, shown)
	checkCame(t, svc)
}

// checkCame demands that the log has what the course comes to.
func checkCame(t testing.TB, svc session.Service) {
	t.Helper()
	view := get(t, svc).(*session.View)
	finished, said := 0, 0
	for ev := range view.Events().All() {
		switch {
		case ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished:
			finished++
		case ev.Text() == "words":
			said++
		}
	}
	if finished != rounds || said != rounds {
		t.Errorf("%d iterations finished, and %d times words were said, want %d", finished, said, rounds)
	}
	for key, want := range map[string]any{"a": rounds, "middle": rounds, "b": rounds + 1, "c": rounds + 2} {
		if got, err := view.State().Get(key); fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
			t.Errorf("%s is %v, want %v (%v)", key, got, want, err)
		}
	}
}

// checkHolds demands that a run holds events.
func checkHolds(t testing.TB, svc session.Service, ctx agent.InvocationContext) {
	t.Helper()
	if has, stored := session.ViewBehind(ctx.Session()).LastSeq(), len(logOf(t, svc)); has <= int64(stored) {
		t.Errorf("the run has %d events, and the store %d: none is held", has, stored)
	}
}

// E4: while a run holds events another process takes its session over, and brings the run to
// its end. The first one stores and shows nothing any more.
func TestLeaseLostWhileEventsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWired()
		made, err := w.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		leaser, key := w.Service.(lease.Leaser), lease.KeyOf(made.Session)
		held, err := leaser.Acquire(t.Context(), key, "first", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var log int
		var first, second []*session.Event
		root := course(t, loopagent.Config{}, func(ctx agent.InvocationContext) {
			checkHolds(t, w, ctx)
			by, err := leaser.Holder(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			taken, err := leaser.TakeOver(t.Context(), by, "second", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, durable(course(t, loopagent.Config{}, nil), w))
			if second, err = through(r.Resume(lease.With(t.Context(), taken), "ana", "s1", ctx.InvocationID(), agent.RunConfig{})); err != nil {
				t.Errorf("the second: %v", err)
			}
			log = len(logOf(t, w))
		})
		first, err = through(begin(lease.With(t.Context(), held), t, w, root, agent.RunConfig{}))
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("the first ends with %v", err)
		}
		if n := len(logOf(t, w)); n != log {
			t.Errorf("the log has %d events, and when the second was at its end it had %d", n, log)
		}
		checkShown(t, w, first)
		checkShown(t, w, second)
		checkCame(t, w)
	})
}

// E4: the log of a run that another process has written to is that process's.
func TestConflictWhileEventsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWired()
		log := 0
		root := course(t, loopagent.Config{}, func(ctx agent.InvocationContext) {
			checkHolds(t, w, ctx)
			if err := w.Service.AppendEvent(t.Context(), get(t, w), says("me too")); err != nil {
				t.Fatal(err)
			}
			log = len(logOf(t, w))
		})
		shown, err := through(begin(t.Context(), t, w, root, agent.RunConfig{}))
		if n := len(logOf(t, w)); !errors.Is(err, session.ErrConflict) || n != log {
			t.Errorf("the log has %d events, want %d; the run ends with %v", n, log, err)
		}
		checkCourse(t, w, shown)
	})
}

// E4: events of any size come out of the store as they were shown. No large one is held.
func TestLargeEventsAmongHeldOnes(t *testing.T) {
	const most = 64 << 10
	dice := rand.New(rand.NewPCG(1, 9))
	svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Config{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	w := &wired{Service: svc}
	w.commit = func(_ int, evs []*session.Event, do func() error) error {
		for _, ev := range evs[:len(evs)-1] {
			if data, err := ev.AppendCanonical(nil); err != nil || len(data) > most+most/8 {
				t.Errorf("event %d is held, and has %d bytes (%v)", ev.Seq, len(data), err)
			}
		}
		return do()
	}
	sizes := []int{0, 1, most / 2, most - 1, most, most + 1, 3 * most, 10 * most}
	big := func(name string, event func(string) *session.Event) agent.Agent {
		return computing(t, name, func(_ agent.InvocationContext, yield yield) {
			yield(event(strings.Repeat("x", sizes[dice.IntN(len(sizes))])), nil)
		})
	}
	root := cycle(t, loopagent.Config{MaxIterations: 15, Rules: loop.Plan{StopWhen: &loop.Condition{Expr: `state.texts == "never"`}}}, "loop",
		setter(t, "a", "iteration"), big("says", func(s string) *session.Event { return says("w" + s) }),
		big("texts", func(s string) *session.Event { return sets("texts", s) }),
		big("deep", func(s string) *session.Event { return sets("deep", map[string]any{"list": []any{s, 1.0}}) }))
	shown, err := through(begin(t.Context(), t, w, root, agent.RunConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	checkShown(t, w, shown)
	if n := len(logOf(t, w)); n != len(shown)+1 {
		t.Errorf("%d events were shown, and the log has %d", len(shown)+1, n)
	}
}

// G8: what ends its goroutine ends the run, wherever that is while events are held: nobody waits
// for ever, and the run can be resumed.
func TestGoexitWhileEventsAreHeld(t *testing.T) {
	leaves := func(ctx agent.InvocationContext) { runtime.Goexit() }
	failed := []runner.ResumeOption{runner.Continue()}
	for name, tt := range map[string]struct {
		cfg       loopagent.Config
		meanwhile func(agent.InvocationContext)
		consumer  int // leaves at that event
		opts      []runner.ResumeOption
	}{
		"a step that computes": {meanwhile: leaves, opts: failed},
		"a step of a loop with a timeout": {
			cfg: loopagent.Config{Rules: loop.Plan{Steps: []loop.Step{{Name: "middle", Timeout: loop.Duration(time.Hour)}}}}, meanwhile: leaves, opts: failed,
		},
		"a callback before an iteration": {cfg: loopagent.Config{BeforeIteration: []loopagent.BeforeIterationCallback{
			func(_ agent.Context, n int) error {
				if n == 2 {
					runtime.Goexit()
				}
				return nil
			},
		}}, opts: failed},
		"the consumer": {consumer: 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWired()
			var shown []*session.Event
			var err error
			over, came := make(chan struct{}), false
			go func() {
				defer close(over)
				for ev, e := range begin(t.Context(), t, w, course(t, tt.cfg, tt.meanwhile), agent.RunConfig{}) {
					if err = e; ev != nil {
						shown = append(shown, ev)
					}
					if len(shown) == tt.consumer {
						runtime.Goexit()
					}
				}
				came = true
			}()
			<-over
			if came != (tt.consumer == 0) || came && err == nil {
				t.Errorf("the consumer came to the end: %t, with %v", came, err)
			}
			if n := len(logOf(t, w)); n != len(shown)+1 && came {
				t.Errorf("%d events were shown, and the log has %d", len(shown)+1, n)
			}
			checkCourse(t, w, shown, tt.opts...)
		})
	}
}

// A run may end while it holds events, as that of a step that only computes does.
func TestHeldEventsAreStoredAtTheEnd(t *testing.T) {
	w := newWired()
	shown, err := through(begin(t.Context(), t, w, setter(t, "a", "1"), agent.RunConfig{}))
	if err != nil || len(shown) != 3 || w.n != 2 {
		t.Errorf("%d events were shown, by %d commits (%v)", len(shown), w.n, err)
	}
	checkShown(t, w, shown)
}

// T20, LOOP 22: a step is left behind while the run goes on, and speaks while the run holds
// events of later steps. Nobody hears it, and the attempt after it counts.
func TestLateWordsWhileEventsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWired()
		speak, spoke := make(chan struct{}), make(chan bool, 1)
		attempts := 0
		deaf := custom(t, "deaf", func(ctx agent.InvocationContext, yield yield) {
			if attempts++; attempts > 1 {
				yield(sets("deaf", attempts), nil)
				return
			}
			yield(says("on time"), nil)
			<-speak
			err := drive.At(ctx).State().Set("deaf", "late")
			spoke <- yield(sets("deaf", "late"), nil) || err == nil
		})
		late := computing(t, "late", func(ctx agent.InvocationContext, yield yield) {
			checkHolds(t, w, ctx)
			close(speak)
			if <-spoke {
				t.Error("what is left behind can still write")
			}
			yield(sets("late", true), nil)
		})
		root := cycle(t, loopagent.Config{
			MaxIterations: 1, AbandonAfter: time.Second,
			Rules: loop.Plan{Steps: []loop.Step{{Name: "deaf", Timeout: loop.Duration(time.Second), Retry: &loop.Retry{Attempts: 2}}}},
		}, "loop", deaf, setter(t, "a", "iteration"), setter(t, "b", "iteration"), late)
		shown, err := through(begin(t.Context(), t, w, root, agent.RunConfig{}))
		if err != nil {
			t.Fatal(err)
		}
		checkShown(t, w, shown)
		if got, err := get(t, w).State().Get("deaf"); fmt.Sprint(got) != "2" || err != nil {
			t.Errorf("deaf is %v, want 2 (%v)", got, err)
		}
		for _, ev := range logOf(t, w) {
			if ev.Actions.StateDelta["deaf"] == "late" {
				t.Errorf("event %d is what it said too late", ev.Seq)
			}
		}
	})
}

// G8: a consumer may leave behind each event. What he has seen is in the log, and the run can
// be resumed.
func TestConsumerLeavesAnywhere(t *testing.T) {
	for n := 1; ; n++ {
		w := newWired()
		var shown []*session.Event
		for ev, err := range begin(t.Context(), t, w, course(t, loopagent.Config{}, nil), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			if shown = append(shown, ev); len(shown) == n {
				break
			}
		}
		checkCourse(t, w, shown)
		if t.Failed() || len(shown) < n {
			return
		}
	}
}

// T20: a run is canceled while each of its commits is under way. The commit comes to its
// end, and what it has stored is shown.
func TestCanceledWhileACommitIsUnderWay(t *testing.T) {
	for at := 1; ; at++ {
		w := newWired()
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		w.commit = func(n int, _ []*session.Event, do func() error) error {
			if n == at {
				cancel(why)
			}
			return do()
		}
		shown, err := through(begin(ctx, t, w, course(t, loopagent.Config{}, nil), agent.RunConfig{}))
		if w.n < at {
			return
		}
		if err != nil && !errors.Is(err, why) {
			t.Errorf("canceled at commit %d, the run ends with %v", at, err)
		}
		if n := len(logOf(t, w)); n != len(shown)+1 {
			t.Errorf("canceled at commit %d: %d events were shown, and the log has %d", at, len(shown)+1, n)
		}
		w.commit = nil
		checkCourse(t, w, shown)
		if t.Failed() {
			return
		}
	}
}

// G8: a commit fails: once, or from then on. Nothing of it is shown, the run ends with the error,
// and can be resumed when the store is well again.
func TestEachCommitThatFails(t *testing.T) {
	broken := errors.New("no space left on device")
	for at := 2; ; at++ { // the first is the message
		for _, once := range []bool{true, false} {
			w := newWired()
			failed := make(map[*session.Event]bool)
			w.commit = func(n int, evs []*session.Event, do func() error) error {
				if n == at || n > at && !once {
					for _, ev := range evs {
						failed[ev] = true
					}
					return broken
				}
				return do()
			}
			shown, err := through(begin(t.Context(), t, w, course(t, loopagent.Config{}, nil), agent.RunConfig{}))
			if w.n < at {
				return
			}
			if _, ok := errors.AsType[*agent.LogError](err); !errors.Is(err, broken) || !ok {
				t.Errorf("commit %d fails, and the run ends with %v", at, err)
			}
			for _, ev := range shown {
				if failed[ev] {
					t.Errorf("commit %d fails, and its event %d is shown", at, ev.Seq)
				}
			}
			w.commit = nil
			checkCourse(t, w, shown)
			if t.Failed() {
				t.Fatalf("commit %d, once %t:\n%s", at, once, strings.Join(brief(logOf(t, w)), "\n"))
			}
		}
	}
}

// G8: a run is paused while it holds events. When it has ended they are in the log.
func TestPausedWhileEventsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWired()
		pause := new(agent.Pause)
		root := course(t, loopagent.Config{}, func(ctx agent.InvocationContext) {
			checkHolds(t, w, ctx)
			pause.Ask(agent.ErrPaused)
		})
		shown, err := through(begin(t.Context(), t, w, root, agent.RunConfig{Pause: pause}))
		if n := len(logOf(t, w)); !errors.Is(err, agent.ErrPaused) || n != len(shown)+1 {
			t.Errorf("%d events were shown, the log has %d, and the run ends with %v", len(shown)+1, n, err)
		}
		if got, err := get(t, w).State().Get("middle"); fmt.Sprint(got) != "2" || err != nil {
			t.Errorf("the step under way has set %v, want 2 (%v)", got, err)
		}
		checkCourse(t, w, shown)
	})
}
