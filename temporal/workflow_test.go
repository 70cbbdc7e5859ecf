// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/temporal"
)

// leg and asking are the inputs of the activities, as histories have them.
type leg struct {
	RunID    string          `json:"run_id"`
	After    int64           `json:"after"`
	Program  json.RawMessage `json:"program,omitempty"`
	Limits   json.RawMessage `json:"limits,omitempty"`
	Continue bool            `json:"continue,omitempty"`
}

type asking struct {
	RunID string `json:"run_id"`
	temporal.Request
}

// flow runs the workflow of one run, with activities that only say how the run stands.
type flow struct {
	*testsuite.TestWorkflowEnvironment
	testing.TB

	drive func(context.Context, leg) (temporal.Status, error)
	ask   func(context.Context, asking) (temporal.Status, error)
	legs  []int64 // after which events
}

func newFlow(t testing.TB) *flow {
	var s testsuite.WorkflowTestSuite
	s.SetLogger(quiet)
	c := &flow{TestWorkflowEnvironment: s.NewTestWorkflowEnvironment(), TB: t}
	c.RegisterWorkflow(temporal.Run)
	c.RegisterActivityWithOptions(func(ctx context.Context, in leg) (temporal.Status, error) {
		if in.RunID != "r_1" {
			t.Errorf("a leg of run %q", in.RunID)
		}
		c.legs = append(c.legs, in.After)
		return c.drive(ctx, in)
	}, activity.RegisterOptions{Name: "refrain.Drive"})
	c.RegisterActivityWithOptions(func(ctx context.Context, in asking) (temporal.Status, error) {
		return c.ask(ctx, in)
	}, activity.RegisterOptions{Name: "refrain.Ask"})
	return c
}

// later asks for something after a time. done is called with what is answered.
func (c *flow) later(after time.Duration, req temporal.Request, done func(temporal.Status, error)) {
	c.RegisterDelayedCallback(func() {
		c.UpdateWorkflow(temporal.Update, "", &answered{c.TB, done}, req)
	}, after)
}

// answered takes the answer to an update.
type answered struct {
	testing.TB
	done func(temporal.Status, error)
}

func (*answered) Accept()            {}
func (a *answered) Reject(err error) { a.Errorf("the update was refused: %v", err) }
func (a *answered) Complete(v any, err error) {
	st, _ := v.(temporal.Status)
	if a.done != nil {
		a.done(st, err)
	} else if err != nil {
		a.Error(err)
	}
}

// result is what the workflow comes to.
func (c *flow) result() (st temporal.Status) {
	c.Helper()
	c.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: "r_1"})
	if !c.IsWorkflowCompleted() {
		c.Fatal("the workflow does not end")
	}
	if err := c.GetWorkflowResult(&st); err != nil {
		c.Fatal(err)
	}
	return st
}

func (c *flow) wantLegs(want ...int64) {
	c.Helper()
	if diff := cmp.Diff(want, c.legs); diff != "" {
		c.Errorf("legs of the run, by the event after which each begins (-want +got):\n%s", diff)
	}
}

func stands(status mark.RunStatus, seq int64) temporal.Status {
	return temporal.Status{RunID: "r_1", Status: status, Seq: seq}
}

// A run that waits holds no worker, and goes on with its answer.
func TestRunWaitsForAnAnswer(t *testing.T) {
	c := newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			st := stands(mark.RunWaiting, 7)
			st.Open, st.Deadline = []string{"q"}, c.Now().Add(72*time.Hour)
			return st, nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		if in.Do != temporal.Answer || in.Request.Answer == nil || in.Request.Answer.ID != "q" {
			t.Errorf("asked for %+v", in)
		}
		st := stands(mark.RunIsPaused, 9)
		st.HandOver = true
		return st, nil
	}
	c.later(48*time.Hour, temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: "q"}}, nil)
	if st := c.result(); st.Status != mark.RunCompleted || st.Seq != 12 {
		t.Errorf("it ends as %+v", st)
	}
	c.wantLegs(0, 9)
}

