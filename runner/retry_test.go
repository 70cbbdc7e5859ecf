// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// more goes on with a run that has come to its end, for so many events; 0: to its end.
func (p *process) more(id string, events int) (fresh []*session.Event, err error) {
	p.Helper()
	for ev, e := range p.Resume(p.Context(), "ana", "s1", id, agent.RunConfig{}, runner.Continue()) {
		if err = e; ev != nil {
			fresh = append(fresh, ev)
		}
		if len(fresh) == events {
			break
		}
	}
	return fresh, err
}

// next is a new process, for which what is paid is paid.
func (p *process) next(seed uint64) *process {
	p.Helper()
	n := startProcess(p.TB, seed, p.store)
	n.paid, n.retry = maps.Clone(p.paid), p.retry
	return n
}

// retried is more in a run that can wait for people.
func (p *process) retried(id string) (fresh []*session.Event, err error) {
	p.Helper()
	for ev, e := range p.Resume(p.Context(), "ana", "s1", id, agent.RunConfig{Pause: new(agent.Pause)}, runner.Continue()) {
		if err = e; ev != nil {
			fresh = append(fresh, ev)
		}
	}
	return fresh, err
}

// LOOP 31: a run that has failed, wherever that was, comes to what it comes to without
// that when the step is tried again; what had ended is not made again.
func TestRetryFromAnywhere(t *testing.T) {
	initial := map[string]any{"k0": "before", "text": "first", "user:name": "Ana"}
	tried, cut := 0, 0
	for seed := range seeds(t) {
		p := startProcess(t, seed, crashed(t, initial, nil, 0))
		want := p.outcome(p.first())
		if len(p.log()) > 90 || want.Err != "" {
			continue
		}
		dice := rand.New(rand.NewPCG(seed, 7))
		leaves := slices.Sorted(maps.Keys(p.ran))
		dice.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
		for _, at := range leaves[:min(3, len(leaves))] {
			store := crashed(t, initial, nil, 0)
			p := startProcess(t, seed, store)
			p.broken, p.retry = at, true
			if err := p.first(); !errors.Is(err, errBroken) {
				continue // who is around it makes do without
			}
			id := p.id
			p.retry = triedBefore(p, at, 1)
			for range dice.IntN(3) { // it is still broken
				p = p.next(seed)
				p.broken = at
				if _, err := p.more(id, 0); err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
					t.Fatalf("seed %d, %s: still broken: %v\n%s", seed, at, err, lines(brief(p.log())))
				}
				p.checkFold(initial)
			}
			p = p.next(seed)
			events := 0
			if dice.IntN(3) == 0 {
				events = 1 + dice.IntN(12)
			}
			fresh, err := p.more(id, events)
			if events == 0 {
				p.checkWork(fresh)
			}
			if len(fresh) == events && err == nil { // cut off on the way
				cut++
				p = p.next(seed)
				_, err = p.again(id)
				if errors.Is(err, runner.ErrFinished) {
					err = nil
				}
			}
			tried++
			got := p.outcome(err)
			what := fmt.Sprintf("seed %d, %s failed", seed, at)
			if triedBefore(p, at, 0) { // by its loop: how often it has failed is in what it says
				if err != nil && !strings.Contains(err.Error(), errLeaf.Error()) && !strings.Contains(err.Error(), session.ErrNotJSON.Error()) {
					t.Fatalf("%s: %v\n%s", what, err, lines(brief(p.log())))
				}
			} else if diff := cmp.Diff(want, got, times, usage, loggedEvents); diff != "" {
				t.Fatalf("%s (-whole +tried again):\n%s\n%s", what, diff, lines(brief(p.log())))
			}
			if p.checkFold(initial); t.Failed() {
				t.Fatalf("%s:\n%s", what, lines(brief(p.log())))
			}
		}
	}
	t.Logf("%d failures were tried again, %d of them cut off on the way", tried, cut)
	if tried < int(*manyTrees)/4 && *firstTree == 0 {
		t.Errorf("only %d failures were tried again", tried)
	}
}

// triedBefore reports whether more than so many failures of a step count: those of
// earlier attempts.
func triedBefore(p *process, at session.Address, n int) bool {
	for ev := range get(p, p.store).(*session.View).Events().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Address == at && decode[mark.StepFinished](p, ev.Mark).Error != "" {
			if n--; n < 0 {
				return true
			}
		}
	}
	return false
}

