// SPDX-License-Identifier: Apache-2.0

// Package cluster gives the command to Temporal: a program of one's own whose runs are driven by the workers of a
// Temporal cluster, as refrain-temporal is one.
//
//	os.Exit(command.Main(command.Config{Cluster: cluster.Temporal{}}, command.Tool(paint)))
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	seam "github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// Temporal connects the command with Temporal.
type Temporal struct{}

// dialTime is how long a server may take to answer.
const dialTime = 10 * time.Second

// Dial connects with a server.
func (Temporal) Dial(ctx context.Context, at seam.Address) (seam.Client, error) {
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, fmt.Errorf("read the configuration of Temporal: %w", err)
	}
	opts.HostPort = cmp.Or(at.HostPort, opts.HostPort, client.DefaultHostPort)
	opts.Namespace = cmp.Or(at.Namespace, opts.Namespace, client.DefaultNamespace)
	opts.Logger = log.NewStructuredLogger(at.Log)
	late, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c, err := client.DialContext(late, opts)
	if err != nil {
		return nil, fmt.Errorf("no Temporal server answers at %s: %w", opts.HostPort, err)
	}
	_, err = c.WorkflowService().DescribeNamespace(late, &workflowservice.DescribeNamespaceRequest{Namespace: opts.Namespace})
	if _, none := errors.AsType[*serviceerror.NamespaceNotFound](err); none {
		c.Close()
		return nil, fmt.Errorf("the Temporal server at %s has no namespace %q; name another one with --namespace or "+
			"TEMPORAL_NAMESPACE", opts.HostPort, opts.Namespace)
	}
	has, _ := temporal.HasSearchAttributes(late, c, opts.Namespace) // whoever may not ask does without
	return &connection{c, opts.HostPort, opts.Namespace, at.Heartbeat, has}, nil
}

// connection is one with a server.
type connection struct {
	client.Client
	address, namespace string
	heartbeat          time.Duration
	attributes         bool // the namespace has the search attributes of runs
}

// Where names the server.
func (c *connection) Where() string { return c.address + ", namespace " + c.namespace }

// options are those of the runs of a driver.
func (c *connection) options(driver string) temporal.Options {
	return temporal.Options{TaskQueue: strings.TrimPrefix(driver, temporal.Driver("")), Heartbeat: c.heartbeat,
		SearchAttributes: c.attributes}
}

// Start submits a run.
func (c *connection) Start(ctx context.Context, sup *supervisor.Supervisor, req supervisor.Request) (string, error) {
	return temporal.Start(ctx, c.Client, sup, req, c.options(req.Driver))
}

// Wake has the workflow of a run look.
func (c *connection) Wake(ctx context.Context, id, driver string) error {
	return temporal.Wake(ctx, c.Client, id, c.options(driver))
}

// Ask asks for something to be done to a run.
func (c *connection) Ask(ctx context.Context, id, driver string, r seam.Request) error {
	_, err := temporal.Ask(ctx, c.Client, id, temporal.Request{Do: r.Do, By: r.By, Reason: r.Reason, Answer: r.Answer,
		Program: r.Program, Continue: r.Continue}, c.options(driver))
	return err
}

// Workflow says why a run has no workflow that could go on.
func (c *connection) Workflow(ctx context.Context, id, driver string) (string, error) {
	got, err := c.DescribeWorkflowExecution(ctx, id, "")
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return "never started, or removed", nil
	}
	if err != nil {
		return "", err
	}
	switch s := got.GetWorkflowExecutionInfo().GetStatus(); s {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
		enums.WORKFLOW_EXECUTION_STATUS_PAUSED:
		if queue := got.GetWorkflowExecutionInfo().GetTaskQueue(); queue != c.options(driver).TaskQueue {
			return "that of this ID belongs to another run, of task queue " + queue, nil
		}
		return "", nil
	case enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed out", nil
	default:
		return strings.ToLower(s.String()), nil
	}
}

// Work drives runs until ctx ends.
func (c *connection) Work(ctx context.Context, w seam.Worker) error {
	d := temporal.NewDispatcher(c.Client, c.heartbeat)
	defer d.Close()
	d.Log = w.Log
	w.Env.Elsewhere = d
	w.Supervisor.Build = program.Rebuild(w.Env)
	made, err := temporal.NewWorker(c.Client, temporal.Config{
		Supervisor: w.Supervisor, TaskQueue: c.options(w.Supervisor.Driver).TaskQueue, Heartbeat: c.heartbeat,
		MaxRuns: w.MaxRuns, Grace: given(w.Grace), Log: w.Log, SearchAttributes: c.attributes,
	})
	if err != nil {
		return err
	}
	w.Watch(made.Supervisor())
	return made.Run(ctx)
}

// Steps does steps until ctx ends.
func (c *connection) Steps(ctx context.Context, w seam.Steps) error {
	made, err := temporal.NewSteps(c.Client, w.Queue, temporal.StepsConfig{Host: w.Host, MaxSteps: w.MaxSteps,
		Grace: given(w.Grace)})
	if err != nil {
		return err
	}
	return made.Run(ctx)
}

// given is a time as package temporal has it, where 0 is the default.
func given(d time.Duration) time.Duration { return max(d, 1) }
