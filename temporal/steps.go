// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
)

// StepsConfig describes a worker that runs steps.
type StepsConfig struct {
	// Host describes what this machine offers to the steps.
	Host stephost.Config
	// MaxSteps is the largest number of steps that run at once; 0 means 50.
	MaxSteps int
	// Grace is how long a worker that stops waits for its steps to end, before it cuts them off; 0 means
	// 30 s. Another worker repeats a step that was cut off, unless the step must not be done twice; then
	// it is in doubt.
	Grace time.Duration
}

// Steps runs the steps of a task queue, for runs that other workers drive. Make one with
// [NewSteps].
type Steps struct {
	cfg    StepsConfig
	client client.Client
	host   elsewhere.Doer
	worker worker.Worker
	died   fatal
}

// NewSteps returns a worker for the steps whose definitions name the task queue. The worker does nothing
// before [Steps.Run], and needs no store. NewSteps fails if the queue is empty, or a number or a time is
// negative. The worker does not close the client.
func NewSteps(c client.Client, queue string, cfg StepsConfig) (*Steps, error) {
	switch {
	case queue == "":
		return nil, errors.New("temporal steps: the task queue has no name")
	case cfg.MaxSteps < 0 || cfg.Grace < 0:
		return nil, fmt.Errorf("temporal steps: MaxSteps %d and Grace %s must not be negative", cfg.MaxSteps, cfg.Grace)
	}
	cfg.MaxSteps = cmp.Or(cfg.MaxSteps, defaultRuns)
	cfg.Grace = cmp.Or(cfg.Grace, defaultGrace)
	s := &Steps{cfg: cfg, client: c, host: stephost.New(cfg.Host), died: make(fatal, 1)}
	s.worker = worker.New(c, queue, worker.Options{
		MaxConcurrentActivityExecutionSize: cfg.MaxSteps,
		WorkerStopTimeout:                  cfg.Grace + 5*time.Second,
		MaxHeartbeatThrottleInterval:       2 * time.Second,
		DisableRegistrationAliasing:        true,
		OnFatalError:                       s.died.note,
	})
	s.worker.RegisterActivityWithOptions(s.do, activity.RegisterOptions{Name: activityStep})
	s.worker.RegisterWorkflowWithOptions(stepAlone, workflow.RegisterOptions{Name: workflowStep})
	return s, nil
}

// Run runs steps until ctx ends. Then it waits for the running steps, at most for StepsConfig.Grace.
// It fails if Temporal cannot be reached at the start, and if Temporal refuses this worker for two
// minutes, for instance because the namespace is gone. Call it once.
func (s *Steps) Run(ctx context.Context) error {
	if err := s.worker.Start(); err != nil {
		return fmt.Errorf("start temporal steps: %w", err)
	}
	defer s.worker.Stop()
	select {
	case err := <-s.died:
		return err
	case <-ctx.Done():
		return nil
	}
}

// stepDone is the result of the activity that does a step.
type stepDone struct {
	Result json.RawMessage `json:"result,omitempty"`
	// TooLarge is how large the result was, if it could not be sent. A result that Temporal refuses
	// would have the step done again.
	TooLarge int `json:"too_large,omitempty"`
}

// maxPayload limits one payload for Temporal, in bytes. Temporal refuses 2 MiB.
const maxPayload = 2_000_000

// do is the activity that executes a step.
func (s *Steps) do(ctx context.Context, t *elsewhere.Task) (*stepDone, error) {
	work, stop := s.wanted(ctx)
	defer stop()
	result, err := s.host.Do(work, t)
	cause := context.Cause(work)
	switch {
	case temporal.IsCanceledError(cause): // the SDK does not know
		free, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_ = s.client.CompleteActivity(free, activity.GetInfo(ctx).TaskToken, nil, cause)
		return nil, activity.ErrResultPending
	case cause != nil:
		return nil, temporal.NewApplicationError(cause.Error(), kindCutOff)
	case err != nil:
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), kindUnable, err)
	case len(result) > maxPayload:
		return &stepDone{TooLarge: len(result)}, nil
	}
	return &stepDone{Result: result}, nil
}

var errStops = errors.New("its worker has stopped")

// wanted is the context of a step. It ends when Temporal says that the step is not wanted any more, and
// not when it says nothing, as that of an activity does. Until the function is called it sends
// heartbeats, by the clock.
func (s *Steps) wanted(ctx context.Context) (context.Context, func()) {
	info, stopping := activity.GetInfo(ctx), activity.GetWorkerStopChannel(ctx)
	period := max(50*time.Millisecond, min(info.HeartbeatTimeout/4, 2*time.Second))
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		var late <-chan time.Time
		for {
			select {
			case <-tick.C:
			case <-stopping:
				stopping, late = nil, time.After(s.cfg.Grace)
			case <-late:
				end(errStops)
			case <-work.Done():
				return
			}
			one, done := context.WithTimeout(work, info.HeartbeatTimeout)
			err := s.client.RecordActivityHeartbeat(one, info.TaskToken)
			if done(); told(err) {
				end(err)
			}
		}
	})
	return work, func() { end(nil); beats.Wait() }
}

// stepAlone is a workflow that does one step, for servers without activities of their own.
func stepAlone(ctx workflow.Context, t *elsewhere.Task, opts stepOptions) (*stepDone, error) {
	var got *stepDone
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: opts.StartToClose, HeartbeatTimeout: opts.Heartbeat, WaitForCancellation: true,
		RetryPolicy: opts.retries(),
	}), activityStep, t).Get(ctx, &got)
	return got, err
}

// stepOptions say how long a step may take, and how often it may be begun.
type stepOptions struct {
	StartToClose time.Duration `json:"start_to_close"`
	Heartbeat    time.Duration `json:"heartbeat"`
	Once         bool          `json:"once,omitempty"`
}

func (d *Dispatcher) optionsFor(t *elsewhere.Task) stepOptions {
	o := stepOptions{StartToClose: 365 * 24 * time.Hour, Heartbeat: d.heartbeat, Once: t.Effect == agent.AtMostOnce}
	if o.Once { // nobody takes it over, and an outage of Temporal must not put it in doubt
		o.Heartbeat = max(d.heartbeat, d.once)
	}
	return o
}

// retries is how a step is begun again whose worker has died. How the step itself fails is a result.
func (o *stepOptions) retries() *temporal.RetryPolicy {
	r := &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2,
		MaximumInterval: 10 * time.Second, MaximumAttempts: 10}
	if o.Once {
		r.MaximumAttempts = 1
	}
	return r
}
