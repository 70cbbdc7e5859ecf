// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// drafter is a model that answers the iteration in its instruction with a draft, and notes what it was asked.
type drafter struct {
	name   string
	drafts map[int]string

	mu    sync.Mutex
	asked []string // instruction, thinking, and the conversation
}

func (m *drafter) Name() string { return m.name }

func (m *drafter) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		told := req.Config.SystemInstruction.Parts[0].Text
		first, _, _ := strings.Cut(told, "\n\nYou are an agent.")
		n, _ := strconv.Atoi(strings.Fields(first)[0])
		var said []string
		for _, c := range req.Contents {
			for _, p := range c.Parts {
				said = append(said, p.Text)
			}
		}
		thinks := genai.ThinkingLevel("")
		if c := req.Config.ThinkingConfig; c != nil {
			thinks = c.ThinkingLevel
		}
		m.mu.Lock()
		m.asked = append(m.asked, fmt.Sprintf("%s | %s | %s", strings.ReplaceAll(first, "\n\n", " / "), thinks, strings.Join(said, "; ")))
		m.mu.Unlock()
		resp := &model.LLMResponse{Content: genai.NewContentFromText(m.drafts[n], genai.RoleModel)}
		resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 1000, CandidatesTokenCount: 100}
		yield(resp, nil)
	}
}

