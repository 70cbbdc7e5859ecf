// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// scorer is a model that answers with one score after another, by how often it was asked in the loop.
type scorer []string

func (m scorer) Name() string { return "scorer" }

func (m scorer) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		var n int
		_, _ = fmt.Sscan(req.Config.SystemInstruction.Parts[0].Text, &n)
		resp := &model.LLMResponse{Content: genai.NewContentFromText(m[n-1], genai.RoleModel)}
		resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 90, CandidatesTokenCount: 10}
		yield(resp, nil)
	}
}

// racingTree is a race of two loops of one model step each: the second has the better third score.
func racingTree(t testing.TB, slice budget.Limits) agent.Agent {
	t.Helper()
	var loops []agent.Agent
	for name, scores := range map[string]scorer{"quick": {"7", "8", "9", "9.1", "9.2"}, "deep": {"1", "4", "10", "12", "13"}} {
		writer, err := llmagent.New(llmagent.Config{Name: name + "_writer", Model: scores, OutputKey: name + "_score",
			Instruction: "{{iteration}} is the number."})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: []agent.Agent{writer}}, MaxIterations: 5,
			Score: &loop.Score{Key: name + "_score"}, Result: name + "_score"})
		if err != nil {
			t.Fatal(err)
		}
		loops = append(loops, l)
	}
	slices.SortFunc(loops, func(a, b agent.Agent) int { return len(b.Name()) - len(a.Name()) })
	root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "race", SubAgents: loops},
		Race: &parallelagent.Race{Budget: slice, Continue: true, WinnerKey: "winner"}})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// LOOP 19a, 23, 30: a race whose process is killed behind any event is decided once. No loop makes more requests in its slice than that
// allows, the lost ones included, and the best goes on with its own limits.
func TestRaceResumesAnywhere(t *testing.T) {
	for name, slice := range map[string]budget.Limits{"calls": {Calls: 3}, "tokens": {Tokens: 300}} {
		check := func(t *testing.T, svc session.Service) {
			view := get(t, svc).(*session.View)
			var d *mark.RaceDecided
			requests, goesOn := map[session.Address]int{}, 0
			for ev := range view.Log().All() {
				switch {
				case ev.Mark == nil:
				case ev.Mark.Kind == mark.KindRaceDecided:
					if d != nil {
						t.Fatal("decided twice")
					}
					d = new(decode[mark.RaceDecided](t, ev.Mark))
				case ev.Mark.Kind == mark.KindRequested && d == nil:
					for _, l := range []session.Address{"race/quick", "race/deep"} {
						if ev.Address.Under(l) {
							requests[l]++
						}
					}
				case ev.Mark.Kind == mark.KindRequested && ev.Address.Under(session.Address("race/"+d.Winner)):
					goesOn++
				case ev.Mark.Kind == mark.KindRequested:
					t.Errorf("%s goes on although %s has won", ev.Address, d.Winner)
				}
			}
			if d == nil {
				t.Fatal("not decided")
			}
			if len(requests) != 2 || requests["race/quick"] > 3 || requests["race/deep"] > 3 {
				t.Errorf("requests before the decision: %v", requests)
			}
			best := slices.MaxFunc(d.Standings, func(a, b mark.Standing) int { return int(1000 * (*a.Score - *b.Score)) })
			want := map[string]string{"quick": "9.2", "deep": "13"}[best.Loop]
			if got, _ := view.State().Get(best.Loop + "_score"); d.Winner != best.Loop || !d.Continues || goesOn == 0 || fmt.Sprint(got) != want {
				t.Errorf("%+v: %d requests after it, %v", d, goesOn, got)
			}
		}
		t.Run(name, func(t *testing.T) {
			svc := session.InMemoryService()
			if _, err := collect(t, ask(t.Context(), newRunner(t, durable(racingTree(t, slice), svc)), "go")); err != nil {
				t.Fatal(err)
			}
			check(t, svc)
			log := slices.Collect(get(t, svc).(*session.View).Log().All())
			for k := 1; k < len(log) && !t.Failed(); k++ {
				cut := crashed(t, nil, log, k)
				if _, err := resume(t, cut, racingTree(t, slice), log[0].InvocationID); err != nil {
					t.Fatalf("behind %d of %d events: %v", k, len(log), err)
				}
				if check(t, cut); t.Failed() {
					t.Logf("behind %d of %d events", k, len(log))
				}
			}
		})
	}
}
