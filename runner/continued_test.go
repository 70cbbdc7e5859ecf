// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// growLoop grows a sequence with a loop of so many iterations, a step before it
// and one behind it; every second one is a branch beside others.
func growLoop(t testing.TB, seed uint64, iterations uint) (agent.Agent, *world) {
	f := &forest{TB: t, world: new(world), dice: rand.New(rand.NewPCG(seed, 9))}
	own, branch := place{quiet: true, retried: true}, seed%2 == 1
	if branch {
		f.wild = true
		own.keys = "own_"
	}
	first := f.leaf(own)
	cfg := loopagent.Config{MaxIterations: iterations, Rules: loop.Plan{OnError: loop.SkipStep}}
	in := own
	in.depth, in.loops = 3, 1
	cfg.AgentConfig = agent.Config{Name: "loop0", SubAgents: f.some(in, 2, 3)}
	if f.dice.IntN(2) == 0 {
		last := cfg.AgentConfig.SubAgents[len(cfg.AgentConfig.SubAgents)-1].Name()
		cfg.Rules.Steps = append(cfg.Rules.Steps, loop.Step{Name: last, Finalizer: true})
	}
	if f.dice.IntN(2) == 0 {
		cfg.Rules.Score = &loop.Score{Key: own.keys + "score"}
		if f.dice.IntN(2) == 0 {
			cfg.Rules.OnRegression = loop.RollbackOnWorse
		}
	}
	middle := f.must(loopagent.New(cfg))
	line := sequence(t, "all", first, middle, f.leaf(own))
	if branch {
		beside := func(keys string) agent.Agent {
			return f.agent(place{depth: 4, loops: 1, keys: keys, quiet: true, retried: true})
		}
		return sequence(t, "root", branches(t, beside("left_"), line, beside("right_")), f.leaf(own)), f.world
	}
	return line, f.world
}

// LOOP 31: a run that a limit has stopped goes on with a larger one, once or
// twice, cut off on the way or not, and comes to what it would have come to with
// that limit from its start.
func TestContinueWithALargerLimit(t *testing.T) {
	ignore := cmp.Options{times, loggedEvents, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Ended" }, cmp.Ignore())}
	for seed := range longtest.N[uint64](5, 60) {
		initial := map[string]any{"k0": "before", "text": "first"}
		start := func(n uint, store session.Service) *process {
			root, w := growLoop(t, seed, n)
			return &process{TB: t, world: w, store: store, Runner: newRunner(t, runner.Config{Agent: root, SessionService: store, Durable: true})}
		}
		p := start(6, crashed(t, initial, nil, 0))
		want := p.outcome(p.first())

		store := crashed(t, initial, nil, 0)
		p = start(2, store)
		if err := p.first(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		at := session.Address("all/loop0")
		if seed%2 == 1 {
			at = "root/branches/all/loop0"
		}
		if got := p.outcome(nil); got.Stops[at][0].Reason != loop.ReasonMaxIterations {
			continue
		}
		id := p.id
		dice := rand.New(rand.NewPCG(seed, 1))
		for _, n := range []uint{4, 6} {
			p = start(n, store)
			left := 0
			for _, err := range p.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}, runner.Continue()) {
				if err != nil {
					t.Fatalf("seed %d: continue with %d: %v\n%s", seed, n, err, lines(brief(p.log())))
				}
				if left++; left == 2+dice.IntN(30) {
					break
				}
			}
			p = start(n, store)
			if _, err := p.again(id); err != nil && !errors.Is(err, runner.ErrFinished) {
				t.Fatalf("seed %d: resume with %d: %v\n%s", seed, n, err, lines(brief(p.log())))
			}
		}
		if diff := cmp.Diff(want, p.outcome(nil), ignore); diff != "" {
			t.Fatalf("seed %d (-with the limit +continued):\n%s\n%s", seed, diff, lines(brief(p.log())))
		}
		p.checkFold(initial)
	}
}

