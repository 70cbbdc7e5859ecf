// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Most returns the iteration limit of the loop to which limits apply; 0 means no limit.
func (p *Program) Most(def *definition.Definition) uint {
	if p.MaxIterations != nil {
		return *p.MaxIterations
	}
	if l := limitedLoop(def); l != nil {
		return l.Loop.MaxIterations
	}
	return 0
}

// AddIterations raises the iteration limit of the loop to which limits apply. It fails if the loop has none, or if
// the sum is more than a loop can have.
func (p *Program) AddIterations(def *definition.Definition, n uint) error {
	most := p.Most(def)
	switch {
	case limitedLoop(def) == nil:
		return errors.New("the definition has no loop; a loop in Go has its limit in the code")
	case most == 0:
		return errors.New("the loop has no limit of iterations")
	case n > math.MaxInt32-min(most, math.MaxInt32):
		return fmt.Errorf("%d more iterations are more than a loop can have", n)
	}
	p.MaxIterations = new(most + n)
	return nil
}

// limitedLoop returns the loop to which limits apply: the root, or the only one; nil if there is none.
func limitedLoop(def *definition.Definition) *definition.Agent {
	for a := range def.Root.All {
		if a.Loop != nil {
			return a
		}
	}
	return nil
}

// Follows refuses limits that the run has passed: with them the run would have stopped earlier, so its log does not
// fit them. Nothing has been written yet.
func (p *Program) Follows(view *session.View, def *definition.Definition) error {
	run, l := session.RunOf(view), limitedLoop(def)
	if run == nil || l == nil {
		return nil
	}
	past, err := passOf(view, run.ID, l.Name)
	if err != nil {
		return err
	}
	most, timeout := p.Most(def), l.Loop.Timeout
	if p.Timeout != nil {
		timeout = loop.Duration(*p.Timeout)
	}
	past.plan.Timeout = timeout
	left, timed := past.plan.Left(&loop.Tally{Active: past.before})
	switch done := uint(past.iteration); {
	case past.stop != nil && past.stop.Reason == loop.ReasonMaxIterations && most > 0 && done >= most:
		return fmt.Errorf("it has made %d iterations, and the limit is now %d; raise it with --add-iterations or "+
			"--max-iterations", done, most)
	case past.stop != nil && past.stop.Reason != loop.ReasonCanceled:
	case most > 0 && done > most:
		return fmt.Errorf("it has begun iteration %d, and the limit is now %d; give at least %d with --max-iterations",
			done, most, done)
	case timed && past.begun && left <= 0:
		return fmt.Errorf("its loop has worked for %s, longer than the timeout of %s; give a longer time with "+
			"--timeout, or 0 for no limit",
			brief.Clock(past.before), timeout)
	}
	return nil
}

// pass is the progress of a loop in a log.
type pass struct {
	plan      loop.Plan
	iteration int           // the last that has begun
	begun     bool          // a step has begun
	active    time.Duration // of the steps that have ended
	before    time.Duration // of those that had ended before the last one began
	stop      *loop.StopRecord
}

// passOf finds in the log of a run the loop of a name that is in no other loop.
func passOf(view *session.View, id, name string) (p pass, err error) {
	gone := view.Log().Superseded()
	for ev := range view.Log().Outline() {
		if ev.InvocationID != id || ev.Mark == nil || gone.Has(ev.Seq) ||
			strings.Contains(string(ev.Address.Parent()), "[") {
			continue
		}
		switch kind := ev.Mark.Kind; {
		case ev.Address.Agent() == name && kind == mark.KindLoopStarted:
			p = pass{}
			err = ev.Mark.Decode(&p.plan)
		case ev.Address.Agent() == name && kind == mark.KindLoopContinued:
			p.plan, p.stop = loop.Plan{}, nil
			err = ev.Mark.Decode(&p.plan)
		case ev.Address.Agent() == name && kind == mark.KindLoopStopped:
			p.stop = new(loop.StopRecord)
			err = ev.Mark.Decode(p.stop)
		case ev.Address.Parent().Agent() == name && kind == mark.KindStepStarted && ev.Iteration > 0:
			p.iteration, p.begun, p.before = max(p.iteration, ev.Iteration), true, p.active
		case ev.Address.Parent().Agent() == name && kind == mark.KindStepFinished:
			var fin struct{ Outcome loop.Outcome }
			err = ev.Mark.Decode(&fin)
			p.active += max(0, fin.Outcome.Finished.Sub(fin.Outcome.Started)) + max(0, fin.Outcome.Between)
		}
		if err != nil {
			return p, err
		}
	}
	return p, view.Err()
}
