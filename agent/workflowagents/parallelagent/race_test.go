// SPDX-License-Identifier: Apache-2.0

package parallelagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// climber is a loop whose scores are given; a score that is missing fails the loop.
func climber(t *testing.T, name string, scores ...float64) agent.Agent {
	n := 0
	step := custom(t, name+"_step", func(ctx agent.InvocationContext, yield yield) {
		if n++; n > len(scores) {
			yield(nil, fmt.Errorf("%s cannot go on", name))
			return
		}
		ev := says(fmt.Sprintf("%s %d", name, n))
		ev.Actions.StateDelta = map[string]any{name + "_score": scores[n-1]}
		yield(ev, nil)
	})
	l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: []agent.Agent{step}}, MaxIterations: 4,
		Rules: loop.Plan{Score: &loop.Score{Key: name + "_score"}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func racing(t *testing.T, r parallelagent.Race, loops ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "race", SubAgents: loops}, Race: &r})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func run(t *testing.T, ctx context.Context, a agent.Agent) (winner any, err error) {
	t.Helper()
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: svc, AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Run(ctx, "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		err = errors.Join(err, e)
	}
	got, e := svc.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if e != nil {
		t.Fatal(e)
	}
	winner, _ = got.Session.State().Get("winner")
	return winner, err
}

// The largest mean wins, of equal ones the first; who fails loses, in a run that is not durable too.
func TestRaceWinner(t *testing.T) {
	for _, tt := range []struct {
		name  string
		race  parallelagent.Race
		a, b  []float64
		want  any
		fails string
	}{
		{"the best", parallelagent.Race{}, []float64{1, 2, 3, 4}, []float64{9, 1, 1, 1}, "b", ""},
		{"equal", parallelagent.Race{Iterations: 2}, []float64{1, 2, 9, 9}, []float64{2, 2, 2, 2}, "a", ""},
		{"lower is better", parallelagent.Race{Iterations: 1, LowerIsBetter: true}, []float64{5, 9, 9, 9}, []float64{4, 1, 1, 1}, "b", ""},
		{"who fails loses", parallelagent.Race{Iterations: 2, Continue: true}, []float64{1, 2, 3, 4}, []float64{9}, "a", ""},
		{"the winner fails later", parallelagent.Race{Iterations: 2, Continue: true}, []float64{1, 2}, []float64{0, 1, 3, 4}, "a", "a cannot go on"},
		{"all fail", parallelagent.Race{Iterations: 2, Continue: true}, []float64{1}, []float64{9}, nil, "a cannot go on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.race.WinnerKey = "winner"
			got, err := run(t, t.Context(), racing(t, tt.race, climber(t, "a", tt.a...), climber(t, "b", tt.b...)))
			if got != tt.want {
				t.Errorf("the winner is %v, want %v", got, tt.want)
			}
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("the error is %v, want %q", err, tt.fails)
			}
		})
	}
}

// A canceled race ends, although a loop of it waits for the others, and nobody has won.
func TestRaceCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	slow := custom(t, "slow_step", func(ctx agent.InvocationContext, yield yield) {
		cancel(stop)
		<-ctx.Done()
		yield(nil, context.Cause(ctx))
	})
	l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "slow", SubAgents: []agent.Agent{slow}}, MaxIterations: 4})
	if err != nil {
		t.Fatal(err)
	}
	winner, err := run(t, ctx, racing(t, parallelagent.Race{Iterations: 1, Continue: true, WinnerKey: "winner"}, climber(t, "a", 1, 2, 3, 4), l))
	if !errors.Is(err, stop) || winner != nil {
		t.Errorf("winner %v, error %v", winner, err)
	}
}

// A race keeps the promises of an agent.
func TestRaceIsAnAgent(t *testing.T) {
	agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
		again := func(name string) agent.Agent {
			steps := []agent.Agent{speaker(t, name+"_step", "a word")}
			l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: steps}, MaxIterations: 3})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		return racing(t, parallelagent.Race{Iterations: 1, Continue: true}, again("a"), again("b"))
	})
}
