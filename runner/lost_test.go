// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// counting is a model that counts its calls, needs a second for each, and calls a
// tool for ever.
type counting struct{ calls atomic.Int64 }

func (*counting) Name() string { return "counting" }

func (m *counting) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		n := m.calls.Add(1)
		time.Sleep(time.Second)
		call := &genai.FunctionCall{ID: fmt.Sprint("c", n), Name: "look", Args: map[string]any{}}
		yield(&model.LLMResponse{
			Content:       &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: call}}},
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CandidatesTokenCount: 5},
		}, nil)
	}
}

// insistent asks the model again and again.
func insistent(t testing.TB, name string, m model.LLM) agent.Agent {
	t.Helper()
	look, err := functiontool.New(functiontool.Config{Name: "look", Description: "looks"}, func(tool.Context, map[string]any) (map[string]any, error) {
		return map[string]any{"seen": "nothing"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: name, Model: m, Tools: []tool.Tool{look}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// answersIn is how many calls of the model a log shows, whether or not they count.
func answersIn(log []*session.Event) (n int64) {
	for _, ev := range log {
		if ev.Content != nil && ev.UsageMetadata != nil {
			n++
		}
	}
	return n
}

// LOOP 23, LOOP 30: what the log shows as used counts when a run goes on, whoever was
// cut off: the siblings of a failed branch, and attempts that are made again. The
// bound of a loop's budget is kept to the call, wherever the process dies.
func TestResumedRunKeepsItsBudget(t *testing.T) {
	const most = 12
	var m *counting
	var rec *loop.StopRecord
	grow := map[string]func() agent.Agent{
		"siblings of a failed branch": func() agent.Agent {
			fails := custom(t, "fails", func(ctx agent.InvocationContext, yield yield) {
				select {
				case <-time.After(2500 * time.Millisecond):
				case <-ctx.Done():
				}
				yield(nil, errBroken)
			})
			branches, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
				Name: "branches", SubAgents: []agent.Agent{insistent(t, "one", m), insistent(t, "two", m), fails},
			}})
			if err != nil {
				t.Fatal(err)
			}
			return branches
		},
		"an attempt that is made again": func() agent.Agent {
			child := insistent(t, "child", m)
			return custom(t, "wrapper", func(ctx agent.InvocationContext, yield yield) {
				n := 0
				for ev, err := range drive.Run(ctx, child) {
					if n++; n > 7 || !yield(ev, err) {
						return
					}
				}
			})
		},
	}
	for name, step := range grow {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := func() agent.Agent {
					m = new(counting)
					l, err := loopagent.New(loopagent.Config{
						AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{speaker(t, "ok", "fine"), step()}}, MaxIterations: 10,
						Rules:  loop.Plan{OnError: loop.SkipStep, Budget: &loop.Budget{Calls: most}},
						OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r },
					})
					if err != nil {
						t.Fatal(err)
					}
					return l
				}
				store := crashed(t, nil, nil, 0)
				if _, err := collect(t, ask(t.Context(), newRunner(t, durable(start(), store)), "go")); err != nil {
					t.Fatal(err)
				}
				if m.calls.Load() != most || rec.Reason != loop.ReasonBudget {
					t.Fatalf("%d calls, stopped by %s", m.calls.Load(), rec.Reason)
				}
				log := slices.Collect(get(t, store).(*session.View).Log().All())
				for k := 2; k < len(log); k++ {
					store := crashed(t, nil, log, k)
					var made int64 // as far as the log shows
					// It dies once more, before it comes to its end.
					for _, dies := range []int{3, 0} {
						made = answersIn(slices.Collect(get(t, store).(*session.View).Log().All()))
						r := newRunner(t, durable(start(), store))
						ctx, cancel := context.WithCancel(t.Context())
						n := 0
						for _, err := range r.Resume(ctx, "ana", "s1", log[0].InvocationID, agent.RunConfig{}) {
							if err != nil && !errors.Is(err, runner.ErrFinished) {
								t.Fatalf("behind event %d: %v", k, err)
							}
							if n++; n == dies {
								break
							}
						}
						cancel()
						synctest.Wait()
					}
					if made += m.calls.Load(); made > most {
						t.Fatalf("behind event %d: %d calls under a budget of %d", k, made, most)
					}
				}
			})
		})
	}
}
