// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// newLoop returns a loop that has only a plan.
func newLoop(p *loop.Plan) *Loop {
	l := &Loop{Plan: p}
	if f := p.Finalizer(); f >= 0 {
		l.Finalizer = &Step{Name: p.Steps[f].Name, Status: StatusPending, Finalizer: true}
	}
	return l
}

// loop returns the step's loop. A loop that no mark has described has an empty plan.
func (s *Step) loop() *Loop {
	if s.Loop == nil {
		s.Loop = newLoop(new(loop.Plan))
	}
	return s.Loop
}

// pass returns an iteration of the loop. A new one has the steps of the plan, pending. Iterations are in the order of
// their numbers.
func (l *Loop) pass(n int, now time.Duration) *Iteration {
	at := len(l.Iterations)
	for at > 0 && l.Iterations[at-1].Number >= n {
		if at--; l.Iterations[at].Number == n {
			return l.Iterations[at]
		}
	}
	it := &Iteration{Number: n, Status: StatusRunning, Began: now, Ended: now, From: l.state}
	l.account.begin()
	for _, i := range l.Plan.Sequence() {
		name := l.Plan.Steps[i].Name
		it.Steps = append(it.Steps, &Step{
			Name: name, Status: StatusPending,
			CanExit:   l.Plan.CanExit != nil && slices.Contains(l.Plan.CanExit, name),
			Finalizer: l.Plan.Steps[i].Finalizer,
		})
	}
	l.Iterations = slices.Insert(l.Iterations, at, it)
	return it
}

// end takes the record of the iteration.
func (it *Iteration) end(rec loop.IterationRecord, now time.Duration) {
	status := StatusCompleted
	switch {
	case rec.Rejected != "":
		status = StatusRejected
	case !rec.Complete && rec.Failures > 0:
		status = StatusFailed
	}
	it.close(status, now)
	it.Record, it.Provisional, it.dimensions = &rec, nil, nil
}

func (it *Iteration) close(as Status, now time.Duration) {
	if it.Status == StatusRunning {
		it.Status, it.Ended = as, now
	}
	for _, s := range it.Steps {
		s.close(StatusCanceled, now)
	}
}

// stop takes why the loop stopped. An iteration that is open still was cut short
// by the same.
func (l *Loop) stop(rec *loop.StopRecord, now time.Duration) {
	l.Stop = rec
	l.account.end(rec.Reason)
	for _, it := range l.Iterations {
		switch {
		case it.Status != StatusRunning:
		case rec.Reason.Failed():
			it.close(StatusFailed, now)
		case it.Failed():
			it.close(StatusFailed, now)
		case rec.Reason == loop.ReasonCanceled || rec.Reason.Limit():
			it.close(StatusCanceled, now)
		default: // a step has asked to leave, or a condition holds
			it.close(StatusCompleted, now)
		}
	}
	if l.Finalizer != nil {
		l.Finalizer.close(StatusCompleted, now)
	}
}

// passName returns the address of an iteration.
func passName(loop session.Address, n int) string { return fmt.Sprintf("%s[%d]", loop, n) }
