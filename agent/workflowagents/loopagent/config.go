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

// Config describes a loop agent. Every field but AgentConfig may be left at its
// zero value, which is what ADK's loop agent does.
type Config struct {
	// AgentConfig is the loop's name, sub-agents and callbacks; Run must be
	// nil. The sub-agents are the steps of an iteration, in order.
	AgentConfig agent.Config
	// Plan is the rules of the loop, for a caller that has them already. Its steps
	// are the sub-agents, in the same order; its name is not used. The fields below
	// that say the same are then left at their zero values, and of Steps only Cache
	// is used. Nil makes the plan from those fields.
	Plan *loop.Plan
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
	// QualityGate is the score that an iteration needs to be accepted, and
	// OnRegression what follows a worse one: loop.KeepBest (the default) lets
	// the state run on, loop.RollbackOnWorse undoes what the iteration changed,
	// but for keys that other sessions share (app: and user:).
	QualityGate  *float64
	OnRegression loop.Regression
	// NoProgress ends a loop that goes round in circles, NotWorth one whose next
	// iteration promises too little. Nil looks for neither.
	NoProgress *loop.NoProgress
	NotWorth   *loop.NotWorth

	// Timeout bounds the loop and IterationTimeout an iteration, delays
	// included; 0 bounds nothing. What is running then is canceled, and
	// abandoned if it has not ended after AbandonAfter, 0 meaning 2 seconds:
	// what it says and changes later has no effect.
	Timeout, IterationTimeout, AbandonAfter time.Duration
	// Budget bounds what the model calls of the loop use, within the budget
	// that it runs under. If it is the latter that is spent, the loop around
	// this one stops too.
	Budget *loop.Budget
	// Reserve is the share of Timeout and budgets that is kept for the
	// finalizer. 0 means 0.1.
	Reserve float64
	// DelayBefore and DelayAfter are waited around each iteration.
	DelayBefore, DelayAfter time.Duration
	// StateLimit is how many bytes the state may have, about, when an iteration
	// ends; 0 is no limit. From four fifths on the iteration's record warns.
	StateLimit int64

	// OnError says what follows a failed step: loop.StopOnError (the default)
	// ends the loop with the error.
	OnError loop.ErrorPolicy
	// Steps says how to treat single steps, by name.
	Steps map[string]StepPolicy
	// MaxConsecutiveFailures ends the loop when so many steps fail one after
	// another; 0 never does.
	MaxConsecutiveFailures uint
	// Finalizer names the sub-agent that runs once, after the loop, and whose
	// words are the loop's result. It may not exit.
	Finalizer string
	// FinalizeEach makes the finalizer the last step of every iteration instead.
	FinalizeEach bool
	// OutputKey is the state key for the loop's result.
	OutputKey string
	// Result is the state key that holds what an iteration has made, where that is
	// not what was said last in it: the loop's result is then that key's value. The
	// words of a step that judges, or that may leave where others may not, never are.
	Result string
	// BestOnExit hands back the best iteration after an exit too, and not the
	// iteration that was left.
	BestOnExit bool
	// KeepStates keeps the state after the iteration before and after the best
	// one, for steps that read them. It costs a copy of the state an iteration.
	KeepStates bool
	// BeforeIteration and AfterIteration are called around each iteration, in
	// order. What they change of the state becomes an event of the loop; an
	// error ends the loop with it. Their time is the loop's: when that is over, so
	// is their context, and the loop stops as it does when a step takes too long.
	BeforeIteration []BeforeIterationCallback
	AfterIteration  []AfterIterationCallback
	// OnStop is told why the loop stopped, before its last event.
	OnStop func(agent.InvocationContext, *loop.StopRecord)
}

// StepPolicy says how a loop treats one of its steps. Zero fields leave it as
// it is.
type StepPolicy struct {
	// OnError takes the place of the loop's.
	OnError loop.ErrorPolicy
	// Timeout bounds one attempt, and Adaptive makes that bound from the step's
	// own history.
	Timeout  time.Duration
	Adaptive *loop.Adaptive
	// Retry runs the step again when it fails; before that, what the failed
	// attempt has changed of the state is undone, but for keys that other
	// sessions share (app: and user:). An error with a method Permanent() bool
	// that returns true is not tried again; one with a method RetryDelay()
	// time.Duration says how long to wait at least. Circuit stops running the step when
	// it fails again and again; those with the same Endpoint are one.
	Retry   *loop.Retry
	Circuit *loop.Circuit
	// DelayBefore and DelayAfter are waited around the step.
	DelayBefore, DelayAfter time.Duration
	// Cache keeps what a deterministic step has said.
	Cache *Cache
}

// Callbacks around an iteration; see [Config].
type (
	BeforeIterationCallback func(ctx agent.Context, iteration int) error
	AfterIterationCallback  func(ctx agent.Context, it loop.IterationRecord) error
)

