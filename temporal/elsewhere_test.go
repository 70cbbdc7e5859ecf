// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/refrain-dev/refrain/agent"
	steps "github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/temporal"
)

// deserted is a server to which no worker listens.
type deserted struct{ client.Client }

func (deserted) ExecuteActivity(context.Context, client.StartActivityOptions, any, ...any) (client.ActivityHandle, error) {
	return waiting{}, nil
}

func (deserted) DescribeTaskQueue(context.Context, string, enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return new(workflowservice.DescribeTaskQueueResponse), nil
}

// waiting is a task that nobody does.
type waiting struct{ client.ActivityHandle }

func (waiting) Get(ctx context.Context, _ any) error {
	<-ctx.Done()
	return ctx.Err()
}

// A step whose task queue has no worker waits, and the log of the run's worker says so, once.
func TestDispatcherTellsThatNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := temporal.NewDispatcher(deserted{}, 0)
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := d.Do(ctx, &steps.Task{ID: "r/s/1", Queue: "gpu", Kind: "command", Address: "s"})
			done <- err
		}()
		time.Sleep(time.Minute)
		cancel(agent.ErrPaused)
		if err := <-done; !errors.Is(err, agent.ErrPaused) {
			t.Errorf("the task ends with %v", err)
		}
		if got := log.String(); strings.Count(got, "task_queue=gpu step=s") != 1 {
			t.Errorf("the log says %q", got)
		}
	})
}

// A run with a workspace is refused, because its files are on one machine.
func TestWorkspaceIsRefused(t *testing.T) {
	const text = "name: w\nmax_iterations: 1\nworkspace: {}\nsub_agents: [{name: s, command: [ls]}]"
	def, err := definition.Parse("w.yaml", []byte(text), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = def.Build(t.Context(), definition.BuildConfig{Elsewhere: temporal.NewDispatcher(deserted{}, 0)})
	if err == nil || !strings.Contains(err.Error(), "a run with a workspace cannot move between workers") {
		t.Errorf("the agents are made: %v", err)
	}
}
