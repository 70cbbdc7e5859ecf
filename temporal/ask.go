// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// ask is the activity that does something to a run: by way of the process that drives it, or itself
// if there is none.
func (w *Worker) ask(ctx context.Context, in asking) (Status, error) {
	err := w.do(ctx, &in)
	again := activity.GetInfo(ctx).Attempt > 1
	switch {
	case again && in.Do == Answer && errors.Is(err, supervisor.ErrNoQuestion),
		again && in.Do == Cancel && errors.Is(err, supervisor.ErrOver),
		again && errors.Is(err, supervisor.ErrPaused):
		err = nil // an earlier attempt has done it
	}
	if err != nil {
		return Status{}, failure(err)
	}
	st, err := w.standing(ctx, in.RunID)
	return st, failure(err)
}

// requests are the options of that activity. Whoever asks is told after two minutes that nobody answers.
func requests(taskQueue string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              askQueue(taskQueue),
		StartToCloseTimeout:    20 * time.Second,
		ScheduleToCloseTimeout: 2 * time.Minute,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond,
			MaximumInterval: 5 * time.Second},
	}
}

func (w *Worker) do(ctx context.Context, in *asking) error {
	if in.By != "" {
		ctx = supervisor.As(ctx, in.By)
	}
	switch in.Do {
	case Pause:
		return w.sup.Pause(ctx, in.RunID, in.Reason)
	case PauseNow:
		return w.sup.PauseNow(ctx, in.RunID, in.Reason)
	case Cancel:
		return w.sup.Cancel(ctx, in.RunID, in.Reason)
	case Answer:
		if in.Answer == nil {
			return fmt.Errorf("%w: an answer is required", errRequest)
		}
		_, err := w.sup.Answer(ctx, in.RunID, *in.Answer)
		return err
	case Resume, Raise:
		return w.mayResume(ctx, in)
	case look:
		return nil
	}
	return fmt.Errorf("%w: %q", errRequest, in.Do)
}

// mayResume fails if the run cannot be resumed. The workflow resumes it.
func (w *Worker) mayResume(ctx context.Context, in *asking) error {
	st, err := w.standing(ctx, in.RunID)
	switch {
	case err != nil:
		return err
	case st.Status == mark.RunRunning:
		return fmt.Errorf("resume run %q: %w", in.RunID, supervisor.ErrUnderWay)
	case st.Status.IsFinal() && st.Status != mark.RunCanceled && !in.Continue && in.Do != Raise:
		return fmt.Errorf("resume run %q: %w: it %s", in.RunID, supervisor.ErrOver, st.Status)
	case in.Do == Raise && in.Limits == nil:
		return fmt.Errorf("%w: it raises no limit; set Limits", errRequest)
	case in.Limits != nil:
		_, err = w.raised(ctx, in.RunID, in.Limits)
	}
	return err
}

// raised returns the program of a run with other limits.
func (w *Worker) raised(ctx context.Context, id string, limits json.RawMessage) (json.RawMessage, error) {
	s := &w.cfg.Supervisor
	got, err := s.Service.Get(ctx, &session.GetRequest{AppName: s.AppName, UserID: s.UserID, SessionID: id})
	if err != nil {
		return nil, err
	}
	started, err := supervisor.StartedWith(got.Session)
	if err != nil {
		return nil, err
	}
	var program map[string]json.RawMessage
	for _, fields := range []json.RawMessage{started.Program, limits} {
		if err := json.Unmarshal(fields, &program); err != nil {
			return nil, fmt.Errorf("%w: fields of a program that is a JSON object: %w", errRequest, err)
		}
	}
	return json.Marshal(program)
}

var errRequest = errors.New("the request is not valid")

// failure returns an error as Temporal has it. One of a kind is not retried.
func failure(err error) error {
	k, known := supervisor.KindOf(err)
	if errors.Is(err, errRequest) {
		k.Name = KindRequest
	} else if !known || k.Name == "" {
		return err
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), k.Name, temporal.ApplicationErrorOptions{
		NonRetryable: true, Cause: err,
		Category: temporal.ApplicationErrorCategoryBenign, // an answer, and no alarm in the worker's log
	})
}

// refusal is a [failure] as whoever asked gets it: an error of its kind.
type refusal struct {
	said *temporal.ApplicationError
	kind error
}

// refused returns the refusal that an error is; the error itself if it is none.
func refused(err error) error {
	if said, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		if k, ok := supervisor.KindNamed(said.Type()); ok {
			return &refusal{said, k.Err}
		}
	}
	return err
}

func (r *refusal) Error() string   { return r.said.Message() }
func (r *refusal) Unwrap() []error { return []error{r.kind, r.said} }
