// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// FuzzTree runs random trees of loops, sequences and parallels whose steps say
// something, nothing, ask to leave, fail or panic, and are cancelled at times.
// B1, B2, A13, C13, C20, T3.
func FuzzTree(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &grower{
			t: t, rnd: rand.New(rand.NewPCG(seed, 1)),
			loops: map[string]*grown{}, parents: map[string]string{}, begun: map[session.Address]int{},
		}
		root := g.loop(3)
		s := newStage(t, root, g.rnd.IntN(2) == 0)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if g.rnd.IntN(4) == 0 {
			g.left.Store(int64(1 + g.rnd.IntN(40)))
		}
		g.cancel = cancel
		evs, err := s.send(t, ctx, "go")
		g.check(root, evs, err)
	})
}

// grown is what the tree knows of one of its loops.
type grown struct {
	most  int
	order []string
}

// grower makes a tree. Its random numbers are drawn while the tree is made, so
// that a seed gives one tree, whatever runs at the same time.
type grower struct {
	t       testing.TB
	rnd     *rand.Rand
	n       int
	loops   map[string]*grown
	parents map[string]string // of each agent
	left    atomic.Int64      // steps until the run is cancelled; never, from 0
	cancel  context.CancelCauseFunc

	mu    sync.Mutex
	begun map[session.Address]int // iterations of the loops that have not stopped
}

func (g *grower) name(kind string) string {
	g.n++
	return fmt.Sprintf("%s%d", kind, g.n)
}

func (g *grower) subs(parent string, depth int) (subs []agent.Agent) {
	for range 1 + g.rnd.IntN(3) {
		a := g.agent(depth)
		g.parents[a.Name()] = parent
		subs = append(subs, a)
	}
	return subs
}

func (g *grower) agent(depth int) agent.Agent {
	kind := g.rnd.IntN(6)
	if depth == 0 {
		kind = 5
	}
	switch kind {
	case 0, 1:
		return g.loop(depth - 1)
	case 2:
		name := g.name("seq")
		subs := g.subs(name, depth-1)
		return must(g.t)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, Steps: g.policies(subs)}))
	case 3:
		name := g.name("par")
		subs := g.subs(name, depth-1)
		return must(g.t)(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, Steps: g.policies(subs)}))
	}
	return g.leaf()
}

// policies are what a sequence or a parallel agent says of some of its steps.
func (g *grower) policies(subs []agent.Agent) drive.StepPolicies {
	by := make(drive.StepPolicies)
	for _, sub := range subs {
		if g.rnd.IntN(2) == 0 {
			by[sub.Name()] = drive.StepPolicy{
				SkipOnError: g.rnd.IntN(2) == 0, DelayBefore: time.Duration(g.rnd.IntN(2000)), DelayAfter: time.Duration(g.rnd.IntN(2000)),
			}
		}
	}
	return by
}

func (g *grower) loop(depth int) agent.Agent {
	name := g.name("loop")
	subs := g.subs(name, depth)
	l := &grown{most: 1 + g.rnd.IntN(3)}
	g.loops[name] = l
	for _, sub := range subs {
		l.order = append(l.order, sub.Name())
	}
	return loopOf(g.t, name, uint(l.most), func(c *loopagent.Config) {
		if g.rnd.IntN(3) == 0 {
			g.rnd.Shuffle(len(l.order), func(i, j int) { l.order[i], l.order[j] = l.order[j], l.order[i] })
			c.Rules.Order = l.order
		}
		if g.rnd.IntN(4) == 0 {
			c.Rules.CanExit = l.order[:1]
		}
		c.Rules.OnError = []loop.ErrorPolicy{"", loop.SkipStep, loop.NextIteration}[g.rnd.IntN(3)]
		c.Propagate = g.rnd.IntN(5) == 0
		if g.rnd.IntN(3) == 0 {
			c.Rules.Score = &loop.Score{Key: "score", Target: new(9.0)}
		}
		if g.rnd.IntN(3) == 0 {
			c.OutputKey = name
		}
		c.KeepStates = g.rnd.IntN(4) == 0
		c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error {
			g.begin(drive.At(ctx).Address(), n, l.most)
			return nil
		}}
		c.OnStop = func(ctx agent.InvocationContext, r *loop.StopRecord) { g.stop(drive.At(ctx).Address(), r) }
	}, subs...)
}

