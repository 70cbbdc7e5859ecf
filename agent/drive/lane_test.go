// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// inLane is an agent that does something in a lane.
func inLane(t *testing.T, body func(ctx agent.InvocationContext, lane *drive.Lane)) agent.Agent {
	a, err := drive.NewBase(agent.Config{Name: "a"}, nil,
		func(ctx agent.InvocationContext, _ func(*session.Event, error) bool) {
			var lane drive.Lane
			lane.Run(ctx, func() { body(ctx, &lane) })
		})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A panic of what a lane runs is that of the agent, and its stack says where it was.
func TestPanicInALane(t *testing.T) {
	a := inLane(t, func(agent.InvocationContext, *drive.Lane) { panicsHere() })
	var last error
	for _, err := range drive.Run(invocation(t.Context()), a) {
		last = err
	}
	p, ok := errors.AsType[*agent.PanicError](last)
	if !ok || p.Value != "no" || !strings.Contains(string(p.Stack), "panicsHere") {
		t.Errorf("got %v, want the panic, with its stack", last)
	}
}

func panicsHere() { panic("no") }

// What ends the goroutine of a lane ends that of its caller.
func TestGoexitInALane(t *testing.T) {
	a := inLane(t, func(agent.InvocationContext, *drive.Lane) { runtime.Goexit() })
	whole, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		for range drive.Run(invocation(t.Context()), a) {
		}
		whole = true
	}()
	if <-ended; whole {
		t.Error("the caller goes on")
	}
}

// An agent that leaves its goroutine locked to a thread, or that ends it, does not take the other
// steps of the lane along.
func TestLaneOutlivesItsSteps(t *testing.T) {
	for name, leave := range map[string]func(){"locked": runtime.LockOSThread, "ended": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			step := custom(t, "s", func(_ agent.InvocationContext, yield yield) {
				if runs++; yield(says("word"), nil) {
					leave()
				}
			})
			said := 0
			a := inLane(t, func(ctx agent.InvocationContext, lane *drive.Lane) {
				s := drive.NewStep(ctx, drive.StepConfig{Agent: step, Grace: drive.Grace, Lane: lane})
				for range 3 {
					s.Run(func(*session.Event) bool { said++; return true })
				}
			})
			for _, err := range drive.Run(invocation(t.Context()), a) {
				t.Error(err)
			}
			if runs != 3 || said != 3 {
				t.Errorf("%d runs said %d words, want 3 and 3", runs, said)
			}
		})
	}
}
