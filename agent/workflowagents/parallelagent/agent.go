// SPDX-License-Identifier: Apache-2.0

// Package parallelagent runs sub-agents at the same time, each in a branch of its own. They
// share the session's state and do not see each other's events.
//
//	panel, err := parallelagent.New(parallelagent.Config{
//		AgentConfig:    agent.Config{Name: "panel", SubAgents: judges},
//		MaxConcurrency: 4,
//	})
package parallelagent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
)

// Config describes a parallel agent.
type Config struct {
	// AgentConfig has the agent's name, sub-agents and callbacks; its Run must be nil.
	AgentConfig agent.Config
	// MaxConcurrency limits the number of sub-agents that run at once; 0 means no limit.
	MaxConcurrency uint
	// Steps has the policies of single sub-agents, by name. The error of a sub-agent without a policy
	// cancels the others, as in ADK; such a sub-agent runs without a delay.
	Steps map[string]StepPolicy
	// Race compares the sub-agents, which are loops, by their best scores, and hands on which one is the best. A loop
	// that fails loses; only if all fail does the agent. Nil runs the sub-agents without comparing them.
	Race *Race
}

// StepPolicy says how the agent treats one of its sub-agents. Its delays are part of the sub-agent's
// turn among MaxConcurrency.
type StepPolicy = drive.StepPolicy

// Agent is the concrete type of [New]'s agents.
type Agent struct {
	*drive.Base
	cfg   Config
	steps drive.StepPolicies
	grace time.Duration
	among int // how many of the sub-agents that run at once spend money
}

// New returns an agent that runs its sub-agents at the same time. After each event a sub-agent
// waits until the consumer has taken the event and, under a runner, the event is stored. The
// first error that no policy skips cancels the others and is yielded when all of them have
// ended, or were left behind because they do not heed their context. An exit from a loop around
// it lets the others finish. New returns an error for a config that [agent.New] refuses, for a
// Run function, and for a policy whose name no sub-agent has.
func New(cfg Config) (agent.Agent, error) {
	if cfg.AgentConfig.Run != nil {
		return nil, fmt.Errorf("parallel agent %q: ParallelAgent doesn't allow custom Run implementations",
			cfg.AgentConfig.Name)
	}
	a := &Agent{cfg: cfg, steps: maps.Clone(cfg.Steps)}
	base, err := drive.NewBase(cfg.AgentConfig, a, a.run)
	if err != nil {
		return nil, err
	}
	if err := a.steps.Check(cfg.AgentConfig.SubAgents); err != nil {
		return nil, fmt.Errorf("parallel agent %q: %w", cfg.AgentConfig.Name, err)
	}
	if err := cfg.Race.check(cfg.AgentConfig.SubAgents); err != nil {
		return nil, fmt.Errorf("parallel agent %q: %w", cfg.AgentConfig.Name, err)
	}
	a.Base = base
	a.grace = drive.GraceAround(a, drive.Grace)
	for _, sub := range cfg.AgentConfig.SubAgents {
		if spends(sub) {
			a.among = min(a.among+1, a.limit())
		}
	}
	return a, nil
}

// spends reports whether an agent, or one below it, asks a model.
func spends(a agent.Agent) bool {
	s, ok := a.(drive.UsageReader)
	return agent.TypeOf(a) == agent.TypeLLM || ok && s.InterruptedUsage() != (budget.Usage{}) || slices.ContainsFunc(a.SubAgents(), spends)
}

// Config returns the config that the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// Type returns [agent.TypeParallel].
func (a *Agent) Type() agent.Type { return agent.TypeParallel }

// Skips reports whether the agent continues after a sub-agent has failed with an error.
func (a *Agent) Skips(step string, err error) bool {
	return a.steps.Skips(step, err) || a.cfg.Race != nil && losable(err)
}

var (
	_ drive.Describer = (*Agent)(nil)
	_ drive.Skipper   = (*Agent)(nil)
)

// Traits describes the agent to its caller. The agent waits for its grace for a branch that ignores its canceled context.
func (a *Agent) Traits(bool) drive.Traits { return drive.Traits{Inline: true, StepGrace: a.grace} }

