// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// seedRun is the log of the run that the seed shows.
func seedRun(t *testing.T) []*session.Event {
	t.Helper()
	var log []*session.Event
	nothing := func(int, *session.Event) error { return nil }
	synctest.Test(t, func(t *testing.T) {
		generator := must(agent.New(agent.Config{Name: "content_generator", Run: paced(func(n int) time.Duration {
			return []time.Duration{41, 71, 110, 41}[n-1] * time.Second
		}, nothing)}))
		analyzer := timed("quality_analyzer", 22*time.Second, func(n int, ev *session.Event) error {
			ev.Actions.StateDelta = map[string]any{"score": []float64{5.2, 6.8, 7.4, 8.1}[n-1]}
			return nil
		})
		final := timed("final_consolidator", 0, func(_ int, ev *session.Event) error {
			ev.Content = genai.NewContentFromText("the text", genai.RoleModel)
			return nil
		})
		log = record(t, t.Context(), must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "refinador_conteudo_iterativo", SubAgents: []agent.Agent{
				generator, analyzer, timed("feedback_collector", 50*time.Second, nothing), timed("criteria_checker", 22*time.Second, nothing), final,
			}},
			MaxIterations: 5,
			Rules: loop.Plan{
				CanExit: []string{"criteria_checker"}, Steps: []loop.Step{{Name: "final_consolidator", Finalizer: true}},
				Score: &loop.Score{Key: "score", Target: new(8.0)},
			},
		})))
	})
	return log
}

// running returns the innermost running step, the one that began last if there are several; nil if
// there is none.
func running(t *progress.Tree) *progress.Step {
	if t.Root == nil || t.Root.Status != progress.StatusRunning {
		return nil
	}
	at := t.Root
	for {
		var next *progress.Step
		for c := range at.Children() {
			if c.Status == progress.StatusRunning && (next == nil || c.Began >= next.Began) {
				next = c
			}
		}
		if next == nil {
			return at
		}
		at = next
	}
}

// sketch is a tree in a line for each step and iteration.
func sketch(t *progress.Tree) []string {
	var lines []string
	var step func(s *progress.Step, in string)
	step = func(s *progress.Step, in string) {
		line := fmt.Sprintf("%s%s %s %s", in, s.Name, s.Status, brief.Clock(s.Took(t.Now)))
		if s.Attempt > 1 {
			line += fmt.Sprintf(" attempt %d", s.Attempt)
		}
		if s.CanExit {
			line += " can exit"
		}
		if s.Error != "" {
			line += " " + s.Error
		}
		lines = append(lines, line)
		if s.Loop != nil {
			for _, it := range s.Loop.Iterations {
				line := fmt.Sprintf("%s%d %s %s", in, it.Number, it.Status, brief.Clock(it.Took(t.Now)))
				switch {
				case it.Provisional != nil:
					line += fmt.Sprintf(" so far %v", *it.Provisional)
				case it.Record != nil && it.Record.Score != nil:
					line += fmt.Sprintf(" score %v", *it.Record.Score)
				}
				if it.RolledBack {
					line += " undone"
				}
				lines = append(lines, line)
				for _, c := range it.Steps {
					step(c, in+"  ")
				}
			}
			if s.Loop.Finalizer != nil {
				step(s.Loop.Finalizer, in)
			}
		}
		for _, c := range s.Steps {
			step(c, in+"  ")
		}
	}
	step(t.Root, "")
	return lines
}

// timed returns an agent that takes its time, and then does f.
func timed(name string, d time.Duration, f func(n int, ev *session.Event) error) agent.Agent {
	return must(agent.New(agent.Config{Name: name, Run: paced(func(int) time.Duration { return d }, f)}))
}

func paced(d func(n int) time.Duration, f func(n int, ev *session.Event) error) func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	n := 0
	return func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n++
			select {
			case <-time.After(d(n)):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			ev := &session.Event{}
			if err := f(n, ev); err != nil {
				yield(nil, err)
				return
			}
			yield(ev, nil)
		}
	}
}

// record is the log of a durable run.
func record(t *testing.T, ctx context.Context, root agent.Agent) []*session.Event {
	t.Helper()
	r, _ := newRunner(t, root)
	var log []*session.Event
	for ev, err := range r.Run(ctx, "ana", "", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Log(err)
			break
		}
		log = append(log, ev)
	}
	return log
}

func newRunner(t *testing.T, root agent.Agent) (*runner.Runner, session.Service) {
	t.Helper()
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "test", Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	return r, svc
}
