// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// commits is a store in which each append is a commit. It counts them.
type commits struct {
	session.Service
	n      int
	events []int // how many each had
	fails  error // of the next ones
}

// inBubble runs a subtest in which work takes no time: where it takes long, events are held for
// less, and there are more commits.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func newCommits() *commits { return &commits{Service: session.InMemoryService()} }

func (c *commits) Commits() bool { return true }

func (c *commits) AppendEvent(ctx context.Context, to session.Session, ev *session.Event) error {
	if c.fails != nil {
		return c.fails
	}
	if !ev.Partial {
		c.n, c.events = c.n+1, append(c.events, 1)
	}
	return c.Service.AppendEvent(ctx, to, ev)
}

func (c *commits) AppendEvents(ctx context.Context, to session.Session, evs []*session.Event) error {
	if c.fails != nil {
		return c.fails
	}
	c.n, c.events = c.n+1, append(c.events, len(evs))
	return c.Service.(store.BulkAppender).AppendEvents(ctx, to, evs)
}

// seen is how many events the store has.
func (c *commits) seen(t testing.TB) int64 {
	t.Helper()
	return int64(get(t, c).(*session.View).Log().Len())
}

// setter is a step that only computes.
func setter(t testing.TB, name, expression string, before ...agent.BeforeAgentCallback) agent.Agent {
	t.Helper()
	a, err := taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: name, BeforeAgentCallbacks: before}, Set: map[string]string{name: expression},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func cycle(t testing.TB, cfg loopagent.Config, name string, steps ...agent.Agent) agent.Agent {
	t.Helper()
	cfg.AgentConfig = agent.Config{Name: name, SubAgents: steps}
	a, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// runAll runs a tree, and demands that every event is in the store when it is shown.
func runAll(t testing.TB, c *commits, root agent.Agent) error {
	t.Helper()
	var seq int64
	for ev, err := range newRunner(t, durable(root, c)).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return err
		}
		if seq++; ev.Seq != seq+1 { // the first is the message
			t.Fatalf("event %d is shown, want %d", ev.Seq, seq+1)
		}
		if n := c.seen(t); n < ev.Seq {
			t.Fatalf("event %d is shown, and the store has %d", ev.Seq, n)
		}
	}
	if n := c.seen(t); n != seq+1 {
		t.Errorf("%d events were shown, and the store has %d", seq+1, n)
	}
	return nil
}

// A loop of steps that only compute takes at most two commits an iteration, however many
// there are; steps that do something take two each: what they said, and their end with the
// next start.
func TestCommitsOfAnIteration(t *testing.T) {
	const iterations = 100
	for _, tt := range []struct {
		name  string
		cfg   loopagent.Config
		steps func() []agent.Agent
		most  float64 // an iteration
		least float64
	}{
		{"two that compute", loopagent.Config{}, func() []agent.Agent {
			return []agent.Agent{setter(t, "a", "iteration"), setter(t, "b", "state.a + 1")}
		}, 2, 0},
		{"two that speak", loopagent.Config{}, func() []agent.Agent {
			return []agent.Agent{speaker(t, "a", "one"), speaker(t, "b", "two")}
		}, 4, 4},
		{"one that computes and calls back", loopagent.Config{}, func() []agent.Agent {
			return []agent.Agent{setter(t, "a", "iteration", func(agent.CallbackContext) (*genai.Content, error) { return nil, nil })}
		}, 2, 2},
		{"with a callback between iterations", loopagent.Config{
			AfterIteration: []loopagent.AfterIterationCallback{func(agent.Context, loop.IterationRecord) error { return nil }},
		}, func() []agent.Agent { return []agent.Agent{speaker(t, "a", "one")} }, 4, 4},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			c := newCommits()
			tt.cfg.MaxIterations = iterations
			if err := runAll(t, c, cycle(t, tt.cfg, "loop", tt.steps()...)); err != nil {
				t.Fatal(err)
			}
			const around = 6 // the beginning and the end of the run
			if most := int(tt.most*iterations) + around; c.n > most {
				t.Errorf("%d commits for %d iterations, want at most %d", c.n, iterations, most)
			}
			if least := int(tt.least * iterations); c.n < least {
				t.Errorf("%d commits for %d iterations, want at least %d", c.n, iterations, least)
			}
			if n := slices.Max(c.events); n > 65 {
				t.Errorf("%d events in one commit", n)
			}
		})
	}
}

// When a step begins that can have an effect, all that came before is in the store; and when
// an agent goes on behind an event that it has handed on, that event is.
func TestNothingIsHeldAcrossAnEffect(t *testing.T) {
	c := newCommits()
	var starts int
	acts := func(name string) agent.Agent {
		return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
			starts++
			view := session.ViewBehind(ctx.Session())
			if n := c.seen(t); n != view.LastSeq() {
				t.Errorf("%s begins when the run has %d events and the store %d", name, view.LastSeq(), n)
			}
			ev := says(name)
			if !yield(ev, nil) {
				return
			}
			if n := c.seen(t); n != ev.Seq {
				t.Errorf("%s goes on behind event %d, and the store has %d", name, ev.Seq, n)
			}
		})
	}
	inner := cycle(t, loopagent.Config{MaxIterations: 3}, "inner", setter(t, "a", "iteration"), acts("b"), setter(t, "c", "1"))
	own := custom(t, "own", func(ctx agent.InvocationContext, yield yield) {
		for ev, err := range drive.Run(ctx, inner) {
			if !yield(ev, err) || err != nil {
				return
			}
			if n := c.seen(t); n != ev.Seq && ev.Seq != 0 {
				t.Errorf("an agent that runs a loop goes on behind event %d (%s), and the store has %d", ev.Seq, kindOf(ev), n)
			}
		}
		if n := c.seen(t); n != session.ViewBehind(ctx.Session()).LastSeq() {
			t.Errorf("an agent goes on behind a loop, and the store has %d events", n)
		}
	})
	root := cycle(t, loopagent.Config{MaxIterations: 2}, "outer", setter(t, "x", "iteration"), own, acts("d"), setter(t, "z", "1"))
	if err := runAll(t, c, root); err != nil {
		t.Fatal(err)
	}
	if starts != 2*3+2 {
		t.Errorf("%d steps began that look, want %d", starts, 2*3+2)
	}
}

