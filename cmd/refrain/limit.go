// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/budget"
)

// limitFlags are the flags that bound a run.
type limitFlags struct {
	flags         *pflag.FlagSet
	maxIterations uint
	timeout       time.Duration
	calls, tokens int64
	cost          float64
}

func (f *limitFlags) add(fl *pflag.FlagSet) {
	f.flags = fl
	fl.UintVar(&f.maxIterations, "max-iterations", 0, "at most so many iterations, instead of what the definition says")
	fl.DurationVar(&f.timeout, "timeout", 0, "how long the loop may take, as 30m, instead of what the definition says; 0 is as long as it needs")
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
