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
	now      Standing // the newest that is known
	next     *leg     // how it is to go on; nil if nobody has said
	look     bool     // it is to look how the run stands
	canceled bool     // the workflow is
	shown    [2]string
}

// Run drives a run until it is over. It is registered as [Workflow].
func Run(ctx workflow.Context, in Input) (Standing, error) {
	r := &runs{in: in, now: Standing{RunID: in.RunID, Status: mark.RunRunning}}
	if in.Now != nil {
		r.now = *in.Now
	}
	if err := r.listen(ctx); err != nil {
		return r.now, err
	}
	free, done := workflow.NewDisconnectedContext(ctx) // a cancellation goes to the run, not to its driver
	defer done()
	for {
		err := r.once(free)
		if err != nil {
			return r.now, err
		}
		if err := r.show(free); err != nil {
			return r.now, err
		}
		idle := func() bool { return workflow.AllHandlersFinished(free) }
		switch {
		case r.now.Status.Over():
			if err := workflow.Await(free, idle); err != nil {
				return r.now, err
			}
			if r.next == nil && r.now.Status.Over() {
				return r.over()
			}
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.next == nil && !r.look && !r.canceled && idle():
			in.Now = &r.now
			return r.now, workflow.NewContinueAsNewError(ctx, Workflow, in)
		}
	}
}

// once drives the run, or waits until it may go on.
func (r *runs) once(ctx workflow.Context) error {
	switch {
	case r.next != nil || r.now.goesOn():
		return r.drive(ctx)
	case r.look:
		r.look = false
		_, err := r.ask(ctx, Request{Do: look})
		return err
	case r.now.Status.Over():
		return nil
	}
	wake := func() bool { return r.next != nil || r.look || r.now.goesOn() || r.now.Status.Over() }
	if r.now.Deadline.IsZero() {
		return workflow.Await(ctx, wake)
	}
	left := max(time.Second, r.now.Deadline.Sub(workflow.Now(ctx))) // the worker's clock may be slow
	if early, err := workflow.AwaitWithTimeout(ctx, left, wake); early || err != nil {
		return err
	}
	r.next = &leg{RunID: r.in.RunID, After: r.now.Seq} // the default is the answer
	return nil
}

// drive has the run driven to its end, its next pause or its next question.
func (r *runs) drive(ctx workflow.Context) error {
	next := r.next
	if next == nil {
		next = &leg{RunID: r.in.RunID, After: r.now.Seq}
	}
	r.next, r.look = nil, false
	beat := r.in.Heartbeat
	if beat == 0 {
		beat = defaultHeartbeat
	}
	var st Standing
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 365 * 24 * time.Hour,
		HeartbeatTimeout:    beat,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2,
			MaximumInterval: 10 * time.Second},
	}), activityDrive, next).Get(ctx, &st)
	if err == nil {
		r.learn(st)
	}
	return err
}

// learn takes what an activity has seen, unless a newer one is known.
func (r *runs) learn(st Standing) {
	if st.Seq >= r.now.Seq {
		r.now = st
	}
}

// ask has a worker do something to the run, by way of the process that drives it if there is one.
func (r *runs) ask(ctx workflow.Context, req Request) (st Standing, err error) {
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              askQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout:    20 * time.Second,
		ScheduleToCloseTimeout: 2 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond,
			MaximumInterval: 5 * time.Second},
	}), activityAsk, asking{r.in.RunID, req}).Get(ctx, &st)
	if err != nil {
		return st, err
	}
	if r.learn(st); req.Do == Resume {
		r.next = &leg{RunID: r.in.RunID, After: st.Seq, Program: req.Program, Continue: req.Continue}
	}
	return st, nil
}

// listen answers queries, updates and signals.
func (r *runs) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, Query, func() (Standing, error) { return r.now, nil }); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandler(ctx, Update, r.ask); err != nil {
		return err
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
			if _, says := errors.AsType[*temporal.ApplicationError](err); err == nil || says {
				return
			} // the store is away
		}
	})
	return nil
}

// show sets the search attributes that have changed.
func (r *runs) show(ctx workflow.Context) error {
	now := [2]string{string(r.now.Status), r.now.Stop}
	if !r.in.Attributes || r.now.Name == "" || now == r.shown {
		return nil
	}
	r.shown = now
	return workflow.UpsertTypedSearchAttributes(ctx,
		temporal.NewSearchAttributeKeyKeyword(AttributeDefinition).ValueSet(r.now.Name),
		temporal.NewSearchAttributeKeyKeyword(AttributeStatus).ValueSet(now[0]),
		temporal.NewSearchAttributeKeyKeyword(AttributeStop).ValueSet(now[1]))
}

// over is the end of the workflow of a run that is over.
func (r *runs) over() (Standing, error) {
	switch {
	case r.now.Status == mark.RunFailed:
		return r.now, temporal.NewNonRetryableApplicationError(r.now.Error, KindFailed, nil, r.now)
	case r.now.Status == mark.RunCanceled && r.canceled:
		return r.now, temporal.NewCanceledError(r.now)
	}
	return r.now, nil
}
