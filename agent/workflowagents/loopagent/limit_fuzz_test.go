// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// FuzzLimits runs random trees of loops with all their limits, whose steps take
// time, heed their context or not, spend, fail, panic and ask to leave, while the
// run is canceled or left at times. No path exceeds a limit, each loop says once
// why it stopped, and the run's error is right. F1 to F6, F10, G6, G10, LOOP 16,
// 17, 21, 22, 23.
func FuzzLimits(f *testing.F) {
	for seed := range uint64(150) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		bubble(t, func(t *testing.T) {
			b := &bounded{T: t, rnd: rand.New(rand.NewPCG(seed, 21)), running: map[session.Address][]*boundedRun{}}
			root := b.loop(3)
			s := newStage(t, root, b.rnd.IntN(2) == 0)
			s.cfg.Prices = prices
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if b.rnd.IntN(3) == 0 {
				defer time.AfterFunc(time.Duration(b.rnd.IntN(60))*time.Second, func() { cancel(errEnough) }).Stop()
			}
			leave := -1
			if b.rnd.IntN(5) == 0 {
				leave = b.rnd.IntN(20)
			}
			b.check(ctx, s, leave)
		})
	})
}

// bounded makes a tree and holds it to its limits.
type bounded struct {
	*testing.T
	rnd *rand.Rand
	n   int

	mu        sync.Mutex
	running   map[session.Address][]*boundedRun // of one place: one that was abandoned, and the next
	last      *loop.StopRecord                  // of the root
	straggler bool                              // a step may be abandoned: what it uses later is in no record
}

// boundedRun is one run of a loop.
type boundedRun struct {
	began time.Time
	calls int64
}

const grace = 3 * time.Second

func (b *bounded) chance(n int) bool { return b.rnd.IntN(n) == 0 }

func (b *bounded) seconds(most int) time.Duration {
	return time.Duration(1+b.rnd.IntN(most)) * time.Second
}

func (b *bounded) agent(depth int) agent.Agent {
	kind := b.rnd.IntN(7)
	if depth == 0 {
		kind = 6
	}
	switch kind {
	case 0, 1:
		return b.loop(depth - 1)
	case 2:
		return sequence(b.T, b.name("seq"), b.agents(depth-1)...)
	case 3:
		return parallel(b.T, b.name("par"), b.agents(depth-1)...)
	}
	return b.leaf()
}

func (b *bounded) agents(depth int) (subs []agent.Agent) {
	for range 1 + b.rnd.IntN(3) {
		subs = append(subs, b.agent(depth))
	}
	return subs
}

func (b *bounded) name(kind string) string {
	b.n++
	return fmt.Sprintf("%s%d", kind, b.n)
}

func (b *bounded) loop(depth int) agent.Agent {
	name := b.name("loop")
	subs := b.agents(depth)
	c := loopagent.Config{
		AgentConfig: agent.Config{Name: name}, MaxIterations: uint(1 + b.rnd.IntN(4)), AbandonAfter: grace,
		Rules: loop.Plan{OnError: []loop.ErrorPolicy{"", loop.SkipStep, loop.NextIteration}[b.rnd.IntN(3)]},
	}
	if b.chance(2) {
		c.Rules.Timeout = loop.Duration(b.seconds(40))
	}
	if b.chance(3) {
		c.Rules.IterationTimeout = loop.Duration(b.seconds(15))
		if c.Rules.Timeout > 0 {
			c.Rules.IterationTimeout = min(c.Rules.IterationTimeout, c.Rules.Timeout)
		}
	}
	if b.chance(2) {
		c.Rules.Budget = &loop.Budget{Calls: int64(2 + b.rnd.IntN(12))}
	}
	if b.chance(4) {
		c.Rules.DelayBefore = loop.Duration(b.seconds(3))
	}
	finalizer := ""
	if b.chance(3) {
		final := b.leaf()
		subs = append(subs, final)
		finalizer, c.Rules.FinalizeEach = final.Name(), b.chance(4)
	}
	if b.chance(3) {
		c.Rules.Score = &loop.Score{Key: "score"}
		if b.chance(2) {
			c.Rules.OnRegression = loop.RollbackOnWorse
		}
	}
	if b.chance(4) {
		c.Rules.NoProgress = &loop.NoProgress{}
	}
	for _, sub := range subs {
		c.Rules.Steps = append(c.Rules.Steps, b.step(&c, sub.Name(), sub.Name() == finalizer))
	}
	c.AgentConfig.SubAgents = subs
	c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error { return b.begin(drive.At(ctx).Address(), n, &c) }}
	c.OnStop = func(ctx agent.InvocationContext, rec *loop.StopRecord) { b.stop(ctx, rec, &c) }
	return must(b.T)(loopagent.New(c))
}

func (b *bounded) step(c *loopagent.Config, name string, finalizer bool) loop.Step {
	p := loop.Step{Name: name, Finalizer: finalizer}
	if b.chance(2) {
		p.Timeout = loop.Duration(b.seconds(8))
	}
	if b.chance(4) && !finalizer {
		p.Retry = &loop.Retry{Attempts: 2, Backoff: loop.Duration(b.seconds(2))}
	}
	if b.chance(6) {
		p.Circuit = &loop.Circuit{Failures: 2, Cooldown: loop.Duration(b.seconds(5))}
	}
	if b.chance(6) {
		p.DelayAfter = loop.Duration(b.seconds(2))
	}
	if b.chance(8) {
		if c.Caches == nil {
			c.Caches = make(map[string]loopagent.Cache)
		}
		c.Caches[name] = loopagent.Cache{Key: func(lookup func(string) (any, bool)) (string, error) {
			v, _ := lookup("score")
			return fmt.Sprint(v), nil
		}}
	}
	return p
}