// leggedTree is a loop whose writer writes a number, which a judge reads as the score, with three legs.
func leggedTree(t testing.TB, first, second *drafter, change func(*loopagent.Config, *llmagent.Config)) agent.Agent {
	t.Helper()
	cfg := llmagent.Config{
		Name: "writer", Model: first, Models: map[string]model.LLM{"another": second}, OutputKey: "draft",
		Instruction: "{{iteration}} after {{draft}}, best {{best.draft}} {{best.score}}.",
	}
	judge, err := agent.New(agent.Config{Name: "judge", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			v, _ := ctx.Session().State().Get("draft")
			score, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText("judged", genai.RoleModel)
			ev.Actions.StateDelta = map[string]any{"score": score}
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	loopCfg := loopagent.Config{
		AgentConfig: agent.Config{Name: "l"}, MaxIterations: 12, Result: "draft", OutputKey: "result", KeepStates: true,
		Rules: loop.Plan{
			Score: &loop.Score{Key: "score", MinDelta: new(0.5), Scorers: []string{"judge"}},
			OnPlateau: []loop.Leg{
				{Model: "another", Instructions: "Unlike {{draft}}."}, {Fresh: true}, {Thinking: "high", Steps: []string{"writer"}},
			},
		},
	}
	if change != nil {
		change(&loopCfg, &cfg)
	}
	writer, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	loopCfg.AgentConfig.SubAgents = []agent.Agent{writer, judge}
	root, err := loopagent.New(loopCfg)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func drafters() (first, second *drafter) {
	return &drafter{name: "one", drafts: map[int]string{1: "5", 2: "7", 3: "6", 6: "3", 7: "4", 8: "4.1", 9: "8.6", 10: "9.3", 11: "9.4"}},
		&drafter{name: "two", drafts: map[int]string{4: "8", 5: "7.5"}}
}

// LOOP 19a, 30: a leg gives the agents its model, instructions and thinking, each leg once, from the best state or from the start,
// also in a run whose process is killed behind any of its events.
func TestLegsOfALoop(t *testing.T) {
	rec := resumesAnywhere(t, 1, func() agent.Agent {
		first, second := drafters()
		return leggedTree(t, first, second, nil)
	})
	if rec.Reason != loop.ReasonConverged || rec.Leg != 3 || rec.BestIteration != 11 || rec.Result != (loop.Result{Source: loop.FromBest, Iteration: 11}) {
		t.Errorf("%+v", rec)
	}
	first, second := drafters()
	r := newRunner(t, durable(leggedTree(t, first, second, nil), session.InMemoryService()))
	if _, err := collect(t, ask(t.Context(), r, "go")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"4 after 7, best 7 7. / Unlike 7. |  | ", "5 after 8, best 8 8. / Unlike 8. |  | "}, seen(second)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"1 after , best  . |  | ", "2 after 5, best 5 5. |  | ", "3 after 7, best 7 7. |  | ",
		"6 after , best 8 8. |  | ", "7 after 3, best 8 8. |  | ", "8 after 4, best 8 8. |  | ",
		"9 after 8, best 8 8. | HIGH | ", "10 after 8.6, best 8.6 8.6. | HIGH | ", "11 after 9.3, best 9.3 9.3. | HIGH | ",
	}, seen(first)); diff != "" {
		t.Error(diff)
	}
}

// LOOP 14, 19a, 30: in a leg from the start a rollback restores the best of the leg, about which the judge is asked again; the next
// leg goes on from the best of all.
func TestResumeInAFreshLegThatIsRolledBack(t *testing.T) {
	by := map[session.Address]float64{}
	for i, answers := range [][]float64{{7, 7.4}, {7, 7.2}, {7, 7.3}, {3, 3.4}, {1, 1.4, 3.6}, {3.3, 3.4}, {7.2, 7.4}, {7.3, 7.5}} {
		for k, x := range answers {
			at := session.Address(fmt.Sprintf("l[%d]/judge", i+1))
			if n := k + 1 + k/2; k > 0 { // the third number is left to a sample that fails
				at += session.Address(fmt.Sprint("#", n))
			}
			by[at] = x
		}
	}
	rec := resumesAnywhere(t, 1, func() agent.Agent {
		return judgedTree(t, by, func(c *loopagent.Config) {
			c.MaxIterations, c.Rules.OnRegression, c.HandBack = 8, loop.RollbackOnWorse, []string{"text"}
			c.Rules.Score = &loop.Score{Key: "score", MinDelta: new(1.0), Patience: 2, Judge: &loop.Judge{Step: "judge", Samples: 2}}
			c.Rules.OnPlateau = []loop.Leg{{Fresh: true}, {Fresh: true}}
		})
	})
	if rec.Leg != 2 || rec.Rollbacks != 1 || rec.Iterations != 8 || rec.Result != (loop.Result{Source: loop.FromBest, Iteration: 8}) {
		t.Errorf("%+v, best %v", rec, *rec.BestScore)
	}
}

// seen is what a drafter was asked, without the conversation.
func seen(m *drafter) (out []string) {
	for _, s := range m.asked {
		out = append(out, s[:strings.LastIndex(s, "|")+2])
	}
	return out
}

// LOOP 19a: in a leg from the start, a model that sees the conversation sees nothing from before the leg.
func TestAFreshLegForgetsTheConversation(t *testing.T) {
	for _, policy := range []llmagent.ContextConfig{{}, {Policy: llmagent.ContextLast, Last: 9}, {Policy: llmagent.ContextDigest, Last: 2}} {
		first, second := drafters()
		r := newRunner(t, durable(leggedTree(t, first, second, func(_ *loopagent.Config, c *llmagent.Config) { c.Context = policy }), session.InMemoryService()))
		if _, err := collect(t, ask(t.Context(), r, "go")); err != nil {
			t.Fatal(err)
		}
		said := func(n int) string { return first.asked[n][strings.LastIndex(first.asked[n], "|")+2:] }
		old := func(n int) bool {
			return slices.ContainsFunc([]string{"; 5;", "; 7;", "; 6;", "; 8;", "7.5", "score 7"}, func(s string) bool { return strings.Contains(said(n), s) })
		}
		if !old(2) || old(3) || old(5) || !strings.Contains(said(3), "go") || !strings.Contains(said(5), "; 4;") {
			t.Errorf("%+v: %q", policy, first.asked)
		}
		if digest := policy.Policy == llmagent.ContextDigest; digest == old(6) { // the next leg goes on from the best
			t.Errorf("%+v: %q", policy, said(6))
		}
	}
}

// LOOP 19a, 23: legs count in the budget of the loop, each answer at the price of the model that gave it, also in a resumed run.
func TestLegsCountInTheBudget(t *testing.T) {
	prices := agent.RunConfig{Prices: budget.Prices{"one": {Input: 1, Output: 1}, "two": {Input: 10, Output: 10}}}
	tree := func(cost float64) agent.Agent {
		first, second := drafters()
		return leggedTree(t, first, second, func(c *loopagent.Config, _ *llmagent.Config) { c.Rules.Budget = &loop.Budget{Cost: &cost} })
	}
	stop := func(svc session.Service) (rec loop.StopRecord) {
		for ev := range get(t, svc).(*session.View).Events().All() {
			if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
				rec = decode[loop.StopRecord](t, ev.Mark)
			}
		}
		return rec
	}
	run := func(cost float64) session.Service {
		svc := session.InMemoryService()
		r := newRunner(t, durable(tree(cost), svc))
		if _, err := collect(t, r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), prices)); err != nil {
			t.Fatal(err)
		}
		return svc
	}
	const whole = 9*0.0011 + 2*0.011
	svc := run(1)
	if got := *stop(svc).Usage.Cost; math.Abs(got-whole) > 1e-9 {
		t.Errorf("cost %v, want %v", got, whole)
	}
	log := slices.Collect(get(t, svc).(*session.View).Log().All())
	for _, k := range []int{len(log) / 3, len(log) / 2, len(log) - 2} {
		cut := crashed(t, nil, log, k)
		r := newRunner(t, durable(tree(1), cut))
		if _, err := collect(t, r.Resume(t.Context(), "ana", "s1", log[0].InvocationID, prices)); err != nil {
			t.Fatal(err)
		}
		if got := *stop(cut).Usage.Cost; math.Abs(got-whole) > 1e-9 {
			t.Errorf("behind %d of %d: cost %v, want %v", k, len(log), got, whole)
		}
	}
	if rec := stop(run(0.02)); rec.Reason != loop.ReasonBudget || *rec.Usage.Cost > 0.02 || rec.Leg != 1 {
		t.Errorf("%+v, %v", rec, *rec.Usage.Cost)
	}
}

