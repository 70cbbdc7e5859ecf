// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// judgedTree is a loop whose judge gives the answers for each address of its own: by[address] is the first one.
func judgedTree(t testing.TB, by map[session.Address]float64, change func(*loopagent.Config)) agent.Agent {
	t.Helper()
	say := func(name string, value func(drive.Place) (key string, v any)) agent.Agent {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := &session.Event{}
				key, v := value(drive.At(ctx))
				ev.Content = genai.NewContentFromText(fmt.Sprint(v), genai.RoleModel)
				ev.Actions.StateDelta = map[string]any{key: v}
				yield(ev, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	writer := say("writer", func(p drive.Place) (string, any) { return "text", fmt.Sprint("version ", p.Address()) })
	judge := say("judge", func(p drive.Place) (string, any) {
		v, ok := by[p.Address()]
		if !ok {
			t.Errorf("nobody is to be asked at %s", p.Address())
		}
		return "score", v
	})
	cfg := loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{writer, judge}}, Result: "text", OutputKey: "result"}
	change(&cfg)
	root, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// resumesAnywhere runs a tree, and again with its process killed behind each of its events, or behind every few of them: it
// must come to the same. It returns the loop's stop record.
func resumesAnywhere(t *testing.T, every int, tree func() agent.Agent) (rec loop.StopRecord) {
	t.Helper()
	svc := session.InMemoryService()
	if _, err := collect(t, ask(t.Context(), newRunner(t, durable(tree(), svc)), "go")); err != nil {
		t.Fatal(err)
	}
	of := func(svc session.Service) (out []string) {
		view := get(t, svc).(*session.View)
		for ev := range view.Events().All() {
			switch {
			case ev.Mark == nil || ev.Mark.Kind == mark.KindStepFinished:
				out = append(out, fmt.Sprint(ev.Address, " ", ev.Text()))
			case ev.Mark.Kind == mark.KindLegStarted:
				out = append(out, string(ev.Mark.Data))
			case ev.Mark.Kind == mark.KindIterationFinished:
				out = append(out, fmt.Sprintf("%+v", decode[loop.IterationRecord](t, ev.Mark)))
			case ev.Mark.Kind == mark.KindLoopStopped:
				rec = decode[loop.StopRecord](t, ev.Mark)
				out = append(out, fmt.Sprint(rec.String(), rec.Result))
				if rec.BestScore != nil {
					out = append(out, fmt.Sprint(*rec.BestScore))
				}
			}
		}
		state := maps.Collect(view.State().All())
		for _, k := range slices.Sorted(maps.Keys(state)) {
			out = append(out, fmt.Sprint(k, "=", state[k]))
		}
		for _, seal := range verify.Of(view.Log().All()).Loops() {
			if seal.Problem != "" {
				t.Errorf("the stop record of %s: %s", seal.Loop, seal.Problem)
			}
		}
		return out
	}
	want := of(svc)
	log := slices.Collect(get(t, svc).(*session.View).Log().All())
	for k := 1; k < len(log); k += every {
		cut := crashed(t, nil, log, k)
		if _, err := resume(t, cut, tree(), log[0].InvocationID); err != nil {
			t.Fatalf("behind %d of %d events: %v", k, len(log), err)
		}
		if diff := cmp.Diff(want, of(cut)); diff != "" {
			t.Errorf("behind %d of %d events (-whole +resumed):\n%s\n%s", k, len(log), diff, strings.Join(brief(log[:k]), "\n"))
		}
	}
	return rec
}

// LOOP 14, 30: a run whose process is killed between the answers of a judge asks on where it was, however many it takes.
func TestResumeBetweenSamples(t *testing.T) {
	by := map[session.Address]float64{}
	for i, answers := range [][]float64{{8, 8.6, 8.2, 8.4}, {9, 8.8, 9.4, 9.3, 9.5, 9.4, 9.2}} {
		for k, x := range answers {
			at := fmt.Sprintf("l[%d]/judge", i+1)
			if k > 0 {
				at += fmt.Sprint("#", k+1)
			}
			by[session.Address(at)] = x
		}
	}
	rec := resumesAnywhere(t, 1, func() agent.Agent {
		return judgedTree(t, by, func(c *loopagent.Config) {
			c.MaxIterations, c.Rules.Score = 2, &loop.Score{Key: "score", Target: new(9.0), Judge: &loop.Judge{Step: "judge", Samples: 3, Max: 12}}
		})
	})
	if rec.Reason != loop.ReasonTarget || !strings.HasPrefix(rec.Detail, "Score 9.23333 ≥ 9 (6 answers, ") {
		t.Errorf("%+v", rec)
	}
}

// comparedTree is a loop of four versions, whose judge answers about two of them.
func comparedTree(t testing.TB, answers map[string]float64) agent.Agent {
	t.Helper()
	say := func(name, key string, value func(drive.Place) any) agent.Agent {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := &session.Event{}
				v := value(drive.At(ctx))
				ev.Content = genai.NewContentFromText(fmt.Sprint(v), genai.RoleModel)
				ev.Actions.StateDelta = map[string]any{key: v}
				yield(ev, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	writer := say("writer", "text", func(p drive.Place) any { return fmt.Sprint(p.Loop().Iteration) })
	judge := say("judge", "score", func(p drive.Place) any {
		first, _ := p.Lookup("text")
		second, _ := p.Lookup("best.text")
		v, ok := answers[fmt.Sprint(first, " ", second)]
		if !ok {
			t.Errorf("nobody compares %v with %v", first, second)
		}
		return v
	})
	root, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{writer, judge}}, Result: "text",
		OutputKey: "result", MaxIterations: 4, Rules: loop.Plan{Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge", Samples: 2, Compare: loop.CompareBest}}}})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// LOOP 30: a run whose process is killed between two comparisons of a version goes on with the next, of the versions that it compared
// before.
func TestResumeBetweenComparisons(t *testing.T) {
	answers := map[string]float64{"1 1": 0, "2 1": 1, "1 2": -1, "3 2": 2, "2 3": -1, "4 3": -1, "3 4": 1}
	rec := resumesAnywhere(t, 1, func() agent.Agent { return comparedTree(t, answers) })
	if rec.BestIteration != 3 || *rec.BestScore != 2.5 {
		t.Errorf("%+v", rec)
	}
}

// LOOP 14a, 30: a run that is killed while its start is scored, or after that, comes to the same.
func TestResumeFromABaseline(t *testing.T) {
	by := map[session.Address]float64{
		"l/judge": 7, "l/judge#2": 7.4, "l[1]/judge": 5, "l[1]/judge#2": 5.4, "l[2]/judge": 6.8, "l[2]/judge#2": 6.6, "l[3]/judge": 5, "l[3]/judge#2": 5.2,
		"l[1]/judge#4": 7.2, "l[2]/judge#4": 7.2,
	}
	rec := resumesAnywhere(t, 1, func() agent.Agent {
		return judgedTree(t, by, func(c *loopagent.Config) {
			c.MaxIterations, c.Rules.OnRegression = 3, loop.RollbackOnWorse
			c.Rules.Score = &loop.Score{Key: "score", Baseline: true, Judge: &loop.Judge{Step: "judge", Samples: 2}}
		})
	})
	if rec.BestIteration != 0 || *rec.BestScore != 7.2 || rec.Rollbacks != 3 || rec.Result != (loop.Result{Source: loop.FromBest}) {
		t.Errorf("%+v", rec)
	}
}

// LOOP 14, 30: a run that is killed between a rollback and the judge's second look at the best, or during it, comes to the same.
func TestResumeWhileTheBestIsJudgedAgain(t *testing.T) {
	by := map[session.Address]float64{}
	for i, answers := range [][]float64{{8, 8.4}, {5, 5.4, 7}, {7.8, 8}, {4, 4.4, 8.2}, {7.8, 7.6}} {
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
			c.MaxIterations, c.Rules.OnRegression = 5, loop.RollbackOnWorse
			c.Rules.Score = &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge", Samples: 2}}
		})
	})
	if rec.BestIteration != 3 || rec.Rollbacks != 2 || *rec.BestScore != 8 {
		t.Errorf("%+v, best %v", rec, *rec.BestScore)
	}
}

// asked is a model that answers by the step's address, and takes down what each step asks: always the same.
type asked struct {
	t  testing.TB
	by map[session.Address]string

	mu       sync.Mutex
	requests map[string]string // by address, and the number of the request there
	hints    map[session.Address]model.CacheHint
}

func newAsked(t testing.TB) *asked {
	return &asked{t: t, by: map[session.Address]string{}, requests: map[string]string{}, hints: map[session.Address]model.CacheHint{}}
}

func (*asked) Name() string     { return "asked" }
func (*asked) Provider() string { return "scripted" }

func (m *asked) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		at := drive.At(ctx.(agent.InvocationContext)).Address()
		var text strings.Builder
		fmt.Fprintln(&text, "system:", req.Config.SystemInstruction.Parts[0].Text)
		answered := 0
		for _, c := range req.Contents {
			for _, p := range c.Parts {
				fmt.Fprintf(&text, "%s: %s", c.Role, p.Text)
				if answered = 0; p.FunctionResponse != nil {
					fmt.Fprint(&text, p.FunctionResponse.Response)
					answered = 1
				}
				fmt.Fprintln(&text)
			}
		}
		key := fmt.Sprint(at, " ", answered)
		m.mu.Lock()
		if was, ok := m.requests[key]; ok && was != text.String() {
			m.t.Errorf("%s asks (-before +now):\n%s", key, cmp.Diff(was, text.String()))
		}
		m.requests[key] = text.String()
		if answered == 0 {
			m.hints[at] = *model.CacheHintOf(ctx)
		}
		m.mu.Unlock()
		say, ok := m.by[at]
		switch {
		case !ok:
			m.t.Errorf("nobody is to be asked at %s", at)
		case strings.HasPrefix(say, "look, ") && answered == 0:
			yield(&model.LLMResponse{Content: genai.NewContentFromFunctionCall("look", map[string]any{}, genai.RoleModel)}, nil)
			return
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromText(strings.TrimPrefix(say, "look, "), genai.RoleModel)}, nil)
	}
}