// A run that ended otherwise is not continued, and says why; nothing is stored.
func TestWhatCannotBeContinued(t *testing.T) {
	pay, err := taskagent.NewText(taskagent.TextConfig{Config: taskagent.Config{Name: "pay", Effect: agent.AtMostOnce}, Text: "paid"})
	if err != nil {
		t.Fatal(err)
	}
	exits := func() agent.Agent {
		return custom(t, "leaves", func(_ agent.InvocationContext, yield yield) {
			ev := says("enough")
			ev.Actions.Escalate, ev.Actions.Exit = true, &session.Exit{Reason: "good"}
			yield(ev, nil)
		})
	}
	loopOf := func(n uint, a agent.Agent) agent.Agent { return loopOf(t, "loop", n, a) }
	for _, tt := range []struct {
		name string
		root func(n uint) agent.Agent
		want string
	}{
		{"no loop", func(uint) agent.Agent { return sequence(t, "root", speaker(t, "a", "one")) }, "did not end with a loop"},
		{"an exit", func(n uint) agent.Agent { return loopOf(n, exits()) }, "asked to leave: good"},
		{"the same limit", func(uint) agent.Agent { return loopOf(2, speaker(t, "a", "one")) }, "raise max_iterations above 2"},
		{"a smaller limit", func(n uint) agent.Agent { return loopOf(4-n, speaker(t, "a", "one")) }, "raise max_iterations above 2"},
		{"a loop in a loop", func(n uint) agent.Agent {
			return outerOf(t, loopOf(n, speaker(t, "a", "one")), exits())
		}, "outer[1]/loop reached a limit, but the agents around it have used its result: fork the run"},
		{"a loop in an agent of one's own", func(n uint) agent.Agent {
			l := loopOf(n, speaker(t, "a", "one"))
			return custom(t, "own", func(ctx agent.InvocationContext, yield yield) {
				for ev, err := range drive.Run(ctx, l) {
					if !yield(ev, err) {
						return
					}
				}
			})
		}, "did not end with a loop: only a root loop, or the last loop in a sequence or in each branch, can continue with a higher limit; own/loop reached a limit"},
		{"an effect in its branch", func(n uint) agent.Agent {
			return branches(t, sequence(t, "line", loopOf(n, speaker(t, "a", "one")), pay), speaker(t, "b", "two"))
		}, "must not be done twice"},
		{"an effect", func(n uint) agent.Agent { return sequence(t, "root", loopOf(n, speaker(t, "a", "one")), pay) }, "must not be done twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc := session.InMemoryService()
			id := ""
			for ev, err := range newRunner(t, durable(tt.root(2), svc)).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser),
				agent.RunConfig{}) {
				if err != nil {
					t.Fatal(err)
				}
				id = ev.InvocationID
			}
			last := get(t, svc).(*session.View).LastSeq()
			before := maps.Collect(get(t, svc).State().All())
			var failed error
			for _, err := range newRunner(t, durable(tt.root(3), svc)).Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}, runner.Continue()) {
				failed = err
			}
			if failed == nil || !strings.Contains(failed.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", failed, tt.want)
			}
			if n := get(t, svc).(*session.View).LastSeq(); n != last {
				t.Errorf("the log has %d events, and had %d", n, last)
			}
			if diff := cmp.Diff(before, maps.Collect(get(t, svc).State().All())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func outerOf(t testing.TB, subs ...agent.Agent) agent.Agent {
	t.Helper()
	return loopOf(t, "outer", 0, subs...)
}

// A branch in which an effect was made stays as it is when the loop of another one
// goes on; so does a loop that did not stop for a limit.
func TestContinueLeavesOtherBranchesAlone(t *testing.T) {
	var mu sync.Mutex
	ran := make(map[string]int)
	step := func(name string) agent.Agent {
		return custom(t, name, func(_ agent.InvocationContext, yield yield) {
			mu.Lock()
			ran[name]++
			mu.Unlock()
			yield(says(name), nil)
		})
	}
	pay, err := taskagent.NewText(taskagent.TextConfig{Config: taskagent.Config{Name: "pay", Effect: agent.AtMostOnce}, Text: "paid"})
	if err != nil {
		t.Fatal(err)
	}
	leaves := custom(t, "leaves", func(_ agent.InvocationContext, yield yield) {
		ev := says("enough")
		ev.Actions.Escalate, ev.Actions.Exit = true, &session.Exit{Reason: "good"}
		yield(ev, nil)
	})
	grow := func(n uint) agent.Agent {
		other := loopOf(t, "other", n, step("x"), leaves)
		one := branches(t, sequence(t, "line", loopOf(t, "loop", n, step("a")), step("behind")), sequence(t, "rest", other, pay))
		return sequence(t, "root", one, step("last"))
	}
	svc := session.InMemoryService()
	p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(grow(2), svc))}
	if err := p.first(); err != nil {
		t.Fatal(err)
	}
	p.Runner = newRunner(t, durable(grow(3), svc))
	if _, err := p.more(p.id, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 3, "behind": 2, "x": 1, "last": 2}, ran); diff != "" {
		t.Errorf("how often steps were made (-want +got):\n%s", diff)
	}
	p.checkFold(nil)
}

