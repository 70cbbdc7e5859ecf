// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// drive is the activity that drives a run until it is over, paused, waits, or the worker stops.
func (w *Worker) drive(ctx context.Context, in leg) (Status, error) {
	d := &driver{w: w, in: in, info: activity.GetInfo(ctx)}
	defer w.watch(in.RunID, d)()
	stop := d.beat(ctx)
	defer stop()
	run, st, err := d.take(ctx)
	if run == nil || err != nil {
		return st, failure(err)
	}
	return d.follow(ctx, run)
}

// driving are the options of that activity: it may take as long as it likes, if it is not silent, and is
// tried again for ever.
func driving(in *Input) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: 365 * 24 * time.Hour,
		HeartbeatTimeout:    cmp.Or(in.Heartbeat, defaultHeartbeat),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2,
			MaximumInterval: 10 * time.Second},
	}
}

// driver drives a run in one attempt of an activity.
type driver struct {
	w    *Worker
	in   leg
	info activity.Info

	held  lease.HeldError // as it was seen, since
	since time.Time

	mu sync.Mutex
	at Progress
}

// beat sends heartbeats by the clock, as a thinking model is silent. It ends when the activity is not
// wanted any more; the function ends it too.
func (d *driver) beat(ctx context.Context) (stop func()) {
	d.at.Worker = d.w.cfg.Supervisor.Owner
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(max(50*time.Millisecond, d.info.HeartbeatTimeout/4))
		defer tick.Stop()
		for {
			d.mu.Lock()
			at := d.at
			d.mu.Unlock()
			activity.RecordHeartbeat(ctx, at)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// saw notes where the run is.
func (d *driver) saw(ev *session.Event) {
	if ev.Address == "" || ev.Mark == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch ev.Mark.Kind {
	case mark.KindStepStarted, mark.KindStepFinished:
		d.at.Step = string(ev.Address)
	case mark.KindIterationFinished:
		var rec loop.IterationRecord
		if ev.Mark.Decode(&rec) == nil {
			d.at.Score = rec.Score
		}
	}
	if ev.Iteration > 0 {
		d.at.Iteration = ev.Iteration
	}
}

// owner returns the name of the lease's owner: the worker, the activity and its attempt.
func (d *driver) owner() string {
	return fmt.Sprintf("temporal %s %s %s %d by %s", d.info.WorkflowExecution.ID, d.info.WorkflowExecution.RunID,
		d.info.ActivityID, d.info.Attempt, d.w.cfg.Supervisor.Owner)
}

// givenUp reports whether Temporal has given up the owner of a lease: it is another attempt of this
// activity, or another activity of the workflow, which has one at a time.
func (d *driver) givenUp(owner string) bool {
	f := strings.Fields(owner)
	if len(f) < 5 || f[0] != "temporal" || f[1] != d.info.WorkflowExecution.ID {
		return false
	}
	attempt, err := strconv.Atoi(f[4])
	same := f[2] == d.info.WorkflowExecution.RunID && f[3] == d.info.ActivityID
	return err == nil && (!same || int32(attempt) < d.info.Attempt)
}

// silent reports whether to take the run from an attempt that Temporal has given up: if that renews
// its lease, it only cannot be heard, and the run is well where it is.
func (d *driver) silent(held *lease.HeldError) bool {
	if held.Token != d.held.Token || !held.Until.Equal(d.held.Until) {
		d.held, d.since = *held, time.Now()
		return false
	}
	return d.givenUp(held.Owner) && time.Since(d.since) > 2*d.w.cfg.Supervisor.LeaseRenew
}

// take begins to drive the run when nobody else drives it. If it returns no run, the standing is the result.
func (d *driver) take(ctx context.Context) (*supervisor.Run, Status, error) {
	look := time.NewTicker(max(50*time.Millisecond, d.w.cfg.Supervisor.LeaseRenew/4))
	defer look.Stop()
	for {
		st, err := d.w.standing(ctx, d.in.RunID)
		if err != nil {
			return nil, st, err
		}
		known := st.Seq <= d.in.After
		if !known && !st.goesOn() || st.Status.IsFinal() && st.Status != mark.RunCanceled && !d.in.Continue {
			return nil, st, nil // what somebody wanted since stands, or it is over
		}
		opts := supervisor.ResumeOptions{After: max(d.in.After, 1), Owner: d.owner(), TakeOver: d.silent}
		if known { // else an earlier attempt has taken it up so
			opts.Program, opts.Continue = d.in.Program, d.in.Continue && st.Status.IsFinal()
		}
		if known && d.in.Limits != nil {
			if opts.Program, err = d.w.raised(ctx, d.in.RunID, d.in.Limits); err != nil {
				return nil, st, err
			}
		}
		run, err := d.w.sup.Resume(context.WithoutCancel(ctx), d.in.RunID, opts)
		_, held := errors.AsType[*lease.HeldError](err)
		switch {
		case errors.Is(err, supervisor.ErrChanged), errors.Is(err, supervisor.ErrOver):
			st, err := d.w.standing(ctx, d.in.RunID)
			return nil, st, err
		case errors.Is(err, supervisor.ErrClosed):
			return nil, d.left(st), nil
		case err == nil || !held && !errors.Is(err, supervisor.ErrUnderWay):
			return run, st, err
		}
		select { // somebody is at it
		case <-look.C:
		case <-d.w.stopping:
			return nil, d.left(st), nil
		case <-ctx.Done():
			return nil, st, context.Cause(ctx)
		}
	}
}

// left is how a run stands that this worker leaves to others before it has taken it up.
func (d *driver) left(st Status) Status {
	st.Status, st.HandOver, st.Seq = mark.RunIsPaused, true, max(d.in.After, st.Seq)
	return st
}

// follow waits until the run is over, paused or waits, and gives it back when it is not wanted here
// any more.
func (d *driver) follow(ctx context.Context, run *supervisor.Run) (Status, error) {
	unwanted := make(chan struct{})
	free := context.AfterFunc(ctx, func() {
		if told(context.Cause(ctx)) {
			close(unwanted)
		} // else Temporal is only away: the run goes on by its lease
	})
	defer free()
	select {
	case <-run.Done():
	case <-d.w.stopping:
		d.handOver(run)
	case <-unwanted: // perhaps because Temporal was away: a step that is running may come to its end
		d.handOver(run)
	}
	end, err := run.Wait(context.Background())
	if err != nil {
		return Status{}, err
	}
	if errors.Is(end.Err, lease.ErrLost) || end.Run.Status == mark.RunRunning {
		return Status{}, fmt.Errorf("the run was lost: %w", end.Err) // tried again
	}
	st, err := d.w.standing(context.WithoutCancel(ctx), d.in.RunID)
	if err != nil {
		return st, failure(err)
	}
	if st.Status == mark.RunIsPaused && !st.HandOver && end.Err != nil {
		st.Error = end.Err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	st.Iteration, st.Score = d.at.Iteration, d.at.Score
	return st, nil
}

// handOver gives a run back at its next step boundary, or when the grace is over.
func (d *driver) handOver(run *supervisor.Run) {
	grace, done := context.WithTimeout(context.Background(), d.w.cfg.Grace)
	defer done()
	run.HandOver(grace)
}

// told reports whether Temporal has said that an attempt is not wanted any more, in contrast to having
// said nothing.
func told(cause error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](cause)
	return gone || temporal.IsCanceledError(cause) || errors.Is(cause, activity.ErrActivityPaused) ||
		errors.Is(cause, activity.ErrActivityReset)
}