// LOOP 31: what a retry makes again, by the kind of root.
func TestRetryMakesOnlyWhatFailed(t *testing.T) {
	type made = map[string]int
	for _, tt := range []struct {
		name string
		root func(step func(name string) agent.Agent) agent.Agent
		want made // b fails the first time
	}{
		{"a single agent", func(step func(string) agent.Agent) agent.Agent { return step("b") }, made{"b": 2}},
		{"a sequence", func(step func(string) agent.Agent) agent.Agent {
			return sequence(t, "root", step("a"), step("b"), step("c"))
		}, made{"a": 1, "b": 2, "c": 1}},
		{"a parallel agent", func(step func(string) agent.Agent) agent.Agent {
			subs := []agent.Agent{sequence(t, "left", step("a"), step("b")), step("c")}
			a, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "one", SubAgents: subs}, MaxConcurrency: 1}) // none is cut off
			if err != nil {
				t.Fatal(err)
			}
			return a
		}, made{"a": 1, "b": 2, "c": 1}},
		{"a loop in a loop, behind others", func(step func(string) agent.Agent) agent.Agent {
			inner := loopOf(t, "inner", 2, step("a"), step("b"))
			return loopOf(t, "outer", 1, sequence(t, "line", step("first"), inner, step("c")))
		}, made{"first": 1, "a": 2, "b": 3, "c": 1}},
		{"an agent of one's own", func(step func(string) agent.Agent) agent.Agent {
			subs := []agent.Agent{step("a"), step("b")}
			return custom(t, "own", func(ctx agent.InvocationContext, yield yield) {
				for _, sub := range subs {
					for ev, err := range drive.Run(ctx, sub) {
						if !yield(ev, err) || err != nil {
							return
						}
					}
				}
			})
		}, made{"a": 1, "b": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc := session.InMemoryService()
			var mu sync.Mutex
			ran, mended := made{}, false
			step := func(name string) agent.Agent {
				return custom(t, name, func(_ agent.InvocationContext, yield yield) {
					mu.Lock()
					ran[name]++
					mu.Unlock()
					if name == "b" && !mended {
						yield(nil, errBroken)
						return
					}
					yield(says(name), nil)
				})
			}
			p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(tt.root(step), svc))}
			if err := p.first(); !errors.Is(err, errBroken) {
				t.Fatalf("got error %v, want %v", err, errBroken)
			}
			mended = true
			if _, err := p.more(p.id, 0); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, ran); diff != "" {
				t.Errorf("how often steps were made (-want +got):\n%s", diff)
			}
			p.checkFold(nil)
			if _, err := p.more(p.id, 0); err == nil {
				t.Error("a run that has completed is continued")
			}
		})
	}
}

// Two that have failed in a parallel agent are both tried again.
func TestRetryOfTwoThatFailed(t *testing.T) {
	svc := session.InMemoryService()
	var both sync.WaitGroup // so that none is cut off before it fails
	both.Add(2)
	mended := false
	fails := func(name string) agent.Agent {
		return custom(t, name, func(_ agent.InvocationContext, yield yield) {
			if mended {
				yield(says(name), nil)
				return
			}
			both.Done()
			both.Wait()
			yield(nil, fmt.Errorf("%w: %s", errBroken, name))
		})
	}
	p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(branches(t, fails("a"), sequence(t, "line", fails("b"))), svc))}
	if err := p.first(); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	mended = true
	if _, err := p.more(p.id, 0); err != nil {
		t.Fatalf("%v\n%s", err, lines(brief(p.log())))
	}
	if got := strings.Join(stored(t, svc), ", "); !strings.Contains(got, "a: a") || !strings.Contains(got, "b: b") {
		t.Errorf("the session says %s", got)
	}
}

func branches(t testing.TB, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "branches", SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func loopOf(t testing.TB, name string, n uint, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxIterations: n})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type busyError struct{}

func (busyError) Error() string             { return "busy" }
func (busyError) RetryDelay() time.Duration { return 30 * time.Second }

// G10, LOOP 30: how long a failed step asks to wait is in the log.
func TestRetryAfterIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, tries := session.InMemoryService(), 0
		root := func() agent.Agent {
			a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
				if tries++; tries == 1 {
					yield(nil, busyError{})
				}
			})
			l, err := loopagent.New(loopagent.Config{
				AgentConfig:   agent.Config{Name: "loop", SubAgents: []agent.Agent{sequence(t, "line", a)}},
				MaxIterations: 1, Rules: loop.Plan{Steps: []loop.Step{{Name: "line", Retry: &loop.Retry{Attempts: 2}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		id := breakOff(t, svc, root(), ends("loop[1]/line"))
		start := time.Now()
		if _, err := resume(t, svc, root(), id); err != nil || tries != 2 || time.Since(start) != 30*time.Second {
			t.Errorf("error %v, %d tries, %v", err, tries, time.Since(start))
		}
	})
}
