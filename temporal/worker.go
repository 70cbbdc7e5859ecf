// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// DefaultTaskQueue is the task queue of workers and runs that name none.
const DefaultTaskQueue = "refrain"

const (
	defaultHeartbeat = 10 * time.Second
	defaultGrace     = 30 * time.Second
	defaultLook      = 5 * time.Second
	defaultRuns      = 50
	sweepEvery       = 10 * time.Minute
)

// Config describes a worker.
type Config struct {
	// Supervisor says where the runs are stored, and how their agents are made. All workers must share
	// its store. Owner names the worker, by default as [lease.Process] does. Driver and MaxRuns are filled in; LeaseTTL is 30 s by
	// default, and LeaseRenew 2 s, or half of Heartbeat if that is less.
	Supervisor supervisor.Config
	// TaskQueue is the task queue of the runs; "" means [DefaultTaskQueue]. Requests for runs use a
	// second one, TaskQueue + "-ask", so that they do not wait for runs to end.
	TaskQueue string
	// Heartbeat is the [Input].Heartbeat of the workflows that this worker starts; 0 means 10 s.
	Heartbeat time.Duration
	// SearchAttributes says that the namespace has the search attributes, such as [AttributeStatus].
	SearchAttributes bool
	// MaxRuns is the largest number of runs driven at once; 0 means 50.
	MaxRuns int
	// Grace is how long a worker that stops waits for its runs to reach a step boundary, before it
	// cuts off their steps; 0 means 30 s.
	Grace time.Duration
	// Look is how often the worker searches the store for runs of its task queue that were changed
	// without Temporal; 0 means 5 s. These are runs that were submitted, and paused or waiting runs
	// that can continue.
	Look time.Duration
	// Log gets the errors that do not belong to a run. Nil means slog.Default.
	Log *slog.Logger
}

// Worker drives runs. Make one with [NewWorker].
type Worker struct {
	cfg      Config
	client   client.Client
	sup      *supervisor.Supervisor
	runs     worker.Worker
	requests worker.Worker
	stopping chan struct{} // closed when the worker is to stop
	died     fatal

	mu      sync.Mutex
	drivers map[string]*driver   // by run
	told    map[string]time.Time // of what was written last when a workflow was woken, by run
	taken   map[string]time.Time // likewise, when it was logged that another run has the workflow
	swept   time.Time            // when the last sweep began
}

// NewWorker returns a worker that does nothing before [Worker.Run]. It fails if the config of the
// supervisor is not valid, and if a number or a time is negative. The worker does not close the
// client.
func NewWorker(c client.Client, cfg Config) (*Worker, error) {
	if cfg.MaxRuns < 0 || cfg.Heartbeat < 0 || cfg.Grace < 0 || cfg.Look < 0 {
		return nil, fmt.Errorf("temporal worker: MaxRuns %d, Heartbeat %s, Grace %s and Look %s must not be negative",
			cfg.MaxRuns, cfg.Heartbeat, cfg.Grace, cfg.Look)
	}
	cfg.defaults()
	w := &Worker{client: c, stopping: make(chan struct{}), died: make(fatal, 1), drivers: make(map[string]*driver),
		told: make(map[string]time.Time), taken: make(map[string]time.Time)}
	each := cfg.Supervisor.OnEvent
	cfg.Supervisor.OnEvent = func(id string, ev *session.Event) {
		w.saw(id, ev)
		if each != nil {
			each(id, ev)
		}
	}
	var err error
	if w.sup, err = supervisor.New(cfg.Supervisor); err != nil {
		return nil, fmt.Errorf("temporal worker: %w", err)
	}
	w.cfg = cfg
	opts := worker.Options{
		MaxConcurrentActivityExecutionSize: cfg.MaxRuns,
		WorkerStopTimeout:                  cfg.Grace + 10*time.Second,
		MaxHeartbeatThrottleInterval:       2 * time.Second,
		DisableRegistrationAliasing:        true,
		OnFatalError:                       w.died.note,
	}
	w.runs = worker.New(c, cfg.TaskQueue, opts)
	w.runs.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: Workflow})
	w.runs.RegisterActivityWithOptions(w.drive, activity.RegisterOptions{Name: activityDrive})
	w.requests = worker.New(c, askQueue(cfg.TaskQueue), worker.Options{DisableWorkflowWorker: true,
		OnFatalError: w.died.note})
	w.requests.RegisterActivityWithOptions(w.ask, activity.RegisterOptions{Name: activityAsk})
	return w, nil
}

// Supervisor returns the supervisor that drives the runs.
func (w *Worker) Supervisor() *supervisor.Supervisor { return w.sup }

func (c *Config) defaults() {
	c.TaskQueue = cmp.Or(c.TaskQueue, DefaultTaskQueue)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Look = cmp.Or(c.Look, defaultLook)
	c.MaxRuns = cmp.Or(c.MaxRuns, defaultRuns)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &c.Supervisor
	s.Owner = cmp.Or(s.Owner, lease.Process()) // also in the activities and the standings of its runs
	s.Driver, s.MaxRuns = Driver(c.TaskQueue), 0
	s.LeaseTTL = cmp.Or(s.LeaseTTL, 30*time.Second)
	s.LeaseRenew = cmp.Or(s.LeaseRenew, min(2*time.Second, c.Heartbeat/2, s.LeaseTTL/3))
}

// askQueue is the task queue of requests: runs may take all the slots of the other.
func askQueue(taskQueue string) string { return taskQueue + "-ask" }

