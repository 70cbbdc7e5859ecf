// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
)

// limitFlags are the flags that bound a run.
type limitFlags struct {
	flags         *pflag.FlagSet
	maxIterations uint
	modelCalls    string
	timeout       time.Duration
	calls, tokens int64
	cost          float64
}

func (f *limitFlags) add(fl *pflag.FlagSet) {
	f.flags = fl
	fl.UintVar(&f.maxIterations, "max-iterations", 0, "at most so many iterations, instead of what the definition says")
	durationFlag(fl, &f.timeout, "timeout", 0, "how long the loop may take, as 30m, instead of what the definition says; 0 is as long as it needs")
	fl.StringVar(&f.modelCalls, "max-model-calls", "", "how often the run may ask a model before it counts as gone wrong: a `number`, or none, instead of what the definition says; 500 if nobody says")
	fl.Int64Var(&f.calls, "budget-calls", 0, "how many requests to models the run may make")
	fl.Int64Var(&f.tokens, "budget-tokens", 0, "how many tokens the run may use, of input and output together")
	fl.Float64Var(&f.cost, "budget-cost", 0, "what the run may cost, by the prices of the definition")
}

// iterations is nil if the flag was not given, and so is time.
func (f *limitFlags) iterations() *uint {
	if !f.flags.Changed("max-iterations") {
		return nil
	}
	return &f.maxIterations
}

func (f *limitFlags) time() (*time.Duration, error) {
	switch {
	case !f.flags.Changed("timeout"):
		return nil, nil
	case f.timeout < 0:
		return nil, fmt.Errorf("--timeout %s: give a time such as 30m, or 0 for no limit", f.timeout)
	}
	return &f.timeout, nil
}

// maxModelCalls is the limit of a run's model calls, as agent.RunConfig has it:
// the flag's, and else the definition's. Who gives the run a larger budget of
// calls means that too.
func (f *limitFlags) maxModelCalls(def *definition.Definition) (int, error) {
	if !f.flags.Changed("max-model-calls") {
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

// assume tells a worst case what the flags say.
func (f *limitFlags) assume(def *definition.Definition, given *definition.Assumed) (err error) {
	given.MaxIterations = f.iterations()
	if given.Timeout, err = f.time(); err != nil {
		return err
	}
	if given.Budget, err = f.budget(); err != nil {
		return err
	}
	given.MaxModelCalls, err = f.maxModelCalls(def)
	return err
}

// hinted adds to an error what to write where no Go program is at hand.
func hinted(err error) error {
	if errors.Is(err, agent.ErrTooManyModelCalls) {
		return fmt.Errorf("%w (in a definition that is max_model_calls, here --max-model-calls: a number, or none)", err)
	}
	return err
}

// budget is what the flags allow; nil if they do not say.
func (f *limitFlags) budget() (*budget.Limits, error) {
	var b budget.Limits
	given := false
	for _, l := range []struct {
		flag string
		n    int64
		to   *int64
	}{{"budget-calls", f.calls, &b.Calls}, {"budget-tokens", f.tokens, &b.Tokens}} {
		if !f.flags.Changed(l.flag) {
			continue
		}
		if l.n < 1 {
			return nil, fmt.Errorf("--%s %d: give at least 1, or leave it out for no limit", l.flag, l.n)
		}
		*l.to, given = l.n, true
	}
	if f.flags.Changed("budget-cost") {
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
