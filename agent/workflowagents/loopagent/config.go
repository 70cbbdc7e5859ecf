// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
)

// Config describes a loop agent. Only AgentConfig is required. With zero values in all other
// fields the loop does what ADK's loop agent does.
type Config struct {
	// AgentConfig has the loop's name, sub-agents and callbacks. Its Run must be nil. The
	// sub-agents are the steps of an iteration, in order.
	AgentConfig agent.Config
	// MaxIterations stops the loop after this many iterations. 0 sets no limit. It is the same limit as
	// Rules.MaxIterations: set one of them. ADK's loop agent has this field.
	MaxIterations uint
	// Rules says when the loop stops, how it scores an iteration, and what it does after a failure. New ignores its Name and
	// its Version.
	//
	// Rules.Steps has the rules of single steps. It needs only the sub-agents that have rules of their own, in the order of the
	// sub-agents. One of them can be the finalizer. A name in CanExit includes all agents in the step of that name.
	//
	// When a time limit is over, the context of the running step is canceled. If the step has not ended after AbandonAfter, the
	// loop abandons it. Budget counts within the budget of the run; if that is exceeded, the loop around this one stops too. A
	// rollback and a retry undo changes of the state, except for keys that sessions share (app: and user:). A step is not
	// retried if its error has a method Permanent() bool that returns true. If the error has a method RetryDelay()
	// time.Duration, its result is the shortest delay. A model that a leg of OnPlateau names must be one of the Models of the
	// agents that ask it; see llmagent.Config. From four fifths of StateLimit the iteration's record has a warning.
	Rules loop.Plan
	// Caches has the caches of deterministic steps, by the name of the step.
	Caches map[string]Cache

	// Goal is the purpose of the loop, and Instructions describe how to reach it. Both become part of the
	// prompts of the agents in the loop.
	Goal, Instructions string
	// Propagate lets an exit end the loops around this one too, as in ADK.
	Propagate bool
	// AbandonAfter is the time that a step has to end after its context is canceled. Then the loop abandons it, and the step's
	// later events have no effect. 0 means 2 seconds.
	AbandonAfter time.Duration
	// OutputKey is the state key that gets the loop's result.
	OutputKey string
	// Result is the state key that holds the result of an iteration. Without it the result of an
	// iteration is its last output. The outputs of steps that only judge do not count. Nor do those of steps that may
	// exit, if other steps may not.
	Result string
	// Scorers names agents in the loop that write the score, besides the judge and the scorers of the rules. What people tell the run
	// does not reach their prompts, because scores would not compare.
	Scorers []string
	// HandBack names state keys that belong to the result. When the loop ends, each of them gets the value that
	// it had at the end of the result's iteration, unless that iteration was undone. If there are scores, a
	// finalizer begins with the values of the best iteration, and may change them.
	HandBack []string
	// KeepStates keeps the state of the previous and of the best iteration, for steps that read
	// them. It costs one copy of the state per iteration.
	KeepStates bool
	// BeforeIteration and AfterIteration are called before and after each iteration, in order. Their
	// changes of the state become an event of the loop. An error ends the loop. Their time counts in the
	// loop's time. When the loop's time is over, their context is canceled, and the loop stops as it does for a step
	// that takes too long.
	BeforeIteration []BeforeIterationCallback
	AfterIteration  []AfterIterationCallback
	// OnStop is called with the stop record, before the last event of the loop.
	OnStop func(agent.InvocationContext, *loop.StopRecord)
}

// Callbacks around an iteration; see [Config].
type (
	BeforeIterationCallback func(ctx agent.Context, iteration int) error
	AfterIterationCallback  func(ctx agent.Context, it loop.IterationRecord) error
)