// Run drives runs until ctx ends. Then it hands the active runs over to other workers at their next
// step boundary, and waits for this at most for Config.Grace. It fails if Temporal cannot be reached
// at the start, and if Temporal refuses this worker for two minutes, for instance because the
// namespace is gone. Call it once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.requests.Start(); err != nil {
		return fmt.Errorf("start temporal worker: %w", err)
	}
	defer w.requests.Stop()
	if err := w.runs.Start(); err != nil {
		return fmt.Errorf("start temporal worker: %w", err)
	}
	tick := time.NewTicker(w.cfg.Look)
	defer tick.Stop()
	var refused error
	for {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn("look for runs that wait for a worker", "error", err)
		}
		select {
		case <-tick.C:
			continue
		case refused = <-w.died:
		case <-ctx.Done():
		}
		close(w.stopping)
		w.runs.Stop()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return errors.Join(refused, w.sup.Close(late))
	}
}

// fatal holds the error for which a worker of the SDK has stopped. Without it the process would go on, and do nothing.
type fatal chan error

// note keeps the first error.
func (f fatal) note(err error) {
	select {
	case f <- fmt.Errorf("the Temporal server refuses this worker: %w", err):
	default:
	}
}

// Look starts the workflows of the runs in the store that wait for a worker, and wakes the
// workflows whose runs can continue because the log has changed. At first and every 10 minutes it also ends the workflows of runs that
// have ended or were removed in the store, such as one that was canceled while Temporal did not answer. Run calls it.
func (w *Worker) Look(ctx context.Context) error {
	all, unread := w.sup.ListOpen(ctx)
	if unread != nil && len(all) == 0 {
		return unread
	}
	failed := []error{unread}
	there := make(map[string]bool)
	for _, info := range all {
		there[info.ID] = true
		if info.Here || info.Run.Driver != w.cfg.Supervisor.Driver {
			continue
		}
		if err := w.wake(ctx, &info); err != nil {
			failed = append(failed, fmt.Errorf("wake run %q: %w", info.ID, err))
		}
	}
	w.mu.Lock()
	for _, seen := range []map[string]time.Time{w.told, w.taken} {
		maps.DeleteFunc(seen, func(id string, _ time.Time) bool { return !there[id] })
	}
	due := unread == nil && time.Since(w.swept) >= sweepEvery
	if due {
		w.swept = time.Now()
	}
	w.mu.Unlock()
	if due {
		failed = append(failed, w.sweep(ctx, there))
	}
	return errors.Join(failed...)
}

// sweep has the workflows look whose runs are not among the open ones.
func (w *Worker) sweep(ctx context.Context, open map[string]bool) error {
	ask := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = '%s'",
		Workflow, strings.ReplaceAll(w.cfg.TaskQueue, "'", "''"))}
	for {
		got, err := w.client.ListWorkflow(ctx, ask)
		if err != nil {
			return fmt.Errorf("list the workflows: %w", err)
		}
		for _, one := range got.GetExecutions() {
			id := one.GetExecution().GetWorkflowId()
			if open[id] {
				continue
			}
			st, err := w.sup.Status(ctx, id)
			if err == nil && st.Run.Status.IsFinal() || errors.Is(err, supervisor.ErrNotFound) {
				err = w.client.SignalWorkflow(ctx, id, one.GetExecution().GetRunId(), Look, nil)
			}
			if err != nil && !isNotFound(err) {
				return fmt.Errorf("end the workflow of run %q: %w", id, err)
			}
		}
		if ask.NextPageToken = got.GetNextPageToken(); len(ask.NextPageToken) == 0 {
			return nil
		}
	}
}

// wake has the workflow of a run look how it stands, once for what was written last.
func (w *Worker) wake(ctx context.Context, info *supervisor.Info) error {
	if st := standingOf(info.ID, "", supervisor.Status{Run: info.Run}); !st.goesOn() {
		return nil
	}
	w.mu.Lock()
	known := w.told[info.ID].Equal(info.Updated)
	w.mu.Unlock()
	if known {
		return nil
	}
	held, err := w.sup.Driver(ctx, info.ID)
	if held != nil || err != nil {
		return err
	}
	opts := Options{TaskQueue: w.cfg.TaskQueue, Heartbeat: w.cfg.Heartbeat, SearchAttributes: w.cfg.SearchAttributes}
	if opts.definition = info.Run.Name; info.Run.HandOver {
		err = Wake(ctx, w.client, info.ID, opts)
	} else {
		err = begin(ctx, w.client, info.ID, opts)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := errors.AsType[*TakenError](err); taken { // perhaps not for long; it is logged once
		if w.taken[info.ID].Equal(info.Updated) {
			return nil
		}
		w.taken[info.ID] = info.Updated
	}
	if err == nil {
		w.told[info.ID] = info.Updated
	}
	return err
}

// watch has a driver see the events of a run. The function ends that, unless another attempt here has
// begun to meanwhile.
func (w *Worker) watch(id string, d *driver) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drivers[id] = d
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.drivers[id] == d {
			delete(w.drivers, id)
		}
	}
}

func (w *Worker) saw(id string, ev *session.Event) {
	w.mu.Lock()
	d := w.drivers[id]
	w.mu.Unlock()
	if d != nil {
		d.saw(ev)
	}
}

func (w *Worker) standing(ctx context.Context, id string) (Status, error) {
	st, err := w.sup.Status(ctx, id)
	if err != nil {
		return Status{}, err
	}
	return standingOf(id, w.cfg.Supervisor.Owner, st), nil
}