// LOOP 31: a run that is not over can get other limits as well; what it had decided
// stays, and the log says by which plan it went on.
func TestResumeWithOtherLimits(t *testing.T) {
	loopOf := func(n uint) agent.Agent {
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "loop",
			SubAgents: []agent.Agent{speaker(t, "a", "one"), speaker(t, "b", "two")}}, MaxIterations: n})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	svc := session.InMemoryService()
	id := breakOff(t, svc, loopOf(2), func(ev *session.Event) bool { return ev.Author == "b" && ev.Text() != "" })
	id = breakOffAgain(t, svc, loopOf(3), id)
	if _, err := resume(t, svc, loopOf(4), id); err != nil {
		t.Fatal(err)
	}
	recs, err := backtest.Recordings(slices.Collect(get(t, svc).(*session.View).Log().All()))
	if err != nil || len(recs) != 1 || recs[0].Stop == nil || recs[0].Stop.Iterations != 4 || recs[0].Plan.MaxIterations != 4 {
		t.Fatalf("the log says %+v, %v", recs, err)
	}
}

// breakOffAgain resumes a run and cuts it off in its second iteration.
func breakOffAgain(t *testing.T, svc session.Service, root agent.Agent, id string) string {
	t.Helper()
	for ev, err := range newRunner(t, durable(root, svc)).Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Address == "loop[2]/a" && ev.Text() != "" {
			break
		}
	}
	return id
}

// LOOP 30: a run that goes on with a limit that it has just reached stops by it, in good
// order, and so it does when that is cut off and resumed.
func TestResumeAtTheLimit(t *testing.T) {
	loopOf := func(n uint) agent.Agent {
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "loop", SubAgents: []agent.Agent{speaker(t, "a", "one")}}, MaxIterations: n})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ended := func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished }
	continued := func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindLoopContinued }
	for _, again := range []bool{false, true} {
		svc := session.InMemoryService()
		id := breakOff(t, svc, loopOf(2), ended)
		if again {
			for ev, err := range newRunner(t, durable(loopOf(1), svc)).Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
				if err != nil {
					t.Fatal(err)
				}
				if continued(ev) {
					break
				}
			}
		}
		if _, err := resume(t, svc, loopOf(1), id); err != nil {
			t.Fatal(err)
		}
		recs, err := backtest.Recordings(slices.Collect(get(t, svc).(*session.View).Log().All()))
		if err != nil || len(recs) != 1 || recs[0].Stop == nil || recs[0].Stop.Reason != loop.ReasonMaxIterations || recs[0].Plan.MaxIterations != 1 {
			t.Fatalf("cut off again: %t: the log says %+v, %v", again, recs, err)
		}
	}
}
