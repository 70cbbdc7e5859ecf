// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// ask is the activity that does something to a run: by way of the process that drives it, or itself
// if there is none.
func (w *Worker) ask(ctx context.Context, in asking) (Standing, error) {
	err := w.do(ctx, &in)
	again := activity.GetInfo(ctx).Attempt > 1
	switch {
	case again && in.Do == Answer && errors.Is(err, supervisor.ErrNoQuestion),
		again && in.Do == Cancel && errors.Is(err, supervisor.ErrOver),
		again && errors.Is(err, supervisor.ErrPaused):
		err = nil // an earlier attempt has done it
	}
	if err != nil {
		return Standing{}, failure(err)
	}
	st, err := w.standing(ctx, in.RunID)
	return st, failure(err)
}

func (w *Worker) do(ctx context.Context, in *asking) error {
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
	case Resume:
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
		return supervisor.ErrUnderWay
	case st.Status.Over() && st.Status != mark.RunCanceled && !in.Continue:
		return fmt.Errorf("%w: it %s", supervisor.ErrOver, st.Status)
	}
	return nil
}

var errRequest = errors.New("the request makes no sense")

// kinds are the errors that no retry changes, and what they are called.
var kinds = []struct {
	err  error
	kind string
}{
	{supervisor.ErrNotFound, KindNotFound},
	{supervisor.ErrOver, KindOver},
	{supervisor.ErrPaused, KindPaused},
	{supervisor.ErrUnderWay, KindRunning},
	{supervisor.ErrNoQuestion, KindNoQuestion},
	{supervisor.ErrDriver, KindDriver},
	{errRequest, KindRequest},
}

// failure is an error as Temporal has it: some are not retried.
func failure(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return temporal.NewNonRetryableApplicationError(err.Error(), k.kind, err)
		}
	}
	return err
}
