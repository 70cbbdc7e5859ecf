// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
)

// Config describes a loop agent. Only AgentConfig is required. With zero values in all other
// fields the loop does what ADK's loop agent does.
//
// The rules of the loop are either in the fields below, or in Plan.
type Config struct {
	// AgentConfig has the loop's name, sub-agents and callbacks. Its Run must be nil. The
	// sub-agents are the steps of an iteration, in order.
	AgentConfig agent.Config
	// Plan has the rules of the loop, for a caller that has a plan, such as package definition.
	// The steps of the plan must have the names of the sub-agents, in the same order. The plan's name is ignored.
	// With a Plan, leave the fields that state the same rules empty; in Steps, set only Cache. If
	// Plan is nil, New makes the plan from the fields.
	Plan *loop.Plan
	// MaxIterations stops the loop after this many iterations. 0 sets no limit.
	MaxIterations uint

	// Goal is the purpose of the loop, and Instructions describe how to reach it. Both become part of the
	// prompts of the agents in the loop.
	Goal, Instructions string
	// Order is the order of the steps in an iteration, by name. It names every step once,
	// except the finalizer. Empty means the order of the sub-agents.
	Order []string
	// CanExit names the agents that may end the loop. The name of a step includes all agents in
	// it. Nil lets every agent end the loop.
	CanExit []string
	// Propagate lets an exit end the loops around this one too, as in ADK.
	Propagate bool
	// StopWhen stops the loop when the condition holds. StopCheck says when it is evaluated:
	// loop.EachIteration (the default) or loop.EachStep.
	StopWhen  *loop.Condition
	StopCheck loop.StopCheck
	// Score says how to read the score of an iteration, and which score stops the loop.
	Score *loop.Score
	// QualityGate is the lowest score at which an iteration is accepted. OnRegression says what
	// happens after a worse iteration: loop.KeepBest (the default) keeps
	// the state, loop.RollbackOnWorse undoes the iteration's changes, except for keys that
	// sessions share (app: and user:).
	QualityGate  *float64
	OnRegression loop.Regression
	// OnPlateau lists further attempts to improve a loop that has converged. Before it stops, the loop carries out each entry
	// once, in order. An entry begins with the best state so far, or with the state of the loop's start. A model that an entry
	// names must be one of the Models of the agents that ask it; see llmagent.Config. With nil, a converged loop stops.
	OnPlateau []loop.Leg
	// NoProgress stops a loop whose results repeat. NotWorth stops a loop whose next iteration
	// promises too little. Nil turns the check off.
	NoProgress *loop.NoProgress
	NotWorth   *loop.NotWorth

	// Timeout limits the time of the loop, and IterationTimeout the time of an iteration. Both include delays; 0
	// sets no limit. When the time is over, the context of the running step is canceled. If the step has not ended
	// after AbandonAfter (0 means 2 seconds), the loop abandons it, and the step's later events have no effect.
	Timeout, IterationTimeout, AbandonAfter time.Duration
	// Budget limits the usage of the loop's model calls, within the budget of the run. If the budget
	// of the run is exceeded, the loop around this one stops too.
	Budget *loop.Budget
	// FinalizerReserve is the share of Timeout and Budget that is kept for the finalizer. It must be below 1; 0 means 0.1.
	FinalizerReserve float64
	// DelayBefore and DelayAfter are the delays before and after each iteration.
	DelayBefore, DelayAfter time.Duration
	// StateLimit fails a step that would make the state larger than about this many bytes, and
	// ends the loop with an error if the state is larger for another reason at the end of an iteration;
	// 0 sets no limit. From four fifths of the limit the iteration's record has a warning.
	StateLimit int64

	// OnError says what happens after a step has failed: loop.StopOnError (the default) ends
	// the loop with the error.
	OnError loop.ErrorPolicy
	// Steps has the policies of single steps, by name.
	Steps map[string]StepPolicy
	// MaxConsecutiveFailures ends the loop after this many failed steps in a row; 0 sets no
	// limit.
	MaxConsecutiveFailures uint
	// Finalizer names the sub-agent that runs once, after the loop. Its output is the loop's result.
	// It may not exit.
	Finalizer string
	// FinalizeEach makes the finalizer the last step of every iteration instead.
	FinalizeEach bool
	// OutputKey is the state key that gets the loop's result.
	OutputKey string
	// Result is the state key that holds the result of an iteration. Without it the result of an
	// iteration is its last output. The outputs of steps that only judge do not count. Nor do those of steps that may
	// exit, if other steps may not.
	Result string
	// Scorers names agents in the loop that write the score, besides the judge and the scorers of the plan. What people tell the run
	// does not reach their prompts, because scores would not compare.
	Scorers []string
	// HandBack names state keys that belong to the result. When the loop ends, each of them gets the value that
	// it had at the end of the result's iteration, unless that iteration was undone. If there are scores, a
	// finalizer begins with the values of the best iteration, and may change them.
	HandBack []string
	// BestOnExit makes the best iteration the result after an exit too. The default is the iteration
	// in which the exit happened.
	BestOnExit bool
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

// StepPolicy says how a loop treats one of its steps. A zero field means the loop's rule.
type StepPolicy struct {
	// OnError replaces the loop's OnError.
	OnError loop.ErrorPolicy
	// Timeout limits one attempt. AdaptiveTimeout computes that limit from the times of the step's
	// earlier runs.
	Timeout         time.Duration
	AdaptiveTimeout *loop.AdaptiveTimeout
	// Retry runs a failed step again. Before that it undoes the step's changes of the state, except for keys
	// that sessions share (app: and user:). A step is not retried if its error has a method Permanent() bool
	// that returns true. If the error has a method RetryDelay() time.Duration, its result is the shortest delay.
	// Circuit stops running a step that fails repeatedly; steps with the same Endpoint share one circuit.
	Retry   *loop.Retry
	Circuit *loop.Circuit
	// DelayBefore and DelayAfter are the delays before and after the step.
	DelayBefore, DelayAfter time.Duration
	// Cache reuses the result of a deterministic step.
	Cache *Cache
}

// Callbacks around an iteration; see [Config].
type (
	BeforeIterationCallback func(ctx agent.Context, iteration int) error
	AfterIterationCallback  func(ctx agent.Context, it loop.IterationRecord) error
)

// plain reports whether no field of the config or the plan needs an event with the loop's result at its end. ADK's loop agent
// yields no such event either.
func (c *Config) plain(p *loop.Plan) bool {
	return p.Score == nil && p.StopWhen == nil && c.OutputKey == "" && c.Result == "" && len(c.HandBack) == 0 &&
		p.NoProgress == nil && p.Timeout == 0 && p.IterationTimeout == 0 && p.Budget == nil &&
		p.DelayBefore == 0 && p.DelayAfter == 0 && p.StateLimit == 0 && len(c.Steps) == 0 &&
		!slices.ContainsFunc(p.Steps, func(s loop.Step) bool { return s != loop.Step{Name: s.Name} })
}

// plan returns a copy of Plan, or of the plan that the other fields describe, with the current version of the rules.
func (c *Config) plan() *loop.Plan {
	p := c.Plan
	if p == nil {
		p = c.rules()
	}
	own := *p
	own.Name, own.CanExit = c.AgentConfig.Name, c.mayExit(p.CanExit)
	own.Version = own.Current()
	return &own
}

// rules returns the plan that the fields other than Plan describe.
func (c *Config) rules() *loop.Plan {
	p := &loop.Plan{
		MaxIterations: c.MaxIterations, Order: c.Order, CanExit: c.CanExit,
		StopWhen: c.StopWhen, StopCheck: c.StopCheck, Score: c.Score,
		OnError: c.OnError, MaxConsecutiveFailures: c.MaxConsecutiveFailures,
		Timeout: loop.Duration(c.Timeout), IterationTimeout: loop.Duration(c.IterationTimeout),
		Budget: c.Budget, FinalizerReserve: c.FinalizerReserve, NoProgress: c.NoProgress, NotWorth: c.NotWorth,
		QualityGate: c.QualityGate, OnRegression: c.OnRegression, BestOnExit: c.BestOnExit, OnPlateau: c.OnPlateau,
		FinalizeEach: c.FinalizeEach,
		DelayBefore:  loop.Duration(c.DelayBefore), DelayAfter: loop.Duration(c.DelayAfter), StateLimit: c.StateLimit,
	}
	for _, sub := range c.AgentConfig.SubAgents {
		n := sub.Name()
		s := c.Steps[n]
		p.Steps = append(p.Steps, loop.Step{
			Name: n, OnError: s.OnError, Finalizer: n == c.Finalizer, Retry: s.Retry, Circuit: s.Circuit,
			Timeout: loop.Duration(s.Timeout), AdaptiveTimeout: s.AdaptiveTimeout,
			DelayBefore: loop.Duration(s.DelayBefore), DelayAfter: loop.Duration(s.DelayAfter),
		})
	}
	return p
}

// checkPlan returns an error for a Plan that does not fit the other fields.
func (c *Config) checkPlan() error {
	if c.Plan == nil {
		return nil
	}
	var errs []error
	none := Config{AgentConfig: c.AgentConfig}
	if !reflect.DeepEqual(none.rules(), c.rules()) || c.Finalizer != "" {
		errs = append(errs, errors.New("the rules are both in Plan and in other fields; use one of the two"))
	}
	same := func(s loop.Step, a agent.Agent) bool { return s.Name == a.Name() }
	if !slices.EqualFunc(c.Plan.Steps, c.AgentConfig.SubAgents, same) {
		errs = append(errs, errors.New("the steps of Plan are not the sub-agents; give them the same names in the "+
			"same order"))
	}
	return errors.Join(errs...)
}

// mayExit returns the names of the agents that may exit, with the agents inside a named step.
func (c *Config) mayExit(given []string) []string {
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

// check returns an error for each name that no agent has, for a cache without a Key, and for a negative AbandonAfter.
func (c *Config) check() error {
	var errs []error
	is := func(name string) bool {
		return slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return a.Name() == name })
	}
	if c.Finalizer != "" && !is(c.Finalizer) {
		errs = append(errs, fmt.Errorf("finalizer %q is not one of the sub-agents; correct its name", c.Finalizer))
	}
	for _, n := range slices.Sorted(maps.Keys(c.Steps)) {
		if !is(n) {
			errs = append(errs, fmt.Errorf("policy for step %q, which is not one of the sub-agents; correct its name", n))
		}
		if k := c.Steps[n].Cache; k != nil && k.Key == nil {
			errs = append(errs, fmt.Errorf("the cache of %q has no Key; set one", n))
		}
	}
	if c.AbandonAfter < 0 {
		errs = append(errs, fmt.Errorf("AbandonAfter is %s; it must not be negative", c.AbandonAfter))
	}
	canExit := c.CanExit
	if c.Plan != nil {
		canExit = c.Plan.CanExit
	}
	for _, n := range canExit {
		if !slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return agent.Find(a, n) != nil }) {
			errs = append(errs, fmt.Errorf("CanExit names %q, which is not in the loop; correct the name", n))
		}
	}
	return errors.Join(errs...)
}
