// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/session/mark"
)

// runs is the workflow of a run. There is nothing of the run's logic in it, so that a new version of
// Refrain changes how runs go on, and not this. doc/temporal.md says how it may change.
type runs struct {
	in       Input
	now      Status // the newest that is known
	asked    *leg   // that somebody has asked for
	look     bool   // it is to look how the run stands
	canceled bool   // the workflow is
}

// Run drives a run until it is over. It is registered as [Workflow].
func Run(ctx workflow.Context, in Input) (Status, error) {
	r := &runs{in: in, now: Status{RunID: in.RunID, Status: mark.RunRunning}}
	if in.Now != nil {
		r.now = *in.Now
	}
	if err := r.listen(ctx); err != nil {
		return r.now, err
	}
	free, done := workflow.NewDisconnectedContext(ctx) // a cancellation goes to the run, not to its driver
	defer done()
	for {
		var err error
		switch next := r.next(); {
		case r.long(free):
			in.Now = &r.now
			return r.now, workflow.NewContinueAsNewError(ctx, Workflow, in)
		case next != nil:
			err = r.drive(free, next)
		case r.now.Status.IsFinal():
			err = workflow.Await(free, func() bool { return workflow.AllHandlersFinished(free) })
			if err == nil && r.next() == nil {
				return r.over()
			}
		case r.look:
			r.look = false
			_, err = r.ask(free, Request{Do: look})
		default:
			err = r.wait(free)
		}
		if err != nil {
			return r.now, err
		}
	}
}

// next is the leg that is to be driven; nil if the run is over, paused or waits.
func (r *runs) next() *leg {
	if r.asked == nil && r.now.goesOn() {
		return &leg{RunID: r.in.RunID, After: r.now.Seq}
	}
	return r.asked
}

// long reports whether the workflow is to begin anew, because of the length of its history. Nothing that
// it was asked for gets lost.
func (r *runs) long(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.asked == nil && !r.look && !r.canceled &&
		workflow.AllHandlersFinished(ctx)
}

// drive lets a worker drive the run to its end, its next pause or its next question.
func (r *runs) drive(ctx workflow.Context, next *leg) error {
	r.asked, r.look = nil, false
	var st Status
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, driving(&r.in)), activityDrive, next).Get(ctx, &st)
	if err != nil {
		return err
	}
	return r.learn(ctx, st)
}

// wait waits until somebody wants something of the run, or its deadline has passed.
func (r *runs) wait(ctx workflow.Context) error {
	wanted := func() bool { return r.next() != nil || r.look || r.now.Status.IsFinal() || r.long(ctx) }
	if r.now.Deadline.IsZero() {
		return workflow.Await(ctx, wanted)
	}
	left := max(time.Second, r.now.Deadline.Sub(workflow.Now(ctx))) // the worker's clock may be slow
	early, err := workflow.AwaitWithTimeout(ctx, left, wanted)
	if !early && err == nil {
		r.asked = &leg{RunID: r.in.RunID, After: r.now.Seq} // the default is the answer
	}
	return err
}

// ask has a worker do something to the run, by way of the process that drives it if there is one.
func (r *runs) ask(ctx workflow.Context, req Request) (st Status, err error) {
	ctx = workflow.WithActivityOptions(ctx, requests(workflow.GetInfo(ctx).TaskQueueName))
	err = workflow.ExecuteActivity(ctx, activityAsk, asking{r.in.RunID, req}).Get(ctx, &st)
	if err == nil && req.resumes() {
		r.asked = &leg{RunID: r.in.RunID, After: st.Seq, Program: req.Program, Limits: req.Limits,
			Continue: req.Continue || req.Do == Raise}
	}
	if err == nil {
		err = r.learn(ctx, st)
	}
	return st, err
}

// learn takes what an activity has seen, unless a newer standing is known: an Ask can end while a leg does.
func (r *runs) learn(ctx workflow.Context, st Status) error {
	was := r.now
	if st.Seq < was.Seq {
		return nil
	}
	if r.now = st; st.Iteration == 0 { // only a leg knows it
		r.now.Iteration, r.now.Score = was.Iteration, was.Score
	}
	if !r.in.Attributes || st.Name == was.Name && st.Status == was.Status && st.Stop == was.Stop {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, st.attributes()...)
}

// listen answers queries, updates and signals, and a cancellation.
func (r *runs) listen(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, Query, func() (Status, error) { return r.now, nil })
	if err == nil {
		err = workflow.SetUpdateHandler(ctx, Update, r.ask)
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		written := workflow.GetSignalChannel(ctx, Look)
		for written.Receive(ctx, nil) {
			r.look = true
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		ctx.Done().Receive(ctx, nil)
		r.canceled = true
		free, done := workflow.NewDisconnectedContext(ctx)
		defer done()
		for {
			_, err := r.ask(free, Request{Do: Cancel, Reason: "the workflow was canceled"})
			said, says := errors.AsType[*temporal.ApplicationError](err)
			if err == nil || says && (said.NonRetryable() || !insists(free)) {
				return
			} // the store is away
		}
	})
	return err
}

// insists reports whether a cancellation outlives a store that is away for longer than one request. In the
// histories of older workers it does not.
func insists(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "cancel until the store says", workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// over ends the workflow of a run that has ended.
func (r *runs) over() (Status, error) {
	switch {
	case r.now.Status == mark.RunFailed:
		return r.now, temporal.NewNonRetryableApplicationError(r.now.Error, KindFailed, nil, r.now)
	case r.now.Status == mark.RunCanceled && r.canceled:
		return r.now, temporal.NewCanceledError(r.now)
	}
	return r.now, nil
}