// owned is a value that shares nothing with v that its owner may change: not what is
// behind its pointers, nor its lists and maps. Agents and functions stay the same.
func owned(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(owned(v.Elem()))
		return c
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(owned(v.Index(i)))
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for k, e := range v.Seq2() {
			c.SetMapIndex(k, owned(e))
		}
		return c
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		for _, f := range c.Fields() {
			if f.CanSet() {
				f.Set(owned(f))
			}
		}
		return c
	}
	return v
}

// plain reports whether a loop has no more to say than ADK's.
func (c *Config) plain(p *loop.Plan) bool {
	return p.Score == nil && p.StopWhen == nil && c.OutputKey == "" && c.Result == "" &&
		p.NoProgress == nil && p.Timeout == 0 && p.IterationTimeout == 0 && p.Budget == nil &&
		p.DelayBefore == 0 && p.DelayAfter == 0 && p.StateLimit == 0 && len(c.Steps) == 0 &&
		!slices.ContainsFunc(p.Steps, func(s loop.Step) bool { return s != loop.Step{Name: s.Name} })
}

// plan is the rules that the loop follows: Plan, or what the other fields say.
func (c *Config) plan() *loop.Plan {
	p := c.Plan
	if p == nil {
		p = c.rules()
	}
	own := *p
	own.Name, own.CanExit = c.AgentConfig.Name, c.mayExit(p.CanExit)
	return &own
}

// rules is the plan that the fields besides Plan make.
func (c *Config) rules() *loop.Plan {
	p := &loop.Plan{
		MaxIterations: c.MaxIterations, Order: c.Order, CanExit: c.CanExit,
		StopWhen: c.StopWhen, StopCheck: c.StopCheck, Score: c.Score,
		OnError: c.OnError, MaxConsecutiveFailures: c.MaxConsecutiveFailures,
		Timeout: loop.Duration(c.Timeout), IterationTimeout: loop.Duration(c.IterationTimeout),
		Budget: c.Budget, Reserve: c.Reserve, NoProgress: c.NoProgress, NotWorth: c.NotWorth,
		QualityGate: c.QualityGate, OnRegression: c.OnRegression, BestOnExit: c.BestOnExit, FinalizeEach: c.FinalizeEach,
		DelayBefore: loop.Duration(c.DelayBefore), DelayAfter: loop.Duration(c.DelayAfter), StateLimit: c.StateLimit,
	}
	for _, sub := range c.AgentConfig.SubAgents {
		n := sub.Name()
		s := c.Steps[n]
		p.Steps = append(p.Steps, loop.Step{
			Name: n, OnError: s.OnError, Finalizer: n == c.Finalizer, Retry: s.Retry, Circuit: s.Circuit,
			Timeout: loop.Duration(s.Timeout), Adaptive: s.Adaptive,
			DelayBefore: loop.Duration(s.DelayBefore), DelayAfter: loop.Duration(s.DelayAfter),
		})
	}
	return p
}

// follows finds what is wrong with a Plan that is given.
func (c *Config) follows() error {
	if c.Plan == nil {
		return nil
	}
	var errs []error
	none := Config{AgentConfig: c.AgentConfig}
	if !reflect.DeepEqual(none.rules(), c.rules()) || c.Finalizer != "" {
		errs = append(errs, errors.New("the rules are in Plan and in other fields too; give them in one of the two"))
	}
	same := func(s loop.Step, a agent.Agent) bool { return s.Name == a.Name() }
	if !slices.EqualFunc(c.Plan.Steps, c.AgentConfig.SubAgents, same) {
		errs = append(errs, errors.New("the steps of Plan are not the sub-agents; give them the same names in the same order"))
	}
	return errors.Join(errs...)
}

// mayExit is the names of those that may exit, with the agents inside a named step.
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

// check finds names that nobody has.
func (c *Config) check() error {
	var errs []error
	is := func(name string) bool {
		return slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return a.Name() == name })
	}
	if c.Finalizer != "" && !is(c.Finalizer) {
		errs = append(errs, fmt.Errorf("finalizer %q is not one of the sub-agents", c.Finalizer))
	}
	for _, n := range slices.Sorted(maps.Keys(c.Steps)) {
		if !is(n) {
			errs = append(errs, fmt.Errorf("policy for step %q, which is not one of the sub-agents", n))
		}
		if k := c.Steps[n].Cache; k != nil && k.Key == nil {
			errs = append(errs, fmt.Errorf("the cache of %q needs a Key", n))
		}
	}
	if c.AbandonAfter < 0 {
		errs = append(errs, fmt.Errorf("AbandonAfter is negative: %s", c.AbandonAfter))
	}
	canExit := c.CanExit
	if c.Plan != nil {
		canExit = c.Plan.CanExit
	}
	for _, n := range canExit {
		if !slices.ContainsFunc(c.AgentConfig.SubAgents, func(a agent.Agent) bool { return agent.Find(a, n) != nil }) {
			errs = append(errs, fmt.Errorf("CanExit names %q, which is not in the loop", n))
		}
	}
	return errors.Join(errs...)
}