// A run whose deadline passes goes on without an answer.
func TestDeadline(t *testing.T) {
	c := newFlow(t)
	began := c.Now()
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			st := stands(mark.RunWaiting, 7)
			st.Deadline = c.Now().Add(72 * time.Hour)
			return st, nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	c.result()
	c.wantLegs(0, 7)
	if d := c.Now().Sub(began); d < 72*time.Hour {
		t.Errorf("it went on after %s", d)
	}
}

// A run that a person has paused goes on when a person says so, and not by a retry or a signal.
func TestPausedByAPerson(t *testing.T) {
	c := newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			return stands(mark.RunIsPaused, 7), nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	asked := 0
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		asked++
		return stands(mark.RunIsPaused, 7), nil
	}
	c.RegisterDelayedCallback(func() { c.SignalWorkflow(temporal.Look, nil) }, time.Hour)
	c.RegisterDelayedCallback(func() {
		if len(c.legs) != 1 || asked != 1 {
			t.Errorf("a look: %d legs, %d looks", len(c.legs), asked)
		}
		v, err := c.QueryWorkflow(temporal.Query)
		var st temporal.Status
		if err == nil {
			err = v.Get(&st)
		}
		if err != nil || st.Status != mark.RunIsPaused || st.Seq != 7 {
			t.Errorf("the workflow says %+v, %v", st, err)
		}
	}, 2*time.Hour)
	c.later(3*time.Hour, temporal.Request{Do: temporal.Resume}, nil)
	c.result()
	c.wantLegs(0, 7)
}

// What was written into the log without Temporal is seen when somebody says so.
func TestLook(t *testing.T) {
	c := newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			return stands(mark.RunWaiting, 7), nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		st := stands(mark.RunIsPaused, 9)
		st.HandOver = true
		return st, nil
	}
	c.RegisterDelayedCallback(func() { c.SignalWorkflow(temporal.Look, nil) }, time.Hour)
	c.result()
	c.wantLegs(0, 9)
}

// A worker that stops hands the run over: the next leg begins at once.
func TestHandOver(t *testing.T) {
	c := newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			st := stands(mark.RunIsPaused, 7)
			st.HandOver = true
			return st, nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	c.result()
	c.wantLegs(0, 7)
}

// An attempt that fails is repeated with the same input: what somebody wanted since stands.
func TestAttempts(t *testing.T) {
	c := newFlow(t)
	c.drive = func(context.Context, leg) (temporal.Status, error) {
		if len(c.legs) < 5 {
			return temporal.Status{}, errors.New("the run was lost")
		}
		return stands(mark.RunCompleted, 12), nil
	}
	c.result()
	for _, after := range c.legs {
		if after != 0 {
			t.Fatalf("an attempt after event %d", after)
		}
	}
}

// Of what an Ask and a leg have seen, the newer holds, whichever comes first.
func TestNewerStandingHolds(t *testing.T) {
	c := newFlow(t)
	c.drive = func(ctx context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			return stands(mark.RunWaiting, 7), nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	n := 0
	c.ask = func(context.Context, asking) (temporal.Status, error) {
		if n++; n == 1 {
			return stands(mark.RunWaiting, 5), nil // read before the leg ended
		}
		st := stands(mark.RunIsPaused, 9)
		st.HandOver = true
		return st, nil
	}
	c.later(time.Hour, temporal.Request{Do: temporal.Pause}, nil)
	c.later(2*time.Hour, temporal.Request{Do: temporal.Answer}, nil)
	c.result()
	c.wantLegs(0, 9)
}

// Who asks for what cannot be done is told so, and the run is as before.
func TestRefusedRequest(t *testing.T) {
	c := newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After == 0 {
			return stands(mark.RunWaiting, 7), nil
		}
		return stands(mark.RunCompleted, 12), nil
	}
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		if in.Do == temporal.Answer {
			return temporal.Status{}, sdk.NewNonRetryableApplicationError("no such question", "no_question", nil)
		}
		return stands(mark.RunWaiting, 7), nil
	}
	told := false
	c.later(time.Hour, temporal.Request{Do: temporal.Answer}, func(_ temporal.Status, err error) {
		app, ok := errors.AsType[*sdk.ApplicationError](err)
		told = ok && app.Type() == "no_question"
	})
	c.later(2*time.Hour, temporal.Request{Do: temporal.Resume}, nil)
	c.result()
	if !told {
		t.Error("who asked was not told why")
	}
	c.wantLegs(0, 7)
}

