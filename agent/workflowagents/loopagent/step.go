// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"errors"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/sleep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// ending says how a step ended, besides its error.
type ending int

const (
	ended    ending = iota // of itself
	timedOut               // its time was over
	refused                // it was not run
)

// noTime is the time limit of a step for which delays or callbacks have left no time.
const noTime = time.Nanosecond

// carryOut carries out a decision to run a step: it waits for the delay, and runs the step within
// its time limit.
func (r *run) carryOut(d *loop.Decision, o *loop.Outcome) (res *drive.StepResult, how ending) {
	if d.Refuse != nil {
		return &drive.StepResult{Err: r.stepError(d, errors.New(d.Refuse.Message))}, refused
	}
	if d.Wait > 0 {
		if err := sleep.For(r.ctx, d.Wait); err != nil {
			return &drive.StepResult{Err: err}, ended
		}
		o.Waited = d.Wait
	}
	if (d.Wait > 0 || o.Between > 0) && d.Timeout <= noTime && d.Timeout > 0 {
		late := &TimeoutError{Kind: d.TimeoutKind, Step: r.plan.Steps[d.Step].Name}
		return &drive.StepResult{Err: r.stepError(d, late)}, timedOut
	}
	if r.prints != nil {
		r.prints.reset()
	}
	if r.cache != nil {
		if res, ok := r.cached(d); ok {
			o.Cached = true
			return res, ended
		}
	}
	r.work = r.me.Begin(r.cfg.AgentConfig.SubAgents[d.Step])
	in := drive.StepRun{Address: r.here, Attempt: d.Attempt, Work: r.work, Context: r.observed(d.Iteration)}
	if d.Wait == 0 && r.cache == nil && r.work == nil { // nothing was waited for since
		in.Began = o.Started
	}
	if r.marks {
		if r.fin == nil {
			r.fin = new(mark.StepFinished)
		}
		*r.fin = mark.StepFinished{}
		in.Finished = r.fin
	}
	if d.Timeout == 0 && !r.timed && !r.rests[d.Step] {
		res = r.stepAt(d.Step).RunAs(&in, r.onEv)
	} else {
		r.limited = 0
		res, how = r.runFor(d, &in)
		o.Limited = r.limited
	}
	if res.Abandoned { // it may write into that still
		r.fin = nil
	}
	if r.cache != nil {
		r.keep(d, res, time.Now())
	}
	return res, how
}

// stepAt is the step of an index, made when it is first run.
func (r *run) stepAt(i int) *drive.Step {
	if r.steps[i] == nil {
		r.steps[i] = r.newStep(i, 0)
	}
	return r.steps[i]
}

// watchedAt is stepAt for a step with a grace.
func (r *run) watchedAt(i int) *drive.Step {
	if r.watched == nil {
		r.watched = make([]*drive.Step, len(r.plan.Steps))
	}
	if r.watched[i] == nil {
		r.watched[i] = r.newStep(i, r.grace)
	}
	return r.watched[i]
}

// newStep makes the step of an index.
func (r *run) newStep(i int, grace time.Duration) *drive.Step {
	cfg := drive.StepConfig{Agent: r.cfg.AgentConfig.SubAgents[i], Loop: r.loop, Budget: r.budget, Grace: grace}
	if r.held != nil && r.finalizing {
		cfg.Budget = r.held.Budget()
	}
	return drive.NewStep(r.ctx, cfg)
}

func (r *run) stepError(d *loop.Decision, err error) error {
	return &agent.StepError{Address: r.address(d), Err: err}
}