func (b *bounded) begin(at session.Address, n int, c *loopagent.Config) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > int(c.MaxIterations) {
		b.Errorf("%s: iteration %d of %d", at, n, c.MaxIterations)
	}
	if n == 1 {
		b.running[at] = append(b.running[at], &boundedRun{began: time.Now()})
	}
	return nil
}

func (b *bounded) stop(ctx agent.InvocationContext, rec *loop.StopRecord, c *loopagent.Config) {
	at := drive.At(ctx).Address()
	b.mu.Lock()
	defer b.mu.Unlock()
	runs := b.running[at]
	if len(runs) == 0 {
		b.Errorf("%s: stopped without having begun, or twice: %+v", at, rec)
		return
	}
	if b.running[at] = runs[1:]; len(runs) == 1 {
		delete(b.running, at)
	}
	if drive.At(ctx).Loop() == nil {
		b.last = rec
	}
	if len(runs) > 1 {
		return // who knows which it was
	}
	r := runs[0]
	// A step, and the finalizer after it, may be abandoned.
	if most := time.Duration(c.Rules.Timeout) + time.Duration(c.Rules.Timeout)/10 + 2*grace; c.Rules.Timeout > 0 && time.Since(r.began) > most {
		b.Errorf("%s: took %s, may take %s: %+v", at, time.Since(r.began), c.Rules.Timeout, rec)
	}
	if l := c.Rules.Budget; l != nil && (r.calls > l.Calls || rec.Usage.Calls > l.Calls) {
		b.Errorf("%s: %d calls of %d, %d in the record", at, r.calls, l.Calls, rec.Usage.Calls)
	}
	if !b.straggler && rec.Usage.Calls != r.calls {
		b.Errorf("%s: %d calls, %d in the record", at, r.calls, rec.Usage.Calls)
	}
	if rec.Reason == "" || rec.Result.Source == "" || rec.Detail == "" {
		b.Errorf("%s: stop record %+v", at, rec)
	}
}

// spend makes a model call, which every loop around counts.
func (b *bounded) spend(ctx agent.InvocationContext) error {
	room, err := drive.At(ctx).Budget().Reserve(budget.Request{Model: "m", InputTokens: 1, OutputTokens: 1})
	if err != nil {
		return err
	}
	b.mu.Lock()
	for at, runs := range b.running {
		if drive.At(ctx).Address().Under(at) {
			runs[len(runs)-1].calls++
		}
	}
	b.mu.Unlock()
	room.Commit(budget.Usage{InputTokens: 1, OutputTokens: 1})
	return nil
}

func (b *bounded) leaf() agent.Agent {
	acts := make([]int, 3+b.rnd.IntN(5))
	waits := make([]time.Duration, len(acts))
	for i := range acts {
		acts[i], waits[i] = b.rnd.IntN(20), b.seconds(12)
	}
	scope := []string{"", session.ScopeAll, "loop1"}[b.rnd.IntN(3)]
	var mu sync.Mutex
	next := 0
	return does(b.T, b.name("leaf"), func(ctx agent.InvocationContext, say say) error {
		mu.Lock()
		act, wait := acts[next%len(acts)], waits[next%len(acts)]
		next++
		mu.Unlock()
		switch {
		case act < 3:
			for range act {
				if err := b.spend(ctx); err != nil {
					return err
				}
			}
			say(words("spent"))
		case act < 5:
			say(sets("scored", "score", float64(wait/time.Second)))
		case act < 8:
			select {
			case <-time.After(wait):
				say(words("in time"))
			case <-ctx.Done():
				return ctx.Err()
			}
		case act == 8:
			b.mu.Lock()
			b.straggler = true // perhaps
			b.mu.Unlock()
			time.Sleep(wait)
			say(sets("deaf", "late", true))
		case act == 9:
			say(exitsBy(session.Exit{Scope: scope}))
		case act == 10:
			say(sets("half", "half", act))
			return errBroken
		case act == 11:
			panic("oh")
		default:
			say(words(fmt.Sprint(act)))
		}
		return nil
	})
}

func (b *bounded) check(ctx context.Context, s *stage, leave int) {
	var evs []*session.Event
	var err error
	for ev, e := range s.Run(ctx, "ana", "s1", words("go").Content, s.cfg) {
		if err != nil {
			b.Errorf("after the error %v came %v, %v", err, ev, e)
		}
		if err = e; e != nil {
			continue
		}
		if evs = append(evs, ev); len(evs) == leave {
			break
		}
	}
	if len(evs) == leave {
		return // nobody is told of anything any more
	}
	balanced(b.T, evs)
	time.Sleep(time.Hour) // for those that were abandoned, and stop now
	b.mu.Lock()
	defer b.mu.Unlock()
	for at := range b.running {
		b.Errorf("%s: never stopped", at)
	}
	_, failed := errors.AsType[*agent.StepError](err)
	switch {
	case b.last == nil:
		if ctx.Err() == nil {
			b.Errorf("the root has never begun: %v", err)
		}
	case b.last.Reason == loop.ReasonCanceled:
		if err != errEnough {
			b.Errorf("canceled, with error %v", err)
		}
	case b.last.Reason == loop.ReasonError:
		if !failed {
			b.Errorf("error %v", err)
		}
	case err != nil && err != errEnough: // that may come later than the reason
		b.Errorf("stopped by %s, with error %v", b.last.Reason, err)
	}
}
