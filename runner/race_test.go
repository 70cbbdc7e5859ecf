// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
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
			Rules: loop.Plan{Score: &loop.Score{Key: name + "_score"}}, Result: name + "_score"})
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

// budgetedTree is that race in a loop of one iteration, whose budget is spent only if a resumed run counts calls twice.
func budgetedTree(t testing.TB, slice budget.Limits) agent.Agent {
	t.Helper()
	outer, err := loopagent.New(loopagent.Config{MaxIterations: 1, Rules: loop.Plan{Budget: &loop.Budget{Calls: 10}},
		AgentConfig: agent.Config{Name: "outer", SubAgents: []agent.Agent{racingTree(t, slice)}}})
	if err != nil {
		t.Fatal(err)
	}
	return outer
}

// checkUsage demands that each loop, the race and the whole run have counted the requests that the log has below them, each once.
func checkUsage(t *testing.T, view *session.View) {
	t.Helper()
	requests, ends := map[session.Address]int64{}, 0
	for ev := range view.Log().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindRequested {
			for at := ev.Address; at != ""; at = at.Parent() {
				requests[at]++
			}
		}
	}
	for ev := range view.Events().All() {
		var used budget.Usage
		switch {
		case ev.Mark == nil || ev.Address.Agent() == "quick_writer" || ev.Address.Agent() == "deep_writer":
			continue
		case ev.Mark.Kind == mark.KindLoopStopped:
			used.Calls = decode[loop.StopRecord](t, ev.Mark).Usage.Calls
		case ev.Mark.Kind == mark.KindStepFinished:
			if err := json.Unmarshal(decode[mark.StepFinished](t, ev.Mark).Usage, &used); err != nil {
				t.Fatal(err)
			}
			ends++
		default:
			continue
		}
		if want := requests[ev.Address]; used.Calls != want || want == 0 {
			t.Errorf("%s of %s: %d calls used, the log has %d requests", ev.Mark.Kind, ev.Address, used.Calls, want)
		}
		if rec := decode[loop.StopRecord](t, ev.Mark); ev.Mark.Kind == mark.KindLoopStopped && ev.Address == "outer" && rec.Reason != loop.ReasonMaxIterations {
			t.Errorf("outer: %s", rec.String())
		}
	}
	if ends < 3 {
		t.Errorf("%d steps around the writers have ended", ends)
	}
}

// LOOP 19a, 23, 30: a race whose process is killed behind any event is decided once. No loop makes more requests in its slice than that
// allows, the lost ones included, and the best goes on with its own limits. Each request counts once in the loop, the race and the run,
// so that a budget around the race is not spent early.
func TestRaceResumesAnywhere(t *testing.T) {
	type build func(testing.TB, budget.Limits) agent.Agent
	for _, of := range []struct {
		name  string
		tree  build
		at    session.Address
		slice budget.Limits
	}{
		{"calls", racingTree, "race", budget.Limits{Calls: 3}},
		{"tokens", racingTree, "race", budget.Limits{Tokens: 300}},
		{"calls, in a loop with a budget", budgetedTree, "outer[1]/race", budget.Limits{Calls: 3}},
	} {
		check := func(t *testing.T, svc session.Service) {
			view := get(t, svc).(*session.View)
			checkUsage(t, view)
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
					for _, l := range []session.Address{of.at + "/quick", of.at + "/deep"} {
						if ev.Address.Under(l) {
							requests[l]++
						}
					}
				case ev.Mark.Kind == mark.KindRequested && ev.Address.Under(of.at+"/"+session.Address(d.Winner)):
					goesOn++
				case ev.Mark.Kind == mark.KindRequested:
					t.Errorf("%s goes on although %s has won", ev.Address, d.Winner)
				}
			}
			if d == nil {
				t.Fatal("not decided")
			}
			if len(requests) != 2 || requests[of.at+"/quick"] > 3 || requests[of.at+"/deep"] > 3 {
				t.Errorf("requests before the decision: %v", requests)
			}
			best := slices.MaxFunc(d.Standings, func(a, b mark.Standing) int { return int(1000 * (*a.Score - *b.Score)) })
			want := map[string]string{"quick": "9.2", "deep": "13"}[best.Loop]
			if got, _ := view.State().Get(best.Loop + "_score"); d.Winner != best.Loop || !d.Continues || goesOn == 0 || fmt.Sprint(got) != want {
				t.Errorf("%+v: %d requests after it, %v", d, goesOn, got)
			}
		}
		t.Run(of.name, func(t *testing.T) {
			svc := session.InMemoryService()
			if _, err := collect(t, ask(t.Context(), newRunner(t, durable(of.tree(t, of.slice), svc)), "go")); err != nil {
				t.Fatal(err)
			}
			check(t, svc)
			log := slices.Collect(get(t, svc).(*session.View).Log().All())
			for k := 1; k < len(log) && !t.Failed(); k++ {
				cut := crashed(t, nil, log, k)
				if _, err := resume(t, cut, of.tree(t, of.slice), log[0].InvocationID); err != nil {
					t.Fatalf("behind %d of %d events: %v", k, len(log), err)
				}
				if check(t, cut); t.Failed() {
					t.Logf("behind %d of %d events", k, len(log))
				}
			}
		})
	}
}
