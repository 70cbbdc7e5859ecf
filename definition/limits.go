// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
)

// Limits are limits of a run that its starter gives. They replace those of the definition; zero
// fields keep them. [Definition.Build] applies those of the loop, [Definition.RunConfig] the others.
type Limits struct {
	// MaxIterations replaces the limit of the root loop or, if the root is not a loop, of the only
	// loop. 0 means no limit; then something else must stop the loop.
	MaxIterations *uint `json:"max_iterations,omitempty"`
	// Timeout replaces the time limit of the same loop; 0 means no limit.
	Timeout *time.Duration `json:"timeout,omitempty"`
	// MaxModelCalls fails the run after this many model calls; a negative number means no limit.
	MaxModelCalls int `json:"max_model_calls,omitempty"`
	// Budget limits the whole run, in addition to the budgets of loops.
	Budget *budget.Limits `json:"budget,omitempty"`
}

// With returns the limits with those given in their place. A given budget replaces only the numbers
// that it has.
func (l Limits) With(given Limits) Limits {
	if given.MaxIterations != nil {
		l.MaxIterations = given.MaxIterations
	}
	if given.Timeout != nil {
		l.Timeout = given.Timeout
	}
	if given.MaxModelCalls != 0 {
		l.MaxModelCalls = given.MaxModelCalls
	}
	switch b := given.Budget; {
	case l.Budget == nil:
		l.Budget = b
	case b != nil:
		both := *l.Budget
		if b.Calls > 0 {
			both.Calls = b.Calls
		}
		if b.Tokens > 0 {
			both.Tokens = b.Tokens
		}
		if b.Cost != nil {
			both.Cost = b.Cost
		}
		l.Budget = &both
	}
	return l
}

// RunConfig returns how a runner runs the agents: with the prices of the definition, its limit of
// model calls, and the limits given. A given budget of more calls than the limit raises it.
func (d *Definition) RunConfig(given Limits) agent.RunConfig {
	most := given.MaxModelCalls
	if most == 0 {
		most = d.MaxModelCalls
		if b := given.Budget; b != nil && most >= 0 {
			most = max(most, raisedCalls(b.Calls))
		}
	}
	return agent.RunConfig{Prices: d.Prices, Budget: given.Budget, MaxLLMCalls: most}
}

// raisedCalls returns the limit of model calls for a budget of calls; 0 means the default.
func raisedCalls(calls int64) int {
	if calls <= agent.DefaultMaxLLMCalls {
		return 0
	}
	return int(min(calls, math.MaxInt32))
}

// Allows returns nil if a run can have these limits. Otherwise it returns the error of
// [Definition.Build]: the definition has no loop to limit, or the limits remove a loop's only limit.
func (d *Definition) Allows(given Limits) error {
	_, _, err := d.limited(given)
	return err
}

// limited returns the loop that the limits are for, and what it then is; nil if they leave all loops
// as they are.
func (d *Definition) limited(given Limits) (*Agent, Loop, error) {
	if given.MaxIterations == nil && given.Timeout == nil {
		return nil, Loop{}, nil
	}
	what, field := "max iterations", "max_iterations"
	if given.MaxIterations == nil {
		what, field = "a timeout is", "timeout"
	}
	var loops []*Agent
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 0:
		return nil, Loop{}, errors.New(what + " given, but there is no loop")
	case d.Root.Type != TypeLoop && len(loops) > 1:
		return nil, Loop{}, fmt.Errorf("%s given, but there are %d loops and none is the root; set %s in the file", what, len(loops),
			field)
	}
	l := *loops[0].Loop
	if n := given.MaxIterations; n != nil {
		l.MaxIterations = *n
	}
	if t := given.Timeout; t != nil {
		if *t < 0 {
			return nil, Loop{}, fmt.Errorf("the timeout given is negative: %s", *t)
		}
		l.Timeout, l.meant = *t, true
		l.clamp()
	}
	if endless(&l, loops[0]) {
		return nil, Loop{}, fmt.Errorf("%s [%s] (%s)", endlessMessage(loops[0]), CodeEndless, endlessHint)
	}
	return loops[0], l, nil
}
