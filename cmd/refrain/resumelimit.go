// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// addLimits adds the flags with which a run gets other limits.
func (f *resumeFlags) addLimits(fl *pflag.FlagSet) {
	f.limits.add(fl)
	fl.UintVar(&f.add, "add-iterations", 0, "so many `iterations` more than the run was to have")
	fl.BoolVar(&f.retry, "retry", false, "go on with a run that has failed: try the failed step again")
}

// raise gives the program the limits of the flags. It returns whether there are any:
// then a run goes on that had reached one.
func (f *resumeFlags) raise(p *program, def *definition.Definition) (bool, error) {
	if f.limits.flags == nil {
		return false, nil
	}
	raised := false
	if n := f.limits.iterations(); n != nil {
		p.MaxIterations, raised = n, true
	}
	if f.add > 0 {
		most := p.most(def)
		if raised || most == 0 {
			return false, errors.New("--add-iterations: give --max-iterations or this, for a loop that has a limit")
		}
		if f.add > math.MaxInt32-min(most, math.MaxInt32) {
			return false, fmt.Errorf("--add-iterations %d: that is more than a loop can have", f.add)
		}
		p.MaxIterations, raised = new(most+f.add), true
	}
	d, err := f.limits.time()
	if err != nil {
		return false, err
	}
	if d != nil {
		p.Timeout, raised = d, true
	}
	b, err := f.limits.budget()
	if err != nil {
		return false, err
	}
	if b != nil {
		p.Budget, raised = merged(p.Budget, b), true
	}
	if f.limits.flags.Changed("max-model-calls") {
		if p.MaxModelCalls, err = f.limits.maxModelCalls(def); err != nil {
			return false, err
		}
		raised = true
	}
	return raised, nil
}

// most is how many iterations the loop may have that limits are for: the root, or
// the only one; 0: as many as it likes.
func (p *program) most(def *definition.Definition) uint {
	if p.MaxIterations != nil {
		return *p.MaxIterations
	}
	for a := range def.Root.All {
		if a.Loop != nil {
			return a.Loop.MaxIterations
		}
	}
	return 0
}

// enough refuses a limit of iterations that a run has reached already.
func enough(view *session.View, most uint) error {
	run := session.RunOf(view)
	if run == nil || run.Stop != string(loop.ReasonMaxIterations) || most == 0 {
		return nil
	}
	evs := view.Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		if ev.InvocationID != run.ID || ev.Mark == nil || ev.Mark.Kind != session.MarkLoopStopped || ev.Iteration != 0 {
			continue
		}
		var rec loop.StopRecord
		if err := ev.Mark.Decode(&rec); err != nil {
			return err
		}
		if uint(max(0, rec.Iterations)) >= most {
			return fmt.Errorf("it has had %d iterations, and %d are the most now: give more, with --add-iterations or --max-iterations", rec.Iterations, most)
		}
		break
	}
	return view.Err()
}

// merged is a budget with what another one says.
func merged(old, given *budget.Limits) *budget.Limits {
	if old == nil {
		return given
	}
	m := *old
	if given.Calls > 0 {
		m.Calls = given.Calls
	}
	if given.Tokens > 0 {
		m.Tokens = given.Tokens
	}
	if given.Cost != nil {
		m.Cost = given.Cost
	}
	return &m
}
