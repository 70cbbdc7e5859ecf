// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/deffile"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/definition"
)

// addLimits adds the flags with which a run gets other limits.
func (f *resumeFlags) addLimits(fl *pflag.FlagSet) {
	f.limits.Add(fl)
	fl.UintVar(&f.add, "add-iterations", 0, "raise the limit by this many `iterations`")
	fl.BoolVar(&f.retry, "retry", false, "try the failed step of a failed run again")
}

// raise gives the program the limits of the flags. It returns whether there are any:
// then a run goes on that had reached one.
func (f *resumeFlags) raise(p *deffile.Program, def *definition.Definition) (bool, error) {
	if f.limits.Flags == nil {
		return false, nil
	}
	raised := false
	if n := f.limits.Iterations(); n != nil {
		p.MaxIterations, raised = n, true
	}
	if f.add > 0 {
		most := p.Most(def)
		if raised || most == 0 {
			return false, errors.New("--add-iterations: give --max-iterations or this, for a loop that has a limit")
		}
		if f.add > math.MaxInt32-min(most, math.MaxInt32) {
			return false, fmt.Errorf("--add-iterations %d: that is more than a loop can have", f.add)
		}
		p.MaxIterations, raised = new(most+f.add), true
	}
	d, err := f.limits.Time()
	if err != nil {
		return false, err
	}
	if d != nil {
		p.Timeout, raised = d, true
	}
	b, err := f.limits.Budget()
	if err != nil {
		return false, err
	}
	if b != nil {
		p.Budget, raised = deffile.Merge(p.Budget, b), true
	}
	if f.limits.Flags.Changed("max-model-calls") {
		if p.MaxModelCalls, err = f.limits.MaxModelCalls(def); err != nil {
			return false, err
		}
		raised = true
	}
	return raised, nil
}