// judgedByModel is a loop of a writer, a judge of three samples that first looks and then answers, and an editor. All are models.
func judgedByModel(t *testing.T, m *asked, seen llmagent.ContextConfig, around bool) agent.Agent {
	t.Helper()
	look, err := functiontool.New(functiontool.Config{Name: "look", Description: "Looks."}, func(tool.Context, struct{}) (string, error) {
		return "seen", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	step := func(name, reads string, c llmagent.ContextConfig, tools ...tool.Tool) agent.Agent {
		a, err := llmagent.New(llmagent.Config{Name: name, Model: m, Context: c, Tools: tools, OutputKey: name,
			Instruction: "You see {{writer}}, {{judge}}, {{score}}, {{best.score}}, {{iteration}}, {{rejected.reason}}" + reads})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	judge := step("judge", "", seen, look)
	if around {
		first := step("first", "", seen)
		if judge, err = sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
			Name: "panel", SubAgents: []agent.Agent{first, step("judge", ", {{first}}", seen, look)}}}); err != nil {
			t.Fatal(err)
		}
	}
	root, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
			step("writer", "", llmagent.ContextConfig{}), judge, step("editor", "", llmagent.ContextConfig{}),
		}},
		MaxIterations: 3,
		Rules: loop.Plan{
			OnRegression: loop.RollbackOnWorse,
			Score:        &loop.Score{Key: "judge", Baseline: true, Judge: &loop.Judge{Step: judge.Name(), Samples: 3}},
		}, KeepStates: true, Result: "writer",
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// LOOP 14: the answers of a model about one version are independent. Each answer is to the very request of the first one, also
// after a rollback, a kill, and with turns in between; and others read one answer about a version.
func TestAnswersOfAJudgeAreIndependent(t *testing.T) {
	longtest.WithoutRace(t)
	for i, seen := range []llmagent.ContextConfig{
		{Policy: llmagent.ContextFull}, {Policy: llmagent.ContextIteration}, {Policy: llmagent.ContextLast, Last: 2},
		{Policy: llmagent.ContextDigest}, {Policy: llmagent.ContextNone},
	} {
		for _, around := range []bool{i%2 == 0, i%2 == 1} {
			t.Run(fmt.Sprint(seen.Policy, " ", around), func(t *testing.T) {
				step := "judge"
				if around {
					step = "panel"
				}
				m := newAsked(t)
				questions := map[string][]string{}
				for i, answers := range [][]string{{"4", "4.1", "4.3"}, {"8", "8.4", "8.6"}, {"5", "5.2", "5.4", "8.1"}, {"9", "9.2", "9.5"}} {
					pass, first := "l", ""
					if i > 0 {
						pass = fmt.Sprintf("l[%d]", i)
						m.by[session.Address(pass+"/writer")] = fmt.Sprint("version ", i)
						m.by[session.Address(pass+"/editor")] = fmt.Sprint("edited ", i)
					}
					for k, x := range answers {
						at := pass + "/" + step
						if k > 0 {
							at += fmt.Sprint("#", k+1+k/3)
						}
						if around {
							m.by[session.Address(at+"/first")] = "first words " + x
							at += "/judge"
						}
						m.by[session.Address(at)] = "look, " + x
						if k == 0 {
							first = at
						}
						if k == 3 { // the judging after the rollback
							first = "l[1]/" + strings.TrimPrefix(first, "l[2]/")
						}
						questions[first] = append(questions[first], at)
					}
				}
				tree := func() agent.Agent { return judgedByModel(t, m, seen, around) }
				rec := resumesAnywhere(t, 5, tree)
				if rec.Rollbacks != 1 || rec.BestIteration != 3 {
					t.Fatalf("%+v", rec)
				}
				for first, all := range questions {
					for _, at := range all {
						for turn := range 2 {
							question, again := m.requests[fmt.Sprint(first, " ", turn)], m.requests[fmt.Sprint(at, " ", turn)]
							if around { // the words before are the sample's own
								question, again = ownWords.ReplaceAllString(question, ""), ownWords.ReplaceAllString(again, "")
							}
							if again == "" || question != again {
								t.Errorf("request %d of %s is not that of %s:\n%s", turn+1, at, first, cmp.Diff(question, again))
							}
						}
						hint, last := m.hints[session.Address(at)], strings.Contains(at, "#3") || strings.Contains(at, "#5")
						if !around && (!hint.Next && !last || at != first && !hint.Before) {
							t.Errorf("the provider is not told at %s that the answers have one request: %+v", at, hint)
						}
					}
				}
				if text := m.requests["l[3]/writer 0"]; !strings.Contains(text, ", 8.275, 3, ") { // the mean of all four answers
					t.Errorf("the best score is not in:\n%s", text)
				}
				for at, want := range map[string][]string{
					"l[1]/writer": {"4.3"}, "l[1]/editor": {"4.3", "8.6"}, "l[2]/editor": {"4.3", "8.6", "5.4"},
					"l[3]/writer": {"4.3", "8.6", "5.4"},
				} {
					var got []string
					for line := range strings.SplitSeq(m.requests[at+" 0"], "\n") {
						if text, ok := strings.CutPrefix(line, "user: [judge] said: "); ok {
							got = append(got, text)
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the answers that %s reads (-want +got):\n%s", at, diff)
					}
				}
			})
		}
	}
}

// LOOP 14: so are the answers in a nested loop, whose addresses come again with each pass.
func TestAnswersOfANestedJudgeAreIndependent(t *testing.T) {
	m := newAsked(t)
	for _, at := range []session.Address{"o[1]/l[1]", "o[1]/l[2]", "o[2]/l[1]", "o[2]/l[2]"} {
		m.by[at+"/writer"], m.by[at+"/editor"] = "version of "+string(at), "edited"
		m.by[at+"/judge"], m.by[at+"/judge#2"], m.by[at+"/judge#3"] = "look, 5", "6", "look, 7"
	}
	for _, at := range []session.Address{"o[1]/l", "o[2]/l"} {
		m.by[at+"/judge"], m.by[at+"/judge#2"], m.by[at+"/judge#3"] = "1", "1", "1"
	}
	m.by["o[1]/after"], m.by["o[2]/after"] = "after 1", "after 2"
	resumesAnywhere(t, 5, func() agent.Agent {
		inner := judgedByModel(t, m, llmagent.ContextConfig{}, false)
		cfg := inner.(*loopagent.Agent).Config()
		cfg.MaxIterations, cfg.Rules.OnRegression = 2, ""
		inner, err := loopagent.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		after, err := llmagent.New(llmagent.Config{Name: "after", Model: m})
		if err != nil {
			t.Fatal(err)
		}
		outer, err := loopagent.New(loopagent.Config{MaxIterations: 2, AgentConfig: agent.Config{Name: "o", SubAgents: []agent.Agent{inner, after}}})
		if err != nil {
			t.Fatal(err)
		}
		return outer
	})
	for _, pass := range []string{"o[1]/l", "o[1]/l[1]", "o[1]/l[2]", "o[2]/l", "o[2]/l[1]", "o[2]/l[2]"} {
		for _, k := range []string{"#2", "#3"} {
			if question, again := m.requests[pass+"/judge 0"], m.requests[pass+"/judge"+k+" 0"]; question == "" || question != again {
				t.Errorf("the request of %s/judge%s is not that of the first answer:\n%s", pass, k, cmp.Diff(question, again))
			}
		}
	}
	for at, want := range map[string]int{"o[1]/after": 3, "o[2]/l[1]/writer": 4, "o[2]/after": 6} {
		if got := strings.Count(m.requests[at+" 0"], "[judge] said"); got != want {
			t.Errorf("%s reads %d answers, want %d:\n%s", at, got, want, m.requests[at+" 0"])
		}
	}
}

var ownWords = regexp.MustCompile(`first words [0-9.]+`)
