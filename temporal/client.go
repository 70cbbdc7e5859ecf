// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Options says how the workflow of a run is started.
type Options struct {
	// TaskQueue is the task queue of the workers; "" means [DefaultTaskQueue].
	TaskQueue string
	// Heartbeat is how long a worker may send no heartbeat before another worker gets the run; 0
	// means 10 s.
	Heartbeat time.Duration
	// SearchAttributes says that the namespace has the search attributes, such as [AttributeStatus].
	SearchAttributes bool

	definition string // of the run; "" if it is not known
}

// Start writes a run into the store and starts its workflow. It returns the run's ID. If it fails
// after the run was written, a worker starts the workflow later, or logs why it cannot. Errors to expect are those of
// supervisor.Submit, then with no ID, a [*TakenError], and those of the client.
func Start(ctx context.Context, c client.Client, sup *supervisor.Supervisor, req supervisor.Request,
	opts Options) (string, error) {
	opts.defaults()
	req.Driver = Driver(opts.TaskQueue)
	id, err := sup.Submit(ctx, req)
	if err != nil {
		return "", err
	}
	opts.definition = req.Started.Name
	return id, begin(ctx, c, id, opts)
}

// Wake makes the workflow of a run read the run's status again, after something was written into the run's log.
// It starts a workflow for a run that has none. The run must belong to opts.TaskQueue. It fails with a
// [*TakenError] if the workflow with the run's ID belongs to a run of another task queue.
func Wake(ctx context.Context, c client.Client, id string, opts Options) error {
	opts.defaults()
	if _, err := running(ctx, c, id, opts.TaskQueue); err != nil {
		return err
	}
	_, err := c.SignalWithStartWorkflow(ctx, id, Look, nil, opts.start(id), Workflow, opts.input(id))
	if err != nil {
		return fmt.Errorf("wake the workflow of run %q: %w", id, err)
	}
	return nil
}

// Ask sends a request about a run to a worker, waits for the worker, and returns the status of the run afterwards. It
// starts a workflow for a run that has none. Errors to expect are those of supervisor, such as
// supervisor.ErrNoQuestion, a [*TakenError], an application error of the SDK, whose type is [KindRequest], and those of
// the client.
func Ask(ctx context.Context, c client.Client, id string, req Request, opts Options) (Status, error) {
	opts.defaults()
	if _, err := running(ctx, c, id, opts.TaskQueue); err != nil {
		return Status{}, err
	}
	start := opts.start(id)
	start.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	var st Status
	handle, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.NewWithStartWorkflowOperation(start, Workflow, opts.input(id)),
		UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: Update, Args: []any{req},
			WaitForStage: client.WorkflowUpdateStageCompleted},
	})
	if err == nil {
		err = handle.Get(ctx, &st)
	}
	if err != nil {
		err = refused(fmt.Errorf("%s run %q: %w", req.Do, id, err))
	}
	return st, err
}

// HasSearchAttributes reports whether a namespace has all search attributes of runs: see
// [Config.SearchAttributes]. It fails if the client may not ask.
func HasSearchAttributes(ctx context.Context, c client.Client, namespace string) (bool, error) {
	got, err := c.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return false, fmt.Errorf("list the search attributes of namespace %q: %w", namespace, err)
	}
	for _, name := range []string{AttributeDefinition, AttributeStatus, AttributeStop} {
		if got.GetCustomAttributes()[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			return false, nil
		}
	}
	return true, nil
}

// TakenError says that a namespace has a workflow with the ID of a run which is not the run's. Runs that share a namespace
// need different IDs, also if they are in different stores.
type TakenError struct {
	RunID     string
	TaskQueue string // of the other run
}

// Error names both, and says how to avoid it.
func (e *TakenError) Error() string {
	return fmt.Sprintf("the workflow %q of the namespace belongs to another run, of task queue %q: give one of the two runs another ID, "+
		"or another namespace", e.RunID, e.TaskQueue)
}

// begin starts the workflow of a run, unless there is one.
func begin(ctx context.Context, c client.Client, id string, opts Options) error {
	start := opts.start(id)
	start.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	start.WorkflowExecutionErrorWhenAlreadyStarted = true
	for tries := 1; ; tries++ {
		_, err := c.ExecuteWorkflow(ctx, start, Workflow, opts.input(id))
		if err == nil {
			return nil
		}
		if _, there := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); there {
			is, other := running(ctx, c, id, opts.TaskQueue)
			if is || other != nil {
				return other
			}
			if tries < 3 {
				continue // the workflow has ended meanwhile
			}
		}
		return fmt.Errorf("start the workflow of run %q: %w", id, err)
	}
}

// running reports whether a run has a workflow that has not ended. It fails with a [*TakenError] if that is one of another
// task queue.
func running(ctx context.Context, c client.Client, id, taskQueue string) (bool, error) {
	got, err := c.DescribeWorkflowExecution(ctx, id, "")
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the workflow of run %q: %w", id, err)
	}
	info := got.GetWorkflowExecutionInfo()
	if info.GetCloseTime() != nil {
		return false, nil
	}
	if queue := info.GetTaskQueue(); queue != taskQueue {
		return true, &TakenError{RunID: id, TaskQueue: queue}
	}
	return true, nil
}

func (o *Options) defaults() {
	o.TaskQueue = cmp.Or(o.TaskQueue, DefaultTaskQueue)
}

// start are the options with which the workflow of a run starts: once at a time, and again if the run
// goes on after its end.
func (o *Options) start(id string) client.StartWorkflowOptions {
	start := client.StartWorkflowOptions{ID: id, TaskQueue: o.TaskQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
	if st := (Status{Name: o.definition, Status: mark.RunRunning}); o.SearchAttributes && st.Name != "" {
		start.TypedSearchAttributes = temporal.NewSearchAttributes(st.attributes()...)
	}
	return start
}

func (o *Options) input(id string) Input {
	return Input{RunID: id, Heartbeat: o.Heartbeat, Attributes: o.SearchAttributes}
}
