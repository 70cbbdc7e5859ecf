// SPDX-License-Identifier: Apache-2.0

// Package loopagent repeats sub-agents until something says that it is enough.
//
//	refine, err := loopagent.New(loopagent.Config{
//		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{critic, editor}},
//		MaxIterations: 5,
//	})
//
// With these fields alone it behaves as ADK's loop agent: it yields what its
// sub-agents yield and nothing else. Package loop has the rules by which it
// decides; this package carries the decisions out.
package loopagent

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
)

// Config describes a loop agent. Every field but AgentConfig may be left at its
// zero value, which is what ADK's loop agent does.
type Config struct {
	// AgentConfig is the loop's name, sub-agents and callbacks; Run must be
	// nil. The sub-agents are the steps of an iteration, in order.
	AgentConfig agent.Config
	// MaxIterations is the most iterations there are; 0 goes on until something
	// else stops the loop.
	MaxIterations uint

	// Goal and Instructions are what the loop is for and how it is to go about
	// it. They become part of the prompts of the agents in it.
	Goal, Instructions string
	// Order gives the steps another order than the list's, by name. It names
	// every step once, but for the finalizer.
	Order []string
	// CanExit names the agents that may end the loop; a step's name stands for
	// everything in it. Nil lets every agent.
	CanExit []string
	// Propagate lets an exit end the loops around this one too, as ADK does.
	Propagate bool
	// StopWhen ends the loop when it holds; StopCheck says how often it is
	// looked at: loop.EachIteration (the default) or loop.EachStep.
	StopWhen  *loop.Condition
	StopCheck loop.StopCheck
	// Score says how to value an iteration, and when that is good enough.
	Score *loop.Score
	// OnError says what follows a failed step: loop.StopOnError (the default)
	// ends the loop with the error. StepOnError says it for single steps, by
	// name.
	OnError     loop.ErrorPolicy
	StepOnError map[string]loop.ErrorPolicy
	// MaxConsecutiveFailures ends the loop when so many steps fail one after
	// another; 0 never does.
	MaxConsecutiveFailures uint
	// Finalizer names the sub-agent that runs once, after the loop, and whose
	// words are the loop's result. It may not exit.
	Finalizer string
	// OutputKey is the state key for the loop's result.
	OutputKey string
	// KeepStates keeps the state after the iteration before and after the best
	// one, for steps that read them. It costs a copy of the state an iteration.
	KeepStates bool
	// BeforeIteration and AfterIteration are called around each iteration, in
	// order. What they change of the state becomes an event of the loop; an
	// error ends the loop with it.
	BeforeIteration []BeforeIterationCallback
	AfterIteration  []AfterIterationCallback
	// OnStop is told why the loop stopped, before its last event.
	OnStop func(agent.InvocationContext, *loop.StopRecord)
}

// Callbacks around an iteration; see [Config].
type (
	BeforeIterationCallback func(ctx agent.Context, iteration int) error
	AfterIterationCallback  func(ctx agent.Context, it loop.IterationRecord) error
)

// Agent is what [New] returns.
type Agent struct {
	*agent.Base
	cfg   Config
	plan  *loop.Plan
	plain bool // it has no more to say than ADK's loop agent
}

// New returns a loop agent. It refuses what [agent.New] refuses, a Run of one's
// own, a loop without sub-agents, and whatever loop.Plan.Check finds.
func New(cfg Config) (agent.Agent, error) {
	name := cfg.AgentConfig.Name
	if cfg.AgentConfig.Run != nil {
		return nil, fmt.Errorf("loop agent %q: LoopAgent doesn't allow custom Run implementations", name)
	}
	cfg.own()
	a := &Agent{cfg: cfg}
	base, err := agent.NewBase(cfg.AgentConfig, a, a.run)
	if err != nil {
		return nil, err
	}
	a.Base = base
	a.plan = cfg.plan()
	if err := errors.Join(a.plan.Check(), cfg.check()); err != nil {
		return nil, fmt.Errorf("loop agent %q: %w", name, err)
	}
	a.plain = cfg.Score == nil && cfg.StopWhen == nil && cfg.Finalizer == "" && cfg.OutputKey == ""
	return a, nil
}

// Config is what the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// Plan is the rules that the loop follows. Do not change it.
func (a *Agent) Plan() *loop.Plan { return a.plan }

// Type is [agent.TypeLoop].
func (a *Agent) Type() agent.Type { return agent.TypeLoop }

// own makes the lists the agent's own: the caller may change his.
func (c *Config) own() {
	c.AgentConfig.SubAgents = slices.Clone(c.AgentConfig.SubAgents)
	c.Order, c.CanExit, c.StepOnError = slices.Clone(c.Order), slices.Clone(c.CanExit), maps.Clone(c.StepOnError)
	c.BeforeIteration, c.AfterIteration = slices.Clone(c.BeforeIteration), slices.Clone(c.AfterIteration)
}

func (c *Config) plan() *loop.Plan {
	p := &loop.Plan{
		Name: c.AgentConfig.Name, MaxIterations: c.MaxIterations, Order: c.Order, CanExit: c.mayExit(),
		StopWhen: c.StopWhen, StopCheck: c.StopCheck, Score: c.Score,
		OnError: c.OnError, MaxConsecutiveFailures: c.MaxConsecutiveFailures,
	}
	for _, sub := range c.AgentConfig.SubAgents {
		n := sub.Name()
		p.Steps = append(p.Steps, loop.Step{Name: n, OnError: c.StepOnError[n], Finalizer: n == c.Finalizer})
	}
	return p
}

// mayExit is CanExit with the agents inside a named step.
func (c *Config) mayExit() []string {
	if c.CanExit == nil {
		return nil
	}
	names := slices.Clone(c.CanExit)
	for _, n := range c.CanExit {
		for _, sub := range c.AgentConfig.SubAgents {
			if found := agent.Find(sub, n); found != nil {
				names = appendTree(names, found)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func appendTree(names []string, a agent.Agent) []string {
	names = append(names, a.Name())
	for _, sub := range a.SubAgents() {
		names = appendTree(names, sub)
	}
	return names
}

// check finds names that nobody has.
func (c *Config) check() error {
	var errs []error
	is := func(name string) bool {
		return slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return a.Name() == name })
	}
	if c.Finalizer != "" && !is(c.Finalizer) {
		errs = append(errs, fmt.Errorf("finalizer %q is not one of the sub-agents", c.Finalizer))
	}
	for _, n := range slices.Sorted(maps.Keys(c.StepOnError)) {
		if !is(n) {
			errs = append(errs, fmt.Errorf("StepOnError names %q, which is not one of the sub-agents", n))
		}
	}
	for _, n := range c.CanExit {
		if !slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return agent.Find(a, n) != nil }) {
			errs = append(errs, fmt.Errorf("CanExit names %q, which is not in the loop", n))
		}
	}
	return errors.Join(errs...)
}
