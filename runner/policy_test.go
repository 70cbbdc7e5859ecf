// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// A21, LOOP 30: a resumed sequence waits for the delay in which it was cut off, once more, and for no delay before steps that
// have ended.
func TestResumedSequenceWaits(t *testing.T) {
	isEnd := func(of string) func(*session.Event) bool {
		return func(ev *session.Event) bool {
			return ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Address.Agent() == of
		}
	}
	for _, tt := range []struct {
		name string
		cut  func(*session.Event) bool // the process dies there
		want time.Duration             // of the resumed run
	}{
		{"in the delay between", isEnd("a"), 3 * time.Hour},
		{"in the delay after the last", isEnd("b"), time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root, err := sequentialagent.New(sequentialagent.Config{
					AgentConfig: agent.Config{Name: "s", SubAgents: []agent.Agent{speaker(t, "a", "x"), speaker(t, "b", "y")}},
					Steps:       map[string]sequentialagent.StepPolicy{"a": {DelayBefore: time.Minute, DelayAfter: time.Hour}, "b": {DelayBefore: time.Hour, DelayAfter: time.Hour}},
				})
				if err != nil {
					t.Fatal(err)
				}
				r, id := newRunner(t, durable(root, session.InMemoryService())), ""
				for ev, err := range ask(t.Context(), r, "go") {
					if err != nil {
						t.Fatal(err)
					}
					if id = ev.InvocationID; tt.cut(ev) {
						break
					}
				}
				start := time.Now()
				for _, err := range r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("the resumed run takes %s, want %s", took, tt.want)
				}
			})
		})
	}
}

// LOOP 20, 31: a failure that a sequence has skipped is not tried again with the one that ended the run.
func TestRetryLeavesSkippedFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ran []string
		mended := false
		step := func(name string, takes time.Duration, fails func() bool) agent.Agent {
			return custom(t, name, func(_ agent.InvocationContext, yield yield) {
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				if ran = append(ran, name); fails() {
					yield(nil, errBroken)
					return
				}
				yield(says(name), nil)
			})
		}
		always, never := func() bool { return true }, func() bool { return false }
		line, err := sequentialagent.New(sequentialagent.Config{
			AgentConfig: agent.Config{Name: "line", SubAgents: []agent.Agent{step("a", 1, always), step("b", 1, never)}},
			Steps:       map[string]sequentialagent.StepPolicy{"a": {SkipOnError: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		svc := session.InMemoryService()
		root := branches(t, line, sequence(t, "other", step("c", time.Second, func() bool { return !mended })))
		p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(root, svc))}
		if err := p.first(); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		mended = true
		if _, err := p.more(p.id, 0); err != nil {
			t.Fatalf("%v\n%s", err, lines(brief(p.log())))
		}
		if diff := cmp.Diff([]string{"a", "b", "c", "c"}, ran); diff != "" {
			t.Errorf("which steps were made (-want +got):\n%s", diff)
		}
	})
}