// plain reports whether no field of the config and no rule needs an event with the loop's result at its end. ADK's loop agent
// yields no such event either.
func (c *Config) plain(p *loop.Plan) bool {
	return p.Score == nil && p.StopWhen == nil && c.OutputKey == "" && c.Result == "" && len(c.HandBack) == 0 &&
		p.NoProgress == nil && p.Timeout == 0 && p.IterationTimeout == 0 && p.Budget == nil &&
		p.DelayBefore == 0 && p.DelayAfter == 0 && p.StateLimit == 0 && len(c.Caches) == 0 &&
		!slices.ContainsFunc(p.Steps, func(s loop.Step) bool { return s != loop.Step{Name: s.Name} })
}

// plan returns the rules for the sub-agents, with the current version.
func (c *Config) plan() *loop.Plan {
	p := c.Rules
	p.Name, p.MaxIterations = c.AgentConfig.Name, cmp.Or(c.MaxIterations, p.MaxIterations)
	p.CanExit, p.Steps = c.exitNames(p.CanExit), nil
	for _, sub := range c.AgentConfig.SubAgents {
		s := loop.Step{Name: sub.Name()}
		if i := c.ruleIndex(s.Name); i >= 0 {
			s = c.Rules.Steps[i]
		}
		p.Steps = append(p.Steps, s)
	}
	p.Version = p.Current()
	return &p
}

// ruleIndex returns the index of a step in Rules.Steps, -1 if it has no rules of its own.
func (c *Config) ruleIndex(step string) int {
	return slices.IndexFunc(c.Rules.Steps, func(s loop.Step) bool { return s.Name == step })
}

// exitNames returns the names of the agents that may exit, with the agents inside a named step.
func (c *Config) exitNames(given []string) []string {
	if given == nil {
		return nil
	}
	names := slices.Clone(given)
	for _, n := range given {
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

// check returns an error for two limits of iterations, for each name that no agent has, for a cache without a Key, and for a
// negative AbandonAfter.
func (c *Config) check() error {
	var errs []error
	if n, own := c.Rules.MaxIterations, c.MaxIterations; n > 0 && own > 0 && n != own {
		errs = append(errs, fmt.Errorf("MaxIterations is %d and Rules.MaxIterations is %d; set one of them", own, n))
	}
	errs = append(errs, c.checkSteps()...)
	for _, n := range slices.Sorted(maps.Keys(c.Caches)) {
		if c.stepIndex(n) < 0 {
			errs = append(errs, fmt.Errorf("the cache of %q belongs to none of the sub-agents; correct its name", n))
		}
		if c.Caches[n].Key == nil {
			errs = append(errs, fmt.Errorf("the cache of %q has no Key; set one", n))
		}
	}
	if c.AbandonAfter < 0 {
		errs = append(errs, fmt.Errorf("AbandonAfter is %s; it must not be negative", c.AbandonAfter))
	}
	for _, n := range c.Rules.CanExit {
		if !slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return agent.Find(a, n) != nil }) {
			errs = append(errs, fmt.Errorf("CanExit names %q, which is not in the loop; correct the name", n))
		}
	}
	return errors.Join(errs...)
}

// checkSteps returns an error for each of Rules.Steps that is not a sub-agent, that comes twice, or that has another place than
// among the sub-agents.
func (c *Config) checkSteps() (errs []error) {
	last := 0
	for i, s := range c.Rules.Steps {
		at := c.stepIndex(s.Name)
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("Rules.Steps names %q, which is not one of the sub-agents; correct its name", s.Name))
		case c.ruleIndex(s.Name) != i:
			errs = append(errs, fmt.Errorf("Rules.Steps names %q twice; give its rules once", s.Name))
		case at < last:
			errs = append(errs, fmt.Errorf("Rules.Steps has %q after %q, unlike the sub-agents; use their order, and Rules.Order for "+
				"another one", s.Name, c.AgentConfig.SubAgents[last].Name()))
		default:
			last = at
		}
	}
	return errs
}

// stepIndex returns the index of a step among the sub-agents, -1 if it is none.
func (c *Config) stepIndex(step string) int {
	return slices.IndexFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return a.Name() == step })
}