// A workflow that is canceled cancels its run, also if that is not being driven.
func TestCanceledWorkflow(t *testing.T) {
	c := newFlow(t)
	c.drive = func(context.Context, leg) (temporal.Status, error) { return stands(mark.RunIsPaused, 7), nil }
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		if in.Do != temporal.Cancel {
			t.Errorf("asked for %s", in.Do)
		}
		return stands(mark.RunCanceled, 8), nil
	}
	c.RegisterDelayedCallback(c.CancelWorkflow, time.Hour)
	c.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: "r_1"})
	if err := c.GetWorkflowError(); !sdk.IsCanceledError(err) {
		t.Errorf("it ends with %v", err)
	}
	c.wantLegs(0)
}

// A cancellation outlives a store that is away for longer than one request lasts.
func TestCanceledWhileTheStoreIsAway(t *testing.T) {
	c := newFlow(t)
	c.drive = func(context.Context, leg) (temporal.Status, error) { return stands(mark.RunWaiting, 7), nil }
	back := c.Now().Add(15 * time.Minute)
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		if c.Now().Before(back) {
			return temporal.Status{}, errors.New("the store is away")
		}
		return stands(mark.RunCanceled, 9), nil
	}
	c.RegisterDelayedCallback(c.CancelWorkflow, time.Minute)
	c.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: "r_1"})
	if err := c.GetWorkflowError(); !c.IsWorkflowCompleted() || !sdk.IsCanceledError(err) || c.Now().Before(back) {
		t.Errorf("at %v: %v", c.Now(), err)
	}
}

// A run that was canceled by a person is one that has ended, and no mistake.
func TestCanceledRun(t *testing.T) {
	c := newFlow(t)
	c.drive = func(context.Context, leg) (temporal.Status, error) { return stands(mark.RunCanceled, 7), nil }
	if st := c.result(); st.Status != mark.RunCanceled {
		t.Errorf("it ends as %+v", st)
	}
}

// The workflow of a run that fails, fails, and says how the run stands.
func TestFailedRun(t *testing.T) {
	c := newFlow(t)
	c.drive = func(context.Context, leg) (temporal.Status, error) {
		st := stands(mark.RunFailed, 7)
		st.Error = "out of luck"
		return st, nil
	}
	c.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: "r_1"})
	var st temporal.Status
	app, ok := errors.AsType[*sdk.ApplicationError](c.GetWorkflowError())
	if !ok || app.Type() != temporal.KindFailed || app.Details(&st) != nil || st.Error != "out of luck" {
		t.Errorf("it ends with %v, %+v", c.GetWorkflowError(), st)
	}
}

// A run that has ended goes on with a higher limit: the request comes to a workflow that it has started.
func TestRaisedLimit(t *testing.T) {
	c, raised := newFlow(t), make(chan struct{})
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if !in.Continue {
			return stands(mark.RunCompleted, 12), nil
		}
		switch in.After {
		case 12:
			if string(in.Program) != `{"limit":9}` || in.Limits != nil {
				t.Errorf("it goes on with %+v", in)
			}
			<-raised // else the workflow may end before it is asked again
			return stands(mark.RunCompleted, 20), nil
		case 20:
			if string(in.Limits) != `{"limit":11}` || in.Program != nil {
				t.Errorf("it goes on with %+v", in)
			}
		}
		return stands(mark.RunCompleted, 30), nil
	}
	done := int64(12)
	c.ask = func(context.Context, asking) (temporal.Status, error) {
		st := stands(mark.RunCompleted, done)
		done += 8
		return st, nil
	}
	c.later(0, temporal.Request{Do: temporal.Resume, Continue: true, Program: []byte(`{"limit":9}`)}, func(_ temporal.Status, err error) {
		if err != nil {
			t.Error(err)
		}
		c.later(0, temporal.Request{Do: temporal.Raise, Limits: []byte(`{"limit":11}`)}, nil)
		c.RegisterDelayedCallback(func() { close(raised) }, 0)
	})
	if st := c.result(); st.Seq != 30 {
		t.Errorf("it ends as %+v", st)
	}
}

