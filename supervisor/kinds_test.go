// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// What clients, scripts and clusters are told of an error: the names are part of the formats.
func TestKindsOfErrors(t *testing.T) {
	for _, tt := range []struct {
		err           error
		name, problem string
		status, exit  int
	}{
		{supervisor.ErrNotFound, "not_found", "run_not_found", 404, 1},
		{supervisor.ErrOver, "over", "run_over", 409, 1},
		{supervisor.ErrPaused, "paused", "run_paused", 409, 1},
		{supervisor.ErrUnderWay, "running", "run_under_way", 409, 1},
		{supervisor.ErrNoQuestion, "no_question", "no_question", 409, 1},
		{supervisor.ErrDriver, "driver", "other_driver", 409, 1},
		{supervisor.ErrNoCheckpoint, "", "no_checkpoint", 422, 2},
		{supervisor.ErrClosed, "", "closing", 503, 1},
		{supervisor.ErrQueueFull, "", "queue_full", 429, 1},
		{session.ErrExists, "", "run_exists", 409, 1},
	} {
		k, ok := supervisor.KindOf(fmt.Errorf("do it: %w", tt.err))
		if !ok || k.Name != tt.name || k.Problem != tt.problem || k.Status != tt.status || k.Exit != tt.exit {
			t.Errorf("the kind of %q is %+v, %t", tt.err, k, ok)
		}
		if back, ok := supervisor.KindNamed(tt.name); ok != (tt.name != "") || ok && back.Err != tt.err {
			t.Errorf("the kind that is called %q is %+v, %t", tt.name, back, ok)
		}
	}
	if k, ok := supervisor.KindOf(errors.New("the disk is full")); ok {
		t.Errorf("a failure of the store is of the kind %+v", k)
	}
}
