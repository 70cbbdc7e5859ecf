// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// slow is an agent that takes ten seconds, or hangs.
func slow(name string, hangs bool) (agent.Agent, error) {
	return agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			takes := time.After(rehearsal.DefaultStepTime)
			if hangs {
				takes = nil
			}
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
			case <-takes:
				ev := &session.Event{}
				ev.Content = genai.NewContentFromText(name+" has done something", genai.RoleModel)
				yield(ev, nil)
			}
		}
	}})
}

// really runs a definition, in a bubble's time, with agents that take ten seconds
// each, but for one that hangs. It returns why its last loop has stopped.
func really(t *testing.T, text, hangs string) (stop *loop.StopRecord) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		root, err := parse(t, text).Build(t.Context(), definition.BuildConfig{StandIns: definition.StandIns{
			Agent: func(a *definition.Agent) (agent.Agent, error) {
				if a.Type != definition.TypeCommand {
					return nil, nil
				}
				return slow(a.Name, a.Name == hangs)
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		var log []*session.Event
		for ev, err := range r.Run(t.Context(), "ana", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err == nil {
				log = append(log, ev)
			}
		}
		all, err := backtest.Recordings(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range all {
			if rec.Stop != nil {
				stop = rec.Stop
			}
		}
	})
	if stop == nil {
		t.Fatal("no loop has stopped")
	}
	return stop
}

// LOOP 21: what the rules say that a hang leads to is what it really leads to,
// and so is what they say of time that runs out.
func TestTimeIsAsItReallyIs(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		fault      rehearsal.Fault
		hangs      string
	}{
		{"iterations run out of time", `
max_iterations: 4
iteration_timeout: 2m
timeout: 30m
`, rehearsal.StepHung, "second"},
		{"the loop runs out of time", `
max_iterations: 40
timeout: 15m
iteration_timeout: 4m
iteration_delay: 20s
`, rehearsal.StepHung, "second"},
		{"the first step", `
max_iterations: 3
timeout: 7m
iteration_timeout: 2m30s
on_error: next_iteration
max_consecutive_failures: 2
`, rehearsal.StepHung, "first"},
		{"nothing hangs, and the loop never ends", `
max_iterations: 0
timeout: 10m
`, rehearsal.NeverExits, ""},
		{"what does not hang takes too long", `
max_iterations: 4
iteration_timeout: 15s
`, rehearsal.NeverExits, ""},
		{"delays", `
max_iterations: 3
iteration_delay: 25s
`, rehearsal.NeverExits, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := `sub_agents:
  - {name: first, command: ["true"], exit_when: result.exit_code == 7, ok_exit_codes: [0, 7]}
  - {name: second, command: ["true"]}
`
			text := "name: slow" + tt.text + steps
			want := really(t, text, tt.hangs)
			var got *loop.StopRecord
			for _, f := range rehearse(t, parse(t, text), rehearsal.Config{Faults: []rehearsal.Fault{tt.fault}}).Findings {
				if tt.hangs == "" || f.Steps[0] == tt.hangs || len(f.Steps) > 1 {
					got = f.Stop
				}
			}
			if got == nil {
				t.Fatal("the rules say nothing")
			}
			if got.Reason != want.Reason || got.Iteration != want.Iteration || got.Timeouts != want.Timeouts ||
				got.Elapsed.Round(time.Second) != want.Elapsed.Round(time.Second) {
				t.Errorf("the rules say %s after %d iterations, %d timeouts and %v;\nreally it is %s after %d, %d and %v", got.Reason, got.Iteration,
					got.Timeouts, got.Elapsed, want.Reason, want.Iteration, want.Timeouts, want.Elapsed)
			}
			t.Logf("%s after %d iterations, %v", want.Reason, want.Iteration, want.Elapsed)
		})
	}
}