// computes is an agent that only computes, and runs what a test gives it.
type computes struct{ *drive.Base }

func (computes) Traits(bool) drive.Traits { return drive.Traits{ComputesOnly: true} }

// The end of a step that does more than compute is in the store before the next step computes: a
// process that dies then would make the step again.
func TestTheEndOfAnEffectIsNotHeldWhileAStepComputes(t *testing.T) {
	c := newCommits()
	looks := computes{}
	var err error
	looks.Base, err = drive.NewBase(agent.Config{Name: "looks"}, &looks, func(ctx agent.InvocationContext, _ func(*session.Event, error) bool) {
		if log, n := stepEnds(t, c), drive.At(ctx).Loop().Iteration; log["silent"] != n || log["loud"] != n {
			t.Errorf("in iteration %d the store has these ends: %v", n, log)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	silent := custom(t, "silent", func(agent.InvocationContext, yield) {})
	inner := cycle(t, loopagent.Config{MaxIterations: 1}, "inner", silent, setter(t, "a", "1"))
	root := cycle(t, loopagent.Config{MaxIterations: 3}, "loop", inner, speaker(t, "loud", "words"), &looks)
	if err := runAll(t, c, root); err != nil {
		t.Fatal(err)
	}
}

// Nor is it held while the key of a cache is asked for.
func TestTheEndOfAnEffectIsNotHeldWhileACacheAsks(t *testing.T) {
	c := newCommits()
	asked := 0
	key := func(func(string) (any, bool)) (string, error) {
		if asked++; stepEnds(t, c)["loud"] != asked {
			t.Errorf("when the key is asked for the %d. time, the store has these ends: %v", asked, stepEnds(t, c))
		}
		return fmt.Sprint(asked), nil
	}
	root := cycle(t, loopagent.Config{
		MaxIterations: 3, Caches: map[string]loopagent.Cache{"a": {Key: key}},
	}, "loop", speaker(t, "loud", "words"), setter(t, "a", "1"))
	if err := runAll(t, c, root); err != nil {
		t.Fatal(err)
	}
	if asked != 3 {
		t.Errorf("the key was asked for %d times, want 3", asked)
	}
}

// A step in a branch waits where the run is to be paused, until those beside it have ended. The
// end of the step before it is in the store by then.
func TestTheEndOfAnEffectIsNotHeldWhileAPauseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCommits()
		asked := make(chan struct{})
		pause := new(agent.Pause)
		silent := custom(t, "silent", func(agent.InvocationContext, yield) {
			pause.Ask(agent.ErrPaused)
			close(asked)
		})
		long := custom(t, "long", func(agent.InvocationContext, yield) {
			<-asked
			synctest.Wait()
			if n := stepEnds(t, c)["silent"]; n != 1 {
				t.Errorf("%d ends of the step are in the store while the run waits to be paused, want 1", n)
			}
		})
		root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "branches", SubAgents: []agent.Agent{
			cycle(t, loopagent.Config{MaxIterations: 2}, "loop", silent, setter(t, "a", "1")), long,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range newRunner(t, durable(root, c)).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{Pause: pause}) {
		}
		if !errors.Is(err, agent.ErrPaused) {
			t.Errorf("the run ended with %v", err)
		}
	})
}

// stepEnds counts the steps that have ended in the store, by agent.
func stepEnds(t testing.TB, c *commits) map[string]int {
	t.Helper()
	log := make(map[string]int)
	for ev := range get(t, c).(*session.View).Log().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
			log[ev.Address.Agent()]++
		}
	}
	return log
}

// What could not be stored ends the run with the error. The run can be resumed from what was.
func TestHeldEventsThatCannotBeStored(t *testing.T) {
	c := newCommits()
	broken := errors.New("no space left")
	root := func() agent.Agent {
		return cycle(t, loopagent.Config{MaxIterations: 9}, "loop", setter(t, "a", "iteration"), custom(t, "b", func(ctx agent.InvocationContext, yield yield) {
			if drive.At(ctx).Loop().Iteration == 5 && c.fails == nil && c.n < 100 {
				c.fails = broken
			}
			yield(says("b"), nil)
		}))
	}
	err := runAll(t, c, root())
	if logged, ok := errors.AsType[*agent.LogError](err); !errors.Is(err, broken) || !ok {
		t.Fatalf("got error %v (%v), want a LogError with %v", err, logged, broken)
	}
	c.fails, c.n = nil, 100
	log := slices.Collect(get(t, c).(*session.View).Log().All())
	if _, err := resume(t, c, root(), log[0].InvocationID); err != nil {
		t.Fatal(err)
	}
	finished := 0
	for ev := range get(t, c).Events().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished {
			finished++
		}
	}
	if finished != 9 {
		t.Errorf("%d iterations finished, want 9", finished)
	}
}

func kindOf(ev *session.Event) string {
	if ev.Mark != nil {
		return fmt.Sprint(ev.Mark.Kind, " of ", ev.Address)
	}
	return fmt.Sprint("words of ", ev.Address)
}