// Search attributes say how the run stands, if the namespace has them.
func TestSearchAttributes(t *testing.T) {
	c := newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		st := stands(mark.RunCompleted, 12)
		st.Name, st.Stop = "poem", "goal"
		return st, nil
	}
	c.OnUpsertTypedSearchAttributes(sdk.NewSearchAttributes(
		sdk.NewSearchAttributeKeyKeyword(temporal.AttributeDefinition).ValueSet("poem"),
		sdk.NewSearchAttributeKeyKeyword(temporal.AttributeStatus).ValueSet("completed"),
		sdk.NewSearchAttributeKeyKeyword(temporal.AttributeStop).ValueSet("goal"))).Return(nil).Once()
	c.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: "r_1", Attributes: true})
	if err := c.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	c.AssertExpectations(t)
}

// A workflow whose history has become long begins anew, also if all that happens are requests that are
// refused, and the run stands as before.
func TestContinueAsNew(t *testing.T) {
	c := newFlow(t)
	seven := 7.0
	c.drive = func(context.Context, leg) (temporal.Status, error) {
		st := stands(mark.RunWaiting, 7)
		st.Open, st.Iteration, st.Score = []string{"q"}, 3, &seven
		return st, nil
	}
	c.ask = func(_ context.Context, in asking) (temporal.Status, error) {
		if in.Do == temporal.Pause {
			return temporal.Status{}, sdk.NewNonRetryableApplicationError("it is paused", "paused", nil)
		}
		return stands(mark.RunWaiting, 7), nil
	}
	c.RegisterDelayedCallback(func() { c.SignalWorkflow(temporal.Look, nil) }, time.Hour)
	c.RegisterDelayedCallback(func() { c.SetContinueAsNewSuggested(true) }, 2*time.Hour)
	c.later(3*time.Hour, temporal.Request{Do: temporal.Pause}, func(_ temporal.Status, err error) {
		if err == nil {
			t.Error("it was paused")
		}
	})
	c.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: "r_1", Heartbeat: time.Minute, Attributes: true})
	again, ok := errors.AsType[*workflow.ContinueAsNewError](c.GetWorkflowError())
	if !ok {
		t.Fatalf("it ends with %v", c.GetWorkflowError())
	}
	c.wantLegs(0)
	var in temporal.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
		t.Fatal(err)
	}
	if st := in.Now; in.RunID != "r_1" || in.Heartbeat != time.Minute || !in.Attributes || st == nil || st.Seq != 7 || st.Iteration != 3 || *st.Score != 7 {
		t.Errorf("it goes on with %+v, %+v", in, st)
	}

	c = newFlow(t)
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) { return stands(mark.RunCompleted, 12), nil }
	c.ask = func(context.Context, asking) (temporal.Status, error) {
		st := stands(mark.RunIsPaused, 9)
		st.HandOver = true
		return st, nil
	}
	c.later(time.Hour, temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: "q"}}, nil)
	in.Attributes = false
	c.ExecuteWorkflow(temporal.Run, in)
	if err := c.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	c.wantLegs(9)
}

// A look at a run that stands still leaves what its last leg has come to.
func TestLookKeepsTheScore(t *testing.T) {
	c := newFlow(t)
	score := 4.5
	c.drive = func(_ context.Context, in leg) (temporal.Status, error) {
		if in.After > 0 {
			return stands(mark.RunCompleted, 12), nil
		}
		st := stands(mark.RunIsPaused, 7)
		st.Iteration, st.Score = 3, &score
		return st, nil
	}
	c.ask = func(context.Context, asking) (temporal.Status, error) { return stands(mark.RunIsPaused, 7), nil }
	c.RegisterDelayedCallback(func() { c.SignalWorkflow(temporal.Look, nil) }, time.Hour)
	c.RegisterDelayedCallback(func() {
		var st temporal.Status
		v, err := c.QueryWorkflow(temporal.Query)
		if err == nil {
			err = v.Get(&st)
		}
		if err != nil || st.Iteration != 3 || st.Score == nil || *st.Score != score {
			t.Errorf("the workflow says %+v, %v", st, err)
		}
	}, 2*time.Hour)
	c.later(3*time.Hour, temporal.Request{Do: temporal.Resume}, nil)
	c.result()
}
