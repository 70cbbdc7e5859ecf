// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/internal/values/sleep"
)

// Dispatcher sends the steps that name a task queue to workers such as [Steps]. Each task is an
// activity of its own, with the task's ID. On a server that has no such activities, or where they are
// disabled, it is a workflow with one activity. Give it to the program that makes the agents:
//
//	dispatcher := temporal.NewDispatcher(c, 0)
//	defer dispatcher.Close()
//	build := program.Rebuild(program.Env{Elsewhere: dispatcher})
type Dispatcher struct {
	// Log gets a record of each step that waits because no worker listens to its task queue;
	// nil means slog.Default.
	Log *slog.Logger

	client    client.Client
	heartbeat time.Duration
	once      time.Duration // likewise, at least, for steps that must not be done twice

	flows atomic.Bool // steps are workflows: the server has no activities of their own
	cuts  sync.WaitGroup
}

var _ elsewhere.Dispatcher = (*Dispatcher)(nil)

// NewDispatcher returns a dispatcher. heartbeat is how long a worker may send no heartbeat before
// another worker gets its step; 0 means 10 s. For a step that must not be done twice this time is at
// least one minute, and no other worker gets the step. The dispatcher does not close the client.
func NewDispatcher(c client.Client, heartbeat time.Duration) *Dispatcher {
	if heartbeat <= 0 {
		heartbeat = defaultHeartbeat
	}
	return &Dispatcher{client: c, heartbeat: heartbeat, once: time.Minute}
}

// Close waits until the steps that were cut off are canceled, as far as Temporal can be reached.
func (d *Dispatcher) Close() { d.cuts.Wait() }

// cutOff returns the reason for which the activity of a step is canceled.
const cutOff = "refrain: the step was cut off"

// cutTime is how long the dispatcher tries to cancel a step that was cut off.
const cutTime = time.Minute

// execution is one task in Temporal.
type execution interface {
	Get(ctx context.Context, valuePtr any) error
}

// Do implements [elsewhere.Dispatcher]. While Temporal cannot be reached, it waits.
func (d *Dispatcher) Do(ctx context.Context, t *elsewhere.Task) (json.RawMessage, error) {
	if n := len(t.Spec); n > maxPayload {
		return nil, &elsewhere.SizeError{What: "task", Size: n, Limit: maxPayload}
	}
	for n := 1; ; n++ {
		id := t.ID
		if n > 1 { // those before were canceled
			id += "+" + strconv.Itoa(n)
		}
		got, err := d.attempt(ctx, t, id)
		switch {
		case ctx.Err() != nil:
			cause := context.Cause(ctx)
			if !elsewhere.Leaves(cause) {
				d.cut(id)
			}
			return nil, cause
		case temporal.IsCanceledError(err) && t.Effect != agent.AtMostOnce && n < 1000:
			continue
		case err != nil:
			return nil, failureOf(id, err)
		case got.TooLarge > 0:
			return nil, &elsewhere.SizeError{What: "result", Size: got.TooLarge, Limit: maxPayload}
		}
		return got.Result, nil
	}
}

// Known implements [elsewhere.Dispatcher]. While Temporal cannot be reached, it waits.
func (d *Dispatcher) Known(ctx context.Context, t *elsewhere.Task) (known bool, err error) {
	err = d.patient(ctx, func() error {
		known, err = d.known(ctx, t.ID)
		return err
	})
	return known, err
}

// attempt runs a task under an ID, or waits for the task that already runs under it.
func (d *Dispatcher) attempt(ctx context.Context, t *elsewhere.Task, id string) (*stepDone, error) {
	got := new(stepDone)
	err := d.patient(ctx, func() error {
		x, err := d.begin(ctx, t, id)
		if err != nil {
			return err
		}
		defer d.looksFor(ctx, t)()
		return x.Get(ctx, got)
	})
	return got, err
}

// unheard is how long a task may take before the dispatcher looks whether there are workers for it.
const unheard = 10 * time.Second

// looksFor logs, unless the function is called before, that nobody listens to the queue of a task.
func (d *Dispatcher) looksFor(ctx context.Context, t *elsewhere.Task) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	looked := make(chan struct{})
	late := time.AfterFunc(unheard, func() {
		defer close(looked)
		q, err := d.client.DescribeTaskQueue(ctx, t.Queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
		if err == nil && len(q.GetPollers()) == 0 {
			cmp.Or(d.Log, slog.Default()).WarnContext(ctx, "a step waits: no worker listens to its task queue; start one "+
				"with refrain worker --steps", "task_queue", t.Queue, "step", t.Address, "task", t.ID)
		}
	})
	return func() {
		if cancel(); !late.Stop() {
			<-looked
		}
	}
}

