// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// slow is a model that needs a second for one word.
var slow = fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
	time.Sleep(time.Second)
	yield(response("fine"), nil)
})

// LOOP 23: parallel reviewers with one-word answers share a budget that has no room
// for the largest answer of each: they wait for one another until it is known how
// short their answers are.
func TestParallelReviewersWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reviewers []agent.Agent
		for i := range 4 {
			reviewers = append(reviewers, newAgent(t, llmagent.Config{Name: fmt.Sprint("reviewer", i), Model: slow}))
		}
		panel, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "panel", SubAgents: reviewers}})
		if err != nil {
			t.Fatal(err)
		}
		var rec *loop.StopRecord
		s := newSpender(t, budget.Limits{}, newLoop(t, loopagent.Config{
			MaxIterations: 3, Rules: loop.Plan{Budget: &loop.Budget{Tokens: 10_000}},
			OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r },
		}, panel))
		began := time.Now()
		if _, err := s.ask(t.Context(), "Review it."); err != nil {
			t.Fatal(err)
		}
		if rec.Reason != loop.ReasonMaxIterations || rec.Usage.Calls != 12 {
			t.Errorf("stopped by %s after %d calls, want max_iterations after 12", rec.Reason, rec.Usage.Calls)
		}
		// Two at a time in the first iteration, then all at once.
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %s, want 4 s", took)
		}
		if got := rec.Usage.EstimatedTokens; got != rec.Usage.InputTokens+rec.Usage.OutputTokens {
			t.Errorf("the record says that %d of %+v are estimated", got, rec.Usage)
		}
	})
}

// LOOP 22, LOOP 23: a call that hangs is booked by what is known of it when its step
// runs out of time, and holds no room for ever.
func TestHungCallsHoldNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var asked atomic.Int64 // a call that hangs is left behind
		m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			if asked.Add(1) <= 3 {
				<-hang // whatever its context says
			}
			yield(response("fine"), nil)
		})
		var rec *loop.StopRecord
		s := newSpender(t, budget.Limits{}, newLoop(t, loopagent.Config{
			MaxIterations: 5,
			Rules: loop.Plan{
				Budget: &loop.Budget{Tokens: 10_000}, OnError: loop.NextIteration,
				Steps: []loop.Step{{Name: "a", Timeout: loop.Duration(time.Minute)}},
			},
			OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r },
		}, newAgent(t, llmagent.Config{Name: "a", Model: m})))
		if _, err := s.ask(t.Context(), "Hello"); err != nil {
			t.Error(err)
		}
		if rec.Reason != loop.ReasonMaxIterations || asked.Load() != 5 || rec.Usage.Calls != 5 {
			t.Errorf("stopped by %s after %d calls, %d of them counted; want all 5 made", rec.Reason, asked.Load(), rec.Usage.Calls)
		}
		for _, c := range rec.Conditions {
			if c.Name == "budget.tokens" && !strings.Contains(c.Note, "estimated") {
				t.Errorf("the record does not say what is estimated: %+v", c)
			}
		}
		close(hang)
	})
}

// LOOP 23: whoever hears a piece of an answer may ask a model before it hears the
// rest. The call under way is then its own: after a while it takes what room there is.
func TestListenerMayAskAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pieces := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			piece := response("some")
			piece.Partial = true
			_ = yield(piece, nil) && yield(response("something"), nil)
		})
		talker := newAgent(t, llmagent.Config{Name: "talker", Model: pieces})
		listener := newAgent(t, llmagent.Config{Name: "listener", Model: slow})
		root, err := agent.New(agent.Config{
			Name: "both", SubAgents: []agent.Agent{talker, listener},
			Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
				return func(yield func(*session.Event, error) bool) {
					for ev, err := range drive.Run(ctx, talker) {
						if err != nil || !yield(ev, nil) {
							t.Error(err)
							return
						}
						for ev, err := range drive.Run(ctx, listener) {
							if !yield(ev, err) {
								return
							}
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := newSpender(t, budget.Limits{Tokens: 4500}, root)
		s.cfg.StreamingMode = agent.StreamingModeSSE
		began := time.Now()
		if said := s.must("Hello"); len(said) != 4 {
			t.Errorf("got %q", said)
		}
		// The first call of the listener waits, the one behind the whole answer does not.
		if took := time.Since(began); took < 3*time.Second || took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
