// SPDX-License-Identifier: Apache-2.0

package sequentialagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/budget"
)

var errBroken = errors.New("broken")

// steps are what a sequence says of its steps.
type steps = map[string]sequentialagent.StepPolicy

func sequenceBy(t *testing.T, name string, by steps, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, Steps: by})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// timed is an agent that says the time since start, takes a second, and fails by an error, if there is one.
func timed(t *testing.T, name string, start time.Time, err error) agent.Agent {
	t.Helper()
	return custom(t, name, func(_ agent.InvocationContext, yield yield) {
		if !yield(says(fmt.Sprint(time.Since(start))), nil) {
			return
		}
		if time.Sleep(time.Second); err != nil {
			yield(nil, err)
		}
	})
}

// A21, G3, C14, LOOP 20: a step of a sequence that fails is skipped where its policy says so, and its delays are waited for
// whether it fails or not.
func TestPolicies(t *testing.T) {
	const delay = 10 * time.Second
	for _, tt := range []struct {
		name string
		by   steps
		err  error // of b
		want []string
		took time.Duration
		ends error
	}{
		{"ADK's", nil, errBroken, []string{"a: 0s", "b: 1s"}, 2 * time.Second, errBroken},
		{"skipped", steps{"b": {SkipOnError: true}}, errBroken, []string{"a: 0s", "b: 1s", "c: 2s"}, 3 * time.Second, nil},
		{"another is skipped", steps{"a": {SkipOnError: true}}, errBroken, []string{"a: 0s", "b: 1s"}, 2 * time.Second, errBroken},
		{"delays", steps{"a": {DelayBefore: delay, DelayAfter: 2 * delay}, "b": {DelayBefore: delay}, "c": {DelayAfter: delay}}, nil,
			[]string{"a: 10s", "b: 41s", "c: 42s"}, 53 * time.Second, nil},
		{"after a failure", steps{"b": {SkipOnError: true, DelayAfter: delay}}, errBroken, []string{"a: 0s", "b: 1s", "c: 12s"}, 13 * time.Second, nil},
		{"after the failure that ends it", steps{"b": {DelayAfter: delay}}, errBroken, []string{"a: 0s", "b: 1s"}, 12 * time.Second, errBroken},
		{"the guard", steps{"b": {SkipOnError: true}}, agent.ErrTooManyModelCalls, []string{"a: 0s", "b: 1s"}, 2 * time.Second, agent.ErrTooManyModelCalls},
		{"a budget", steps{"b": {SkipOnError: true}}, &budget.ExceededError{Budget: "l"}, []string{"a: 0s", "b: 1s"}, 2 * time.Second, budget.ErrExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				said, err := play(t, t.Context(), sequenceBy(t, "s", tt.by, timed(t, "a", start, nil), timed(t, "b", start, tt.err), timed(t, "c", start, nil)))
				if !errors.Is(err, tt.ends) || (err == nil) != (tt.ends == nil) {
					t.Errorf("it ends with %v, want %v", err, tt.ends)
				}
				if diff := cmp.Diff(tt.want, said); diff != "" || time.Since(start) != tt.took {
					t.Errorf("it took %s, want %s; (-want +got):\n%s", time.Since(start), tt.took, diff)
				}
			})
		})
	}
}

// T20: a cancellation during a delay ends it at once.
func TestCanceledDuringADelay(t *testing.T) {
	for name, by := range map[string]steps{
		"before": {"b": {DelayBefore: time.Hour, SkipOnError: true}}, "between": {"a": {DelayAfter: time.Hour}}, "behind": {"b": {DelayAfter: time.Hour}},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(errBroken) })
			_, err := play(t, ctx, sequenceBy(t, "s", by, speaker(t, "a", "x"), speaker(t, "b", "y")))
			if took := time.Since(start); err != errBroken || took != time.Minute {
				t.Errorf("%s: it ends after %s with %v", name, took, err)
			}
		})
	}
}

// A9
func TestNewRefusesAPolicyOfNobody(t *testing.T) {
	for want, by := range map[string]steps{
		`sequential agent "s": policy for step "bb", which is not one of the sub-agents; correct its name`: {"bb": {}},
		`the policy of step "b" has a negative delay; 0 means none`:                                        {"b": {DelayAfter: -1}},
	} {
		_, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "s", SubAgents: []agent.Agent{speaker(t, "b")}}, Steps: by})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

// What a skipped step said and changed before it failed stays.
func TestSkippedStepKeepsWhatItDid(t *testing.T) {
	half := custom(t, "half", func(_ agent.InvocationContext, yield yield) {
		ev := says("half")
		ev.Actions.StateDelta = map[string]any{"k": 1}
		if yield(ev, nil) {
			panic("oh")
		}
	})
	reads := custom(t, "reads", func(ctx agent.InvocationContext, yield yield) {
		v, err := ctx.Session().State().Get("k")
		yield(says(fmt.Sprint(v, err)), nil)
	})
	said, err := play(t, t.Context(), sequenceBy(t, "s", steps{"half": {SkipOnError: true}}, half, reads))
	if diff := cmp.Diff([]string{"half: half", "reads: 1 <nil>"}, said); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}