// begin starts a task, unless there is one of that ID.
func (d *Dispatcher) begin(ctx context.Context, t *elsewhere.Task, id string) (execution, error) {
	opts := d.optionsFor(t)
	summary := t.Kind + " " + string(t.Address)
	if !d.flows.Load() {
		x, err := d.client.ExecuteActivity(ctx, client.StartActivityOptions{
			ID: id, TaskQueue: t.Queue, Summary: summary,
			StartToCloseTimeout: opts.StartToClose, HeartbeatTimeout: opts.Heartbeat, RetryPolicy: opts.retries(),
			ActivityIDConflictPolicy: enums.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING,
			ActivityIDReusePolicy:    enums.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, activityStep, t)
		if _, closed := errors.AsType[*serviceerror.ActivityExecutionAlreadyStarted](err); closed {
			return d.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id}), nil
		}
		if !d.unimplemented(err) {
			return x, err
		}
	}
	x, err := d.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: t.Queue, StaticSummary: summary,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, workflowStep, t, opts)
	if _, closed := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); closed {
		return d.client.GetWorkflow(ctx, id, ""), nil
	}
	return x, err
}

// unimplemented reports whether the server has no activities of their own.
func (d *Dispatcher) unimplemented(err error) bool {
	_, no := errors.AsType[*serviceerror.Unimplemented](err)
	if no {
		d.flows.Store(true)
	}
	return no
}

// known reports whether a task is being done, or has a result.
func (d *Dispatcher) known(ctx context.Context, id string) (bool, error) {
	if !d.flows.Load() {
		x, err := d.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id}).
			Describe(ctx, client.DescribeActivityOptions{})
		if isNotFound(err) {
			return false, nil
		}
		if !d.unimplemented(err) {
			if err != nil {
				return false, err
			}
			return x.Status == enums.ACTIVITY_EXECUTION_STATUS_RUNNING ||
				x.Status == enums.ACTIVITY_EXECUTION_STATUS_COMPLETED, nil
		}
	}
	x, err := d.client.DescribeWorkflowExecution(ctx, id, "")
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	status := x.GetWorkflowExecutionInfo().GetStatus()
	return status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, nil
}

// cut has a task canceled. It waits a moment for that: a step that was cut off has little time.
func (d *Dispatcher) cut(id string) {
	done := make(chan struct{})
	d.cuts.Go(func() {
		defer close(done)
		ctx, stop := context.WithTimeout(context.Background(), cutTime)
		defer stop()
		_ = d.patient(ctx, func() error { return d.cancel(ctx, id) })
	})
	moment := time.NewTimer(time.Second)
	defer moment.Stop()
	select {
	case <-done:
	case <-moment.C:
	}
}

func (d *Dispatcher) cancel(ctx context.Context, id string) error {
	if d.flows.Load() {
		return d.client.CancelWorkflow(ctx, id, "")
	}
	return d.client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id}).
		Cancel(ctx, client.CancelActivityOptions{Reason: cutOff})
}

// patient does something, again as long as Temporal cannot be reached.
func (d *Dispatcher) patient(ctx context.Context, do func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := do()
		if err == nil || ctx.Err() != nil || !isAway(err) {
			return err
		}
		if err := sleep.For(ctx, wait); err != nil {
			return err
		}
	}
}

// isAway reports whether an error says that Temporal cannot be reached, or is busy.
func isAway(err error) bool {
	_, away := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, busy := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, internal := errors.AsType[*serviceerror.Internal](err)
	_, canceled := errors.AsType[*serviceerror.Canceled](err) // the connection is
	return away || late || busy || internal || canceled || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}

func isNotFound(err error) bool {
	_, not := errors.AsType[*serviceerror.NotFound](err)
	return not
}

// failureOf returns the reason why a task has no result.
func failureOf(id string, err error) error {
	app, says := errors.AsType[*temporal.ApplicationError](err)
	_, late := errors.AsType[*temporal.TimeoutError](err)
	_, ended := errors.AsType[*temporal.TerminatedError](err)
	switch {
	case says && app.Type() == kindUnable:
		return errors.New(app.Message())
	case says:
		return &elsewhere.LostError{Task: id, Reason: app.Message()}
	case late:
		return &elsewhere.LostError{Task: id, Reason: "its worker sent no more heartbeats"}
	case ended:
		return &elsewhere.LostError{Task: id, Reason: "it was terminated in Temporal"}
	case temporal.IsCanceledError(err):
		return &elsewhere.LostError{Task: id, Reason: "it was canceled"}
	case isNotFound(err):
		return &elsewhere.LostError{Task: id, Reason: "Temporal no longer knows it"}
	}
	return fmt.Errorf("task %s: %w", id, err)
}
