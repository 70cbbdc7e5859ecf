// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// TimeoutError reports that the time of a step, an iteration or the loop ended while a step ran.
type TimeoutError struct {
	// Kind is loop.Timeout, loop.IterationTimeout or loop.TotalTimeout.
	Kind string
	// Step is the name of the step that was running; empty if no step was. After is the time that the
	// step had; 0 if the step had not begun. Without a step it is the time that the iteration or the loop had.
	Step  string
	After time.Duration
	// Abandoned reports that the step did not end after its context was canceled, and the loop no longer waits for it.
	Abandoned bool
}

// Error names the limit and the step.
func (e *TimeoutError) Error() string {
	what := "the iteration"
	if e.Kind == loop.TotalTimeout {
		what = "the loop"
	}
	var s string
	switch after := brief.Clock(e.After); {
	case e.Step == "":
		s = fmt.Sprintf("%s took longer than %s", what, after)
	case e.Kind == loop.Timeout:
		s = fmt.Sprintf("%s took longer than %s", e.Step, after)
	case e.After == 0:
		s = fmt.Sprintf("%s's time was over before %s began", what, e.Step)
	default:
		s = fmt.Sprintf("%s's time was over %s into %s", what, after, e.Step)
	}
	if e.Abandoned {
		s += "; it does not heed its context and was abandoned"
	}
	return s
}

// Timeout returns true, as errors of package net do.
func (e *TimeoutError) Timeout() bool { return true }

// runGuarded runs a step with a time limit or a grace. When the time is over or the run is canceled, the step's context is
// canceled. If the step has not ended after the loop's grace, the loop abandons it.
func (r *run) runGuarded(d *loop.Decision, in *drive.StepRun) (*drive.StepResult, stepEnd) {
	var late, gone *TimeoutError
	if in.Context == nil && (d.Timeout > 0 || r.mayIdle[d.Step]) {
		in.Context = r.ctx
	}
	if d.Timeout > 0 {
		late = &TimeoutError{Kind: d.TimeoutKind, Step: r.plan.Steps[d.Step].Name, After: d.Timeout}
		gone = new(*late) // a copy, because an abandoned step may still read late
		gone.Abandoned = true
		in.TimeoutErr, in.AbandonErr = late, r.stepError(d, gone)
	}
	switch {
	case r.mayIdle[d.Step]:
		ctx, stop := r.withStepClock(in.Context, d.Timeout, d.Wait, late, gone)
		defer stop()
		in.Context = ctx
	case late != nil:
		ctx, cancel := context.WithTimeoutCause(in.Context, d.Timeout, late)
		defer cancel()
		in.Context = ctx
	}
	res := r.guardedStep(d.Step).RunAs(in, r.steps.onEvent)
	if res.Abandoned {
		r.steps.guarded[d.Step] = nil
	}
	switch {
	case res.Err == nil || late == nil:
	case res.Err == in.TimeoutErr:
		d.TimeoutKind = late.Kind
		res.Err = r.stepError(d, late)
		return res, timedOut
	case res.Err == in.AbandonErr:
		d.TimeoutKind = gone.Kind
		return res, timedOut
	}
	return res, returned
}

// withStepClock returns a context with the time limits of a step that may rest, which is to wait for a provider's limit. A rest
// does not count in the time of the step and of the iteration, but it counts in the time of the loop. The caller calls stop
// when the step has ended; stop sets r.current.limited to the time of the rests. late and gone are nil without a limit.
func (r *run) withStepClock(in context.Context, own, waited time.Duration, late, gone *TimeoutError) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(in)
	var once sync.Once
	all := time.Duration(0)
	if left, ok := r.plan.Left(&r.tally); late != nil && late.Kind == loop.TotalTimeout {
		own, all = 0, own
	} else if ok && own > 0 && !r.phase.finalizing {
		all = max(left-waited, 1)
	}
	ctx, clock := drive.WithClock(ctx, own, func() { once.Do(func() { cancel(late) }) })
	total := func() bool { return true }
	if all > 0 {
		total = time.AfterFunc(all, func() {
			once.Do(func() {
				late.Kind, late.After, gone.Kind, gone.After = loop.TotalTimeout, all, loop.TotalTimeout, all
				cancel(late)
			})
		}).Stop
	}
	return ctx, func() {
		r.current.limited = clock.Stop()
		total()
		once.Do(func() {})
		cancel(nil)
	}
}

// stepGrace returns how long the loop waits for a step that ignores its canceled context; 0 means
// without limit. A loop with only ADK's fields does not abandon its steps, so it is abandoned
// together with them.
func (a *Agent) stepGrace(durable bool) time.Duration {
	if a.plain && a.cfg.OnStop == nil && !a.cfg.KeepStates && !durable {
		return 0
	}
	return a.grace
}
