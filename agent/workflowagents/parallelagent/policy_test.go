// SPDX-License-Identifier: Apache-2.0

package parallelagent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
)

// A21, G3, C14, LOOP 20: a branch that fails is skipped where its policy says so, and then cancels no other; its delays are
// waited for, and are part of its turn.
func TestPolicies(t *testing.T) {
	errLate := errors.New("late")
	type steps = map[string]parallelagent.StepPolicy
	for _, tt := range []struct {
		name  string
		by    steps
		limit uint
		want  []string
		took  time.Duration
		ends  error
	}{
		{"ADK's", nil, 0, []string{"a: 0s", "b: 0s"}, time.Second, errLate},
		{"skipped", steps{"a": {SkipOnError: true}}, 0, []string{"a: 0s", "b: 0s", "b: 5s"}, 5 * time.Second, nil},
		{"a delay before", steps{"a": {SkipOnError: true, DelayBefore: 2 * time.Second}}, 0, []string{"a: 2s", "b: 0s", "b: 5s"}, 5 * time.Second, nil},
		{"a delay after", steps{"a": {SkipOnError: true, DelayAfter: time.Minute}}, 0, []string{"a: 0s", "b: 0s", "b: 5s"}, 61 * time.Second, nil},
		{"a failure that cancels the others", steps{"a": {DelayAfter: time.Minute}}, 0, []string{"a: 0s", "b: 0s"}, time.Second, errLate},
		{"one by one", steps{"a": {SkipOnError: true, DelayAfter: time.Minute}, "b": {DelayBefore: time.Hour}}, 1, nil, time.Hour + 66*time.Second, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				now := func() string { return fmt.Sprint(time.Since(start)) }
				a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
					if yield(says(now()), nil) {
						time.Sleep(time.Second)
						yield(nil, errLate)
					}
				})
				b := custom(t, "b", func(ctx agent.InvocationContext, yield yield) {
					if !yield(says(now()), nil) {
						return
					}
					select {
					case <-time.After(5 * time.Second):
						yield(says(now()), nil)
					case <-ctx.Done():
					}
				})
				root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "p", SubAgents: []agent.Agent{a, b}}, Steps: tt.by,
					MaxConcurrency: tt.limit})
				if err != nil {
					t.Fatal(err)
				}
				said, errs := outcome(root.Run(invocation(t.Context())))
				if err := errors.Join(errs...); !errors.Is(err, tt.ends) || (err == nil) != (tt.ends == nil) {
					t.Errorf("it ends with %v, want %v", err, tt.ends)
				}
				if diff := cmp.Diff(tt.want, said); diff != "" && tt.want != nil || time.Since(start) != tt.took {
					t.Errorf("it took %s, want %s; (-want +got):\n%s", time.Since(start), tt.took, diff)
				}
			})
		})
	}
}

// A9
func TestNewRefusesAPolicyOfNobody(t *testing.T) {
	_, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "p", SubAgents: []agent.Agent{speaker(t, "b")}},
		Steps: map[string]parallelagent.StepPolicy{"bb": {}}})
	if err == nil || !strings.Contains(err.Error(), `parallel agent "p": policy for step "bb", which is not one of the sub-agents; correct its name`) {
		t.Errorf("got error %v", err)
	}
}
