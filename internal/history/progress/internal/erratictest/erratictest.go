// SPDX-License-Identifier: Apache-2.0

// Package erratictest makes random loops for tests of what is read from their logs.
package erratictest

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Agent returns an agent that writes scores, fails, and asks to leave, as the dice say.
func Agent(t *testing.T, name string, dice *rand.Rand) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText(fmt.Sprint(name, dice.IntN(3)), genai.RoleModel)
			ev.Actions.StateDelta = map[string]any{"score": dice.IntN(10), "iteration:by": name}
			if dice.IntN(12) == 0 {
				ev.Actions.Escalate = true
				ev.Actions.Exit = &session.Exit{Reason: "enough"}
			}
			if !yield(ev, nil) {
				return
			}
			if dice.IntN(6) == 0 {
				yield(nil, errors.New("broken"))
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Loop returns a loop over agents, with stop conditions and error policies as the dice say.
func Loop(t *testing.T, name string, dice *rand.Rand, subs ...agent.Agent) agent.Agent {
	t.Helper()
	cfg := loopagent.Config{
		AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxIterations: uint(1 + dice.IntN(6)),
		Rules: loop.Plan{
			OnError: []loop.ErrorPolicy{loop.SkipStep, loop.NextIteration}[dice.IntN(2)],
			Score:   &loop.Score{Key: "score", Target: new(9.0)},
		},
	}
	switch dice.IntN(4) {
	case 0:
		cfg.Rules.OnRegression = loop.RollbackOnWorse
	case 1:
		cfg.Rules.StopWhen = &loop.Condition{Expr: "state.score == 7"}
		cfg.Rules.StopCheck = loop.EachStep
	case 2:
		cfg.Rules.NoProgress = &loop.NoProgress{Repeats: 2}
		cfg.Rules.CanExit = []string{}
	case 3:
		cfg.Rules.Steps = []loop.Step{
			{Name: subs[0].Name(), Retry: &loop.Retry{Attempts: 3},
				Circuit: &loop.Circuit{Failures: 2, Cooldown: loop.Duration(time.Microsecond)}},
			{Name: subs[len(subs)-1].Name(), Finalizer: true},
		}
	}
	a, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
