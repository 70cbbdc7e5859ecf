// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// upTo is the beginning of a log, until a step begins.
func upTo(t *testing.T, log []*session.Event, at session.Address) []*session.Event {
	t.Helper()
	for i, ev := range log {
		if ev.Address == at && ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted {
			return log[:i+1]
		}
	}
	t.Fatalf("%s never begins", at)
	return nil
}

// seedRun is the log of the run that the seed shows.
func seedRun(t *testing.T) []*session.Event {
	t.Helper()
	return run(t, func() agent.Agent {
		analyzer := says("quality_analyzer", 22*time.Second, func(n int, ev *session.Event) error {
			ev.Actions.StateDelta = map[string]any{"score": []float64{5.2, 6.8, 7.4, 8.1}[n-1]}
			ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 900, CandidatesTokenCount: 220}
			return nil
		})
		writes := func(n int, ev *session.Event) error {
			ev.Content = genai.NewContentFromText(fmt.Sprintf("draft %d", n), genai.RoleModel)
			return nil
		}
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "refinador_conteudo_iterativo", SubAgents: []agent.Agent{
				saysIn("content_generator", func(n int) time.Duration { return []time.Duration{41, 71, 110, 41}[n-1] * time.Second }, writes),
				analyzer, says("feedback_collector", 50*time.Second, nil), says("criteria_checker", 22*time.Second, nil),
				says("final_consolidator", 5*time.Second, nil),
			}},
			MaxIterations: 5,
			Rules: loop.Plan{
				CanExit: []string{"criteria_checker"}, Steps: []loop.Step{{Name: "final_consolidator", Finalizer: true}}, Timeout: loop.Duration(30 * time.Minute),
				Score: &loop.Score{Key: "score", Target: new(8.0)},
			},
		}))
	})
}

// nestedRun is a loop in a sequence in a loop.
func nestedRun(t *testing.T) []*session.Event {
	t.Helper()
	return run(t, func() agent.Agent {
		cut := says("cut", time.Second, func(n int, ev *session.Event) error {
			if n == 3 {
				ev.Actions.Escalate = true
				ev.Actions.Exit = &session.Exit{By: "cut", Reason: "short enough"}
			}
			return nil
		})
		polish := must(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "polish", SubAgents: []agent.Agent{cut}}, MaxIterations: 9}))
		chapter := must(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "chapter", SubAgents: []agent.Agent{
			says("draft", time.Second, nil), polish, says("keep", time.Second, nil),
		}}}))
		return must(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "book", SubAgents: []agent.Agent{chapter}}, MaxIterations: 2}))
	})
}

// says returns an agent that takes its time, and then does f.
func says(name string, d time.Duration, f func(n int, ev *session.Event) error) agent.Agent {
	return saysIn(name, func(int) time.Duration { return d }, f)
}

func saysIn(name string, d func(n int) time.Duration, f func(n int, ev *session.Event) error) agent.Agent {
	n := 0
	return must(agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n++
			select {
			case <-time.After(d(n)):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			ev := &session.Event{}
			if f != nil {
				if err := f(n, ev); err != nil {
					yield(nil, err)
					return
				}
			}
			yield(ev, nil)
		}
	}}))
}

// run is the log of a durable run, whose minutes take no time.
func run(t *testing.T, root func() agent.Agent) []*session.Event {
	t.Helper()
	var events []*session.Event
	synctest.Test(t, func(t *testing.T) {
		r, err := runner.New(runner.Config{
			AppName: "test", Agent: root(), SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		for ev, err := range r.Run(t.Context(), "ana", "", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Log(err)
				break
			}
			events = append(events, ev)
		}
	})
	return events
}

func must(a agent.Agent, err error) agent.Agent {
	if err != nil {
		log.Panic(err)
	}
	return a
}
