// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"cmp"
	"context"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// observation has the observer's data of the current iteration.
type observation struct {
	ctx context.Context // the context for the iteration's steps; nil if the observer was not told that it began
	it  *observe.Iteration
	end func(error)
}

// observerContext returns the context for a step of iteration n; nil means the loop's context. At the first step that is
// not in the log, it tells the observer that the iteration begins.
func (r *run) observerContext(n int) context.Context {
	o := r.ctx.RunConfig().Observer
	if o == nil || r.phase.finalizing || n == 0 || r.tally.Rejudge {
		return nil
	}
	if r.observed.ctx == nil {
		it := &observe.Iteration{Loop: r.Name(), Address: string(r.loop.IterationAddress), Number: n}
		ctx, end := o.Iteration(r.ctx, it)
		r.observed = observation{ctx, it, end}
	}
	return r.observed.ctx
}

// observeIterationEnd tells the observer how the iteration ended. it is nil if err has cut the iteration short.
func (r *run) observeIterationEnd(it *loop.IterationRecord, err error) {
	w := r.observed
	if w.ctx == nil {
		return
	}
	r.observed = observation{}
	if it != nil && it.Number == w.it.Number {
		w.it.Score, w.it.Best, w.it.Rejected = it.Score, it.Best, it.Rejected
		w.it.Complete, w.it.Failures = it.Complete, it.Failures
		if s := r.plan.Score; s != nil {
			w.it.Scorer = s.Key
		}
	}
	w.end(err)
}

// observeStop reports to the observer why the loop stops. A loop that was cut off has not stopped,
// because it can be resumed.
func (r *run) observeStop(rec *loop.StopRecord) {
	o := r.ctx.RunConfig().Observer
	if o == nil {
		return
	}
	r.observeIterationEnd(nil, cmp.Or(context.Cause(r.ctx), r.failures.current))
	if rec.Reason == loop.ReasonCanceled {
		return
	}
	o.Stopped(r.ctx, observe.Stop{Loop: r.Name(), Outermost: r.loop.Outer == nil, Reason: string(rec.Reason),
		Iterations: rec.Iterations, BestScore: rec.BestScore, BestIteration: rec.BestIteration})
}
