// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"fmt"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Options say how the workflow of a run is started.
type Options struct {
	// TaskQueue is that of the workers; "" means [DefaultTaskQueue].
	TaskQueue string
	// Heartbeat is how long a worker may be silent before another one gets the run; 0 means 10 s.
	Heartbeat time.Duration
	// SearchAttributes says that the namespace has the search attributes, such as [AttributeStatus].
	SearchAttributes bool

	definition string // of the run; "" if it is not known
}

// Start writes a run into the store and starts its workflow. It returns the run's ID. If it fails
// after the run was written, a worker starts the workflow later. Errors to expect are those of
// supervisor.Submit, then with no ID, and those of the client.
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

// Wake has the workflow of a run look how it stands, after something was written into the run's log. A
// run that has no workflow gets one. The run must be one of opts.TaskQueue.
func Wake(ctx context.Context, c client.Client, id string, opts Options) error {
	opts.defaults()
	_, err := c.SignalWithStartWorkflow(ctx, id, Look, nil, opts.start(id), Workflow, opts.input(id))
	if err != nil {
		return fmt.Errorf("wake the workflow of run %q: %w", id, err)
	}
	return nil
}

// Ask asks for something to be done to a run, and returns how it stands then. It waits for a worker.
// A run that has no workflow gets one. Errors to expect are those of supervisor, such as
// supervisor.ErrNoQuestion, an application error of the SDK, whose type is [KindRequest], and those of the client.
func Ask(ctx context.Context, c client.Client, id string, req Request, opts Options) (Standing, error) {
	opts.defaults()
	start := opts.start(id)
	start.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	var st Standing
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

// begin starts the workflow of a run, unless there is one.
func begin(ctx context.Context, c client.Client, id string, opts Options) error {
	start := opts.start(id)
	start.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	if _, err := c.ExecuteWorkflow(ctx, start, Workflow, opts.input(id)); err != nil {
		return fmt.Errorf("start the workflow of run %q: %w", id, err)
	}
	return nil
}

func (o *Options) defaults() {
	if o.TaskQueue == "" {
		o.TaskQueue = DefaultTaskQueue
	}
}

// start are the options with which the workflow of a run starts: once at a time, and again if the run
// goes on after its end.
func (o *Options) start(id string) client.StartWorkflowOptions {
	start := client.StartWorkflowOptions{ID: id, TaskQueue: o.TaskQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
	if st := (Standing{Name: o.definition, Status: mark.RunRunning}); o.SearchAttributes && st.Name != "" {
		start.TypedSearchAttributes = temporal.NewSearchAttributes(st.attributes()...)
	}
	return start
}

func (o *Options) input(id string) Input {
	return Input{RunID: id, Heartbeat: o.Heartbeat, Attributes: o.SearchAttributes}
}
