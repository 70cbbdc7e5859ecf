// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

// Limits are the flags that bound a run.
type Limits struct {
	Flags         *pflag.FlagSet
	maxIterations uint
	modelCalls    string
	timeout       time.Duration
	calls, tokens int64
	cost          float64
}

// Add adds the flags to a command.
func (f *Limits) Add(fl *pflag.FlagSet) {
	f.Flags = fl
	fl.UintVar(&f.maxIterations, "max-iterations", 0, "stop after this many iterations, in place of the "+
		"definition's limit")
	term.DurationFlag(fl, &f.timeout, "timeout", 0, "time limit of the loop, such as 30m, in place of the "+
		"definition's; 0 removes the limit")
	fl.StringVar(&f.modelCalls, "max-model-calls", "", "fail after this `number` of model calls, or none for no "+
		"limit, in place of the definition's (default 500)")
	fl.Int64Var(&f.calls, "budget-calls", 0, "stop when this many requests were sent to models")
	fl.Int64Var(&f.tokens, "budget-tokens", 0, "stop when this many tokens were used, input and output together")
	fl.Float64Var(&f.cost, "budget-cost", 0, "stop at this cost, by the prices in the definition")
}

// Iterations is the value of --max-iterations; nil if the flag was not given.
func (f *Limits) Iterations() *uint {
	if !f.Flags.Changed("max-iterations") {
		return nil
	}
	return &f.maxIterations
}

// Time is the value of --timeout; nil if the flag was not given.
func (f *Limits) Time() (*time.Duration, error) {
	switch {
	case !f.Flags.Changed("timeout"):
		return nil, nil
	case f.timeout < 0:
		return nil, fmt.Errorf("--timeout %s: give a time such as 30m, or 0 for no limit", f.timeout)
	}
	return &f.timeout, nil
}

// MaxModelCalls is the limit of a run's model calls, as agent.RunConfig has it:
// the flag's, and else the definition's. Who gives the run a larger budget of
// calls means that too.
func (f *Limits) MaxModelCalls(def *definition.Definition) (int, error) {
	if !f.Flags.Changed("max-model-calls") {
		n := def.MaxModelCalls
		if f.calls > agent.DefaultMaxLLMCalls && n >= 0 {
			n = max(n, int(min(f.calls, math.MaxInt32)))
		}
		return n, nil
	}
	if f.modelCalls == "none" {
		return -1, nil
	}
	n, err := strconv.ParseInt(f.modelCalls, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--max-model-calls %s: give a number of at least 1, or none", f.modelCalls)
	}
	return int(n), nil
}

// Assume tells a worst case what the flags say.
func (f *Limits) Assume(def *definition.Definition, given *definition.Assumed) (err error) {
	given.MaxIterations = f.Iterations()
	if given.Timeout, err = f.Time(); err != nil {
		return err
	}
	if given.Budget, err = f.Budget(); err != nil {
		return err
	}
	given.MaxModelCalls, err = f.MaxModelCalls(def)
	return err
}

// Hint adds to an error the flag that helps.
func Hint(err error) error {
	if errors.Is(err, agent.ErrTooManyModelCalls) {
		return fmt.Errorf("%w (or with --max-model-calls: a number, or none)", err)
	}
	return err
}

// Budget is what the flags allow; nil if they do not say.
func (f *Limits) Budget() (*budget.Limits, error) {
	var b budget.Limits
	given := false
	for _, l := range []struct {
		flag string
		n    int64
		to   *int64
	}{{"budget-calls", f.calls, &b.Calls}, {"budget-tokens", f.tokens, &b.Tokens}} {
		if !f.Flags.Changed(l.flag) {
			continue
		}
		if l.n < 1 {
			return nil, fmt.Errorf("--%s %d: give at least 1, or leave it out for no limit", l.flag, l.n)
		}
		*l.to, given = l.n, true
	}
	if f.Flags.Changed("budget-cost") {
		if !(f.cost >= 0) || math.IsInf(f.cost, 0) {
			return nil, fmt.Errorf("--budget-cost %v: give 0 or more", f.cost)
		}
		b.Cost, given = &f.cost, true
	}
	if !given {
		return nil, nil
	}
	return &b, nil
}
