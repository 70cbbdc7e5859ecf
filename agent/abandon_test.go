// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 22: an abandoned step is told why what it writes has no effect; it sees the
// loops around it as they were, and reads the state as it is.
func TestAbandonedStepChangesNothing(t *testing.T) {
	view := session.NewView(session.ViewConfig{State: map[string]any{"key": "before"}})
	ctx := agent.NewInvocation(t.Context(), agent.Invocation{ID: "e-1", Session: view})
	gone, heard := make(chan bool), true
	var errs []error
	var seen []any
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		early := ctx.Session().State()
		if err := early.Set("key", "in time"); err != nil {
			t.Error(err)
		}
		gone <- true
		<-gone
		errs = append(errs, early.Set("key", "late"), ctx.Session().State().Set("key", "late"), agent.StateOf(ctx).Set("iteration:key", "late"))
		v, _ := agent.StateOf(ctx).Get("key")
		seen = append(seen, v, agent.LoopOf(ctx).Iteration, agent.LoopOf(ctx).Outer.Iteration)
		heard = yield(says("late"), nil)
	})
	l := &agent.Loop{Name: "inner", Pass: "inner[1]", Iteration: 1, Outer: &agent.Loop{Name: "outer", Iteration: 5}}
	step := agent.NewStep(ctx, agent.StepConfig{Agent: a, Loop: l, Abandonable: true})
	done := make(chan agent.StepResult)
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		done <- step.RunAs(agent.StepRun{Context: timed}, func(*session.Event) bool { return false })
	}()
	<-gone
	step.Abandon(errBoom)
	l.Iteration, l.Outer.Iteration = 2, 6
	gone <- true
	<-done
	for i, err := range errs {
		if !errors.Is(err, errBoom) {
			t.Errorf("write %d: error %v", i+1, err)
		}
	}
	if diff := cmp.Diff([]any{"in time", 1, 5}, seen); diff != "" || heard {
		t.Errorf("seen, heard %v (-want +got):\n%s", heard, diff)
	}
	if v, err := view.State().Get("key"); v != "in time" || err != nil {
		t.Errorf("the state has %v, %v", v, err)
	}
}