// begin checks that iterations are counted one by one, up to the limit.
func (g *grower) begin(at session.Address, n, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n != g.begun[at]+1 || n > most {
		g.t.Errorf("%s: iteration %d of %d follows iteration %d", at, n, most, g.begun[at])
	}
	g.begun[at] = n
}

// stop checks that a loop says once, and truly, how far it came.
func (g *grower) stop(at session.Address, r *loop.StopRecord) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, ok := g.begun[at]
	if !ok || r.Iteration != n || r.Iterations > n {
		g.t.Errorf("%s: stopped after %d of %d iterations, %d complete", at, r.Iteration, n, r.Iterations)
	}
	delete(g.begun, at)
}

// leaf is an agent that does one thing after another, each time it runs.
func (g *grower) leaf() agent.Agent {
	name := g.name("leaf")
	acts := make([]int, 2+g.rnd.IntN(6))
	for i := range acts {
		acts[i] = g.rnd.IntN(16)
	}
	scope := []string{"", "", "", session.ScopeAll, "loop1", "nobody"}[g.rnd.IntN(6)]
	at := 0
	return does(g.t, name, func(_ agent.InvocationContext, say say) error {
		act := acts[at%len(acts)]
		at++
		if g.left.Add(-1) == 0 {
			g.cancel(errEnough)
		}
		switch {
		case act < 2: // silence
		case act == 2:
			say(escalate(words("out")))
		case act == 3:
			if say(exitsBy(session.Exit{Scope: scope})) {
				say(words("a summary"))
			}
		case act == 4:
			return errBroken
		case act == 5:
			say(words("half"))
			panic("oh")
		case act < 9:
			say(sets("scored", "score", float64(act)))
		default:
			say(words("x"))
		}
		return nil
	})
}

// check holds what is true of every tree.
func (g *grower) check(root agent.Agent, evs []*session.Event, err error) {
	if err != nil {
		_, failed := errors.AsType[*agent.StepError](err)
		if !failed && !errors.Is(err, errEnough) {
			g.t.Errorf("error %v", err)
		}
	}
	for at := range g.begun {
		g.t.Errorf("%s: never stopped", at)
	}
	last := map[string]position{}
	for _, ev := range evs {
		g.address(root, ev)
		g.order(ev, last)
	}
}

// address checks that an event is where its path says.
func (g *grower) address(root agent.Agent, ev *session.Event) {
	parts := strings.Split(string(ev.Address), "/")
	iteration, parent := 0, ""
	for i, part := range parts {
		name, number, inLoop := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		if root.FindAgent(name) == nil || g.parents[name] != parent {
			g.t.Errorf("address %s: no %s under %q", ev.Address, name, parent)
		}
		parent = name
		if !inLoop {
			if i < len(parts)-1 && g.loops[name] != nil {
				g.t.Errorf("address %s: no iteration of %s", ev.Address, name)
			}
			continue
		}
		if _, err := fmt.Sscan(number, &iteration); err != nil || iteration < 1 || iteration > g.loops[name].most {
			g.t.Errorf("address %s: iteration %q of at most %d", ev.Address, number, g.loops[name].most)
		}
	}
	if ev.Iteration != iteration || ev.Author != parent || ev.Author != ev.Address.Agent() {
		g.t.Errorf("event by %s at %s in iteration %d", ev.Author, ev.Address, ev.Iteration)
	}
}

// position is how far a loop has come.
type position struct{ iteration, place int }

// order checks that iterations and their steps follow one another.
func (g *grower) order(ev *session.Event, last map[string]position) {
	path := ""
	for part := range strings.SplitSeq(string(ev.Address), "/") {
		name, number, inLoop := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		l, ok := g.loops[strings.TrimSuffix(name, "/")]
		if ok && inLoop {
			var now position
			fmt.Sscan(number, &now.iteration)
			rest := strings.TrimPrefix(string(ev.Address), path+part+"/")
			step, _, _ := strings.Cut(rest, "/")
			step, _, _ = strings.Cut(step, "[")
			for i, n := range l.order {
				if n == step {
					now.place = i
				}
			}
			was := last[path+name]
			if now.iteration < was.iteration || now.iteration == was.iteration && now.place < was.place {
				g.t.Errorf("%s: iteration %d step %d came after iteration %d step %d", ev.Address, now.iteration, now.place, was.iteration, was.place)
			}
			last[path+name] = now
		}
		path += part + "/"
	}
}