// delivery is an event on its way from a sub-agent, which waits for the answer.
type delivery struct {
	ev    *session.Event
	taken chan bool
}

// passTo hands the event on and gives the answer, also when yield panics. When the
// consumer has stopped it cancels first: no sub-agent starts in between.
func (s delivery) passTo(yield func(*session.Event, error) bool, cancel context.CancelCauseFunc) (ok bool) {
	defer func() {
		if !ok {
			cancel(nil)
		}
		s.taken <- ok
	}()
	return yield(s.ev, nil)
}

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	subs := a.cfg.AgentConfig.SubAgents
	child, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait() // also when the consumer panics
	defer cancel(nil)

	events, gone := make(chan delivery), make(chan struct{})
	defer close(gone)
	ended := make(chan end, len(subs))
	race := newRace(a.cfg.Race, drive.At(ctx), subs)
	slots := make(chan struct{}, a.limit())
	timed, branches := drive.WithBranches(child)
	me, under := drive.At(ctx), ctx.WithContext(timed)
	for i, sub := range subs {
		cfg := drive.StepConfig{Agent: sub, Branch: a.branch(ctx, sub), Grace: me.Grace(a.grace)}
		if a.among > 1 {
			cfg.Budget = me.Budget().Child(budget.Limits{}).Among(a.among)
		}
		turn := &turn{slots: slots, branches: branches}
		lane := race.lane(i, turn)
		step := drive.NewStep(lane.under(under), cfg)
		wg.Go(func() {
			e := end{lane: lane}
			defer func() { ended <- e }()
			select {
			case slots <- struct{}{}:
				defer turn.end()
				if child.Err() != nil {
					return
				}
				branches.Begin()
				turn.working = true
				course := a.steps.Course(under)
				res := course.Run(step, hand(events, gone))
				err := res.Err
				if err == nil && !res.ConsumerLeft {
					err = course.End()
				}
				if e = lane.end(child, err); err != nil && !e.lost {
					cancel(err)
				}
			case <-child.Done():
			}
		})
	}

	var first error
	for running := len(subs); running > 0; {
		select {
		case s := <-events:
			race.hear(s.ev)
			// Canceled sub-agents still say how they ended.
			if !s.passTo(yield, cancel) && ctx.Err() == nil {
				return
			}
		case w := <-race.arrivals():
			w.lane.waits, w.lane.standing = true, &w.standing
		case e := <-ended:
			running--
			if race.endLoop(e); first == nil && !e.lost {
				first = e.err
			}
		}
		if child.Err() == nil && race.decides() && !race.decide(yield) {
			if cancel(nil); ctx.Err() == nil {
				return
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		yield(nil, context.Cause(ctx))
	case first == nil && race.failure() != nil:
		yield(nil, race.failure())
	case first != nil:
		// The others may have ended first, of the cancellation that it caused.
		yield(nil, context.Cause(child))
	}
}

func (a *Agent) limit() int {
	n := len(a.cfg.AgentConfig.SubAgents)
	if limit := a.cfg.MaxConcurrency; limit > 0 && limit < uint(n) {
		return int(limit)
	}
	return n
}

func (a *Agent) branch(ctx agent.InvocationContext, sub agent.Agent) string {
	branch := part(a.Name()) + "." + part(sub.Name())
	if outer := ctx.Branch(); outer != "" {
		branch = outer + "." + branch
	}
	return branch
}

// part is an agent's name as a part of a branch, in which dots separate: "v1" is not
// around "v1.1".
func part(name string) string {
	return strings.NewReplacer("%", "%25", ".", "%2E").Replace(name)
}

// hand returns the yield function of a sub-agent's step. The function passes an event to the
// agent's own goroutine and waits until that goroutine has taken the event, or has ended. A
// cancellation does not interrupt the wait, because each event that was handed over gets an answer.
func hand(events chan<- delivery, gone <-chan struct{}) func(*session.Event) bool {
	taken := make(chan bool, 1)
	return func(ev *session.Event) bool {
		select {
		case events <- delivery{ev, taken}:
			return <-taken
		case <-gone:
			return false
		}
	}
}
