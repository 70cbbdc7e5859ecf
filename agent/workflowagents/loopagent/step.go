// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"errors"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// stepEnd is the way in which a step ended, in addition to its error.
type stepEnd int

const (
	returned stepEnd = iota // the step ended by itself
	timedOut                // the step's time was over
	notRun                  // the step did not run
)

// noTime is the time limit of a step for which delays or callbacks have left no time.
const noTime = time.Nanosecond

// runDecision carries out a decision to run a step. It waits for the delay, and then runs the step within
// its time limit, or takes its result from the cache.
func (r *run) runDecision(d *loop.Decision, o *loop.Outcome) (res *drive.StepResult, how stepEnd) {
	if d.Refuse != nil {
		return &drive.StepResult{Err: r.stepError(d, errors.New(d.Refuse.Message))}, notRun
	}
	if d.Wait > 0 {
		if err := sleep.For(r.ctx, d.Wait); err != nil {
			return &drive.StepResult{Err: err}, returned
		}
		o.Waited = d.Wait
	}
	if (d.Wait > 0 || o.Between > 0) && d.Timeout <= noTime && d.Timeout > 0 {
		late := &TimeoutError{Kind: d.TimeoutKind, Step: r.plan.Steps[d.Step].Name}
		return &drive.StepResult{Err: r.stepError(d, late)}, timedOut
	}
	if r.current.fingerprint != nil {
		r.current.fingerprint.reset()
	}
	if r.steps.cache != nil {
		if res, ok := r.fromCache(d); ok {
			o.Cached = true
			return res, returned
		}
	}
	r.current.work = r.place.Begin(r.cfg.AgentConfig.SubAgents[d.Step])
	in := drive.StepRun{Address: r.current.address, Attempt: d.Attempt, Work: r.current.work, Context: r.observerContext(d.Iteration)}
	if d.Wait == 0 && r.steps.cache == nil && r.current.work == nil { // no time has passed since o.Started
		in.Started = o.Started
	}
	if r.mode.durable {
		if r.current.endData == nil {
			r.current.endData = new(mark.StepFinished)
		}
		*r.current.endData = mark.StepFinished{}
		in.Finished = r.current.endData
	}
	if d.Timeout == 0 && !r.mode.timed && !r.mayIdle[d.Step] {
		res = r.directStep(d.Step).RunAs(&in, r.steps.onEvent)
	} else {
		r.current.limited = 0
		res, how = r.runGuarded(d, &in)
		o.Limited = r.current.limited
	}
	if res.Abandoned { // the step may still write into endData
		r.current.endData = nil
	}
	if r.steps.cache != nil {
		r.storeInCache(d, res, time.Now())
	}
	return res, how
}

// directStep returns the step with an index. It creates the step at the first call.
func (r *run) directStep(i int) *drive.Step {
	if r.steps.direct[i] == nil {
		r.steps.direct[i] = r.newStep(i, 0)
	}
	return r.steps.direct[i]
}

// guardedStep is like directStep, but for a step that runs with a grace.
func (r *run) guardedStep(i int) *drive.Step {
	if r.steps.guarded == nil {
		r.steps.guarded = make([]*drive.Step, len(r.plan.Steps))
	}
	if r.steps.guarded[i] == nil {
		r.steps.guarded[i] = r.newStep(i, r.mode.grace)
	}
	return r.steps.guarded[i]
}

// newStep returns a new step for the sub-agent with an index. The finalizer gets the budget that is reserved for it.
func (r *run) newStep(i int, grace time.Duration) *drive.Step {
	cfg := drive.StepConfig{Agent: r.cfg.AgentConfig.SubAgents[i], Loop: r.loop, Budget: r.spending.budget, Grace: grace}
	if r.spending.finalizer != nil && r.phase.finalizing {
		cfg.Budget = r.spending.finalizer.Budget()
	}
	return drive.NewStep(r.ctx, cfg)
}

func (r *run) stepError(d *loop.Decision, err error) error {
	return &agent.StepError{Address: r.address(d), Err: err}
}
