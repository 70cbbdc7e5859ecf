// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// step is an agent that says what f returns; iterations count from 1.
func step(name string, f func(iteration int) *session.Event) agent.Agent {
	a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n := 0
			if l := drive.At(ctx).Loop(); l != nil {
				n = l.Iteration
			}
			yield(f(n), nil)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	return a
}

// tell runs the agent and prints who said what.
func tell(a agent.Agent, err error) {
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.NewInMemory("app", a)
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range r.Run(context.Background(), "ana", "s1", nil, agent.RunConfig{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", ev.Author, ev.Text())
	}
}

// Two agents by turns, a fixed number of times.
func Example() {
	critic := step("critic", func(int) *session.Event { return words("too long") })
	editor := step("editor", func(n int) *session.Event { return words(fmt.Sprintf("cut %d", n)) })
	tell(loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{critic, editor}},
		MaxIterations: 2,
	}))
	// Output:
	// critic: too long
	// editor: cut 1
	// critic: too long
	// editor: cut 2
}

// Only the critic may end the loop.
func Example_exit() {
	critic := step("critic", func(n int) *session.Event {
		ev := words("too long")
		if n == 2 {
			ev = words("good")
			ev.Actions.Escalate = true
			ev.Actions.Exit = &session.Exit{Reason: "nothing left to cut"}
		}
		return ev
	})
	editor := step("editor", func(int) *session.Event { return words("cut") })
	tell(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{critic, editor}},
		Rules:       loop.Plan{CanExit: []string{"critic"}},
		OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) {
			fmt.Printf("(%s by %s: %s)\n", r.Reason, r.By, r.Detail)
		},
	}))
	// Output:
	// critic: too long
	// editor: cut
	// critic: good
	// (exit_loop by critic: nothing left to cut)
}

// The loop ends when the score hardly improves, and hands back the best.
func Example_score() {
	scores := []float64{5.2, 6.8, 6.7}
	writer := step("writer", func(n int) *session.Event {
		ev := words(fmt.Sprintf("draft %d", n))
		ev.Actions.StateDelta = map[string]any{"score": scores[n-1]}
		return ev
	})
	tell(loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}},
		MaxIterations: 9,
		Rules:         loop.Plan{Score: &loop.Score{Key: "score", MinDeltaPercent: new(5.0)}},
		AfterIteration: []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
			fmt.Println(it)
			return nil
		}},
		OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { fmt.Println(r.Detail) },
	}))
	// Output:
	// writer: draft 1
	// Iteration 1: Score 5.2 → Improvement: N/A
	// writer: draft 2
	// Iteration 2: Score 6.8 → Improvement: +1.6 (30.8%)
	// writer: draft 3
	// Iteration 3: Score 6.7 → Improvement: -0.1 (-1.5%)
	// Convergence detected: Improvement < 5%
	// refine: draft 2
}

// The finalizer runs once, after the last iteration.
func Example_finalizer() {
	editor := step("editor", func(n int) *session.Event { return words(fmt.Sprintf("draft %d", n)) })
	printer := step("printer", func(int) *session.Event { return words("printed") })
	tell(loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{editor, printer}},
		MaxIterations: 2,
		Rules:         loop.Plan{Steps: []loop.Step{{Name: "printer", Finalizer: true}}},
	}))
	// Output:
	// editor: draft 1
	// editor: draft 2
	// printer: printed
}

// An exit leaves the nearest loop; the sequence and the loop around it go on.
func Example_nested() {
	tests := step("tests", func(n int) *session.Event {
		ev := words("red")
		if n == 2 {
			ev = words("green")
			ev.Actions.Escalate = true
		}
		return ev
	})
	fix, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "fix", SubAgents: []agent.Agent{tests}}})
	if err != nil {
		log.Fatal(err)
	}
	pipeline, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
		Name: "pipeline", SubAgents: []agent.Agent{fix, step("commit", func(int) *session.Event { return words("done") })},
	}})
	if err != nil {
		log.Fatal(err)
	}
	tell(loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "features", SubAgents: []agent.Agent{pipeline}},
		MaxIterations: 2,
	}))
	// Output:
	// tests: red
	// tests: green
	// commit: done
	// tests: red
	// tests: green
	// commit: done
}

// A key that begins with iteration: is gone when the iteration ends.
func Example_state() {
	writer := step("writer", func(n int) *session.Event {
		ev := words("writes")
		ev.Actions.StateDelta = map[string]any{"draft": n}
		if n == 1 {
			ev.Actions.StateDelta["iteration:hint"] = "shorter"
		}
		return ev
	})
	reader, err := agent.New(agent.Config{Name: "reader", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			lookup := drive.At(ctx).Lookup
			draft, _ := lookup("draft")
			hint, _ := lookup("iteration:hint")
			before, _ := lookup("prev.draft")
			yield(words(fmt.Sprintf("draft %v, hint %v, before %v", draft, hint, before)), nil)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	tell(loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{writer, reader}},
		MaxIterations: 2,
		KeepStates:    true,
	}))
	// Output:
	// writer: writes
	// reader: draft 1, hint shorter, before <nil>
	// writer: writes
	// reader: draft 2, hint <nil>, before 1
}
