// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// spender tells only at its end what it has used, as a coding agent does.
type spender struct{ *drive.Base }

func (spender) InterruptedUsage() budget.Usage { return budget.Usage{Calls: 1, Estimated: true} }

func (spender) Used(*session.Event, budget.Prices) budget.Usage { return budget.Usage{} }

// Each start of a coding agent that was killed counts, however often its run is killed.
func TestEachStartThatWasCutOffCounts(t *testing.T) {
	start := func() agent.Agent {
		s := &spender{}
		base, err := drive.NewBase(agent.Config{Name: "coder"}, s, func(ctx agent.InvocationContext, yield yield) {
			drive.At(ctx).Budget().Book(budget.Usage{Calls: 2, Cost: new(0.5)})
			yield(says("done"), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Base = base
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{s}}, MaxIterations: 2})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	whole := crashed(t, nil, nil, 0)
	if _, err := collect(t, ask(t.Context(), newRunner(t, durable(start(), whole)), "go")); err != nil {
		t.Fatal(err)
	}
	log := slices.Collect(get(t, whole).(*session.View).Log().All())
	begins := func(ev *session.Event) bool {
		return ev.Author == "coder" && ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted
	}
	first := slices.IndexFunc(log, begins) + 1
	for kills := 1; kills <= 4; kills++ {
		t.Run(fmt.Sprint(kills, " kills"), func(t *testing.T) {
			store := crashed(t, nil, log, first)
			for range kills - 1 {
				ctx, cancel := context.WithCancel(t.Context())
				dying := errors.New("killed")
				dies := &failing{Service: store, onAppend: func(*session.Event) error { return nil }}
				started := false
				dies.onAppend = func(ev *session.Event) error {
					if started {
						return dying
					}
					started = begins(ev)
					return nil
				}
				for range newRunner(t, durable(start(), dies)).Resume(ctx, "ana", "s1", log[0].InvocationID, agent.RunConfig{}) {
				}
				cancel()
			}
			for _, err := range newRunner(t, durable(start(), store)).Resume(t.Context(), "ana", "s1", log[0].InvocationID, agent.RunConfig{}) {
				if err != nil && !errors.Is(err, runner.ErrFinished) {
					t.Fatal(err)
				}
			}
			var fin mark.StepFinished
			all := slices.Collect(get(t, store).(*session.View).Log().All())
			for _, ev := range all {
				if ev.Author == "l" && ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
					if err := ev.Mark.Decode(&fin); err != nil {
						t.Fatal(err)
					}
				}
			}
			var used budget.Usage
			if err := json.Unmarshal(fin.Usage, &used); err != nil {
				t.Fatal(err)
			}
			if want := int64(kills + 4); used.Calls != want || used.Cost != nil || used.KnownCost != 1 {
				t.Errorf("used %+v, want %d calls and 1 or more\n%s", used, want, lines(brief(all)))
			}
		})
	}
}

// A start that only asked what to do with edited files has used nothing; the one that was killed after it has.
func TestAStartThatAskedHasUsedNothing(t *testing.T) {
	start := func() agent.Agent {
		s := &spender{}
		base, err := drive.NewBase(agent.Config{Name: "coder"}, s, func(ctx agent.InvocationContext, yield yield) {
			if len(drive.At(ctx).Answers()) == 0 {
				q := mark.Edited("Which files?")
				q.ID = drive.At(ctx).QuestionIDOf("files")
				if _, err := drive.At(ctx).Ask(nil, q, yield); err != nil {
					yield(nil, err)
				}
				return
			}
			drive.At(ctx).Budget().Book(budget.Usage{Calls: 2, Cost: new(0.5)})
			yield(says("done"), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Base = base
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{s}}, MaxIterations: 1})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	store := crashed(t, nil, nil, 0)
	id, first := "", newRunner(t, durable(start(), store))
	message := genai.NewContentFromText("go", genai.RoleUser)
	for ev, err := range first.Run(t.Context(), "ana", "s1", message, agent.RunConfig{Pause: new(agent.Pause)}) {
		if waits, ok := errors.AsType[*agent.WaitingError](err); ok {
			answer(t, store, id, mark.Answer{ID: waits.Question.ID, Value: json.RawMessage(`{"action": "keep"}`)})
		} else if err != nil {
			t.Fatal(err)
		} else {
			id = ev.InvocationID
		}
	}
	begins := 0
	err := resumed(t, start(), store, id, func(ev *session.Event) bool { // and is killed at work
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted {
			begins++
		}
		return begins == 0
	})
	if err == nil {
		err = resumed(t, start(), store, id, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(get(t, store).(*session.View).Log().All())
	var fin mark.StepFinished
	for _, ev := range all {
		if ev.Author == "l" && ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
			if err := ev.Mark.Decode(&fin); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := string(fin.Usage); got != `{"calls":3,"estimated":true,"known_cost":0.5}` {
		t.Errorf("used %s\n%s", got, lines(brief(all)))
	}
}