// Mistakes of legs are errors when the loop is made.
func TestLegsThatNoAgentCanFollow(t *testing.T) {
	for name, c := range map[string]struct {
		legs []loop.Leg
		want string
	}{
		"a model":     {[]loop.Leg{{Model: "anothr"}}, `OnPlateau[0]: agent "writer" has no model "anothr" in its Models; did you mean "another"?`},
		"a step":      {[]loop.Leg{{Fresh: true}, {Thinking: "low", Steps: []string{"writr"}}}, `OnPlateau[1]: the Steps name "writr", which is not in the loop; did you mean "writer"?`},
		"no model":    {[]loop.Leg{{Thinking: "low", Steps: []string{"counter"}}}, `OnPlateau[0]: the Steps name "counter", which asks no model`},
		"the scorer":  {[]loop.Leg{{Thinking: "low", Steps: []string{"judge"}}}, `names "judge", which gives the score`},
		"no plateau":  {nil, ""},
		"no thinking": {[]loop.Leg{{Thinking: "hard"}}, "use minimal, low, medium or high"},
	} {
		writer, err := llmagent.New(llmagent.Config{Name: "writer", Models: map[string]model.LLM{"another": &drafter{}}})
		if err != nil {
			t.Fatal(err)
		}
		subs := []agent.Agent{writer}
		for _, n := range []string{"counter", "judge"} {
			a, err := agent.New(agent.Config{Name: n})
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, a)
		}
		_, err = loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: subs}, MaxIterations: 9,
			Rules: loop.Plan{Score: &loop.Score{Key: "score", MinDelta: new(0.5), Scorers: []string{"judge"}}, OnPlateau: c.legs},
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
