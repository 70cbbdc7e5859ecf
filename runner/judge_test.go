// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress/verify"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
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

// resumesAnywhere runs a tree, and again with its process killed behind each of its events: it must come to the same. It
// returns the loop's stop record.
func resumesAnywhere(t *testing.T, tree func() agent.Agent) (rec loop.StopRecord) {
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
			case ev.Mark.Kind == mark.KindIterationFinished:
				out = append(out, fmt.Sprintf("%+v", decode[loop.IterationRecord](t, ev.Mark)))
			case ev.Mark.Kind == mark.KindLoopStopped:
				rec = decode[loop.StopRecord](t, ev.Mark)
				out = append(out, fmt.Sprint(rec.String(), rec.Result, *rec.BestScore))
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
	for k := 1; k < len(log); k++ {
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
	rec := resumesAnywhere(t, func() agent.Agent {
		return judgedTree(t, by, func(c *loopagent.Config) {
			c.MaxIterations, c.Score = 2, &loop.Score{Key: "score", Target: new(9.0), Judge: &loop.Judge{Step: "judge", Samples: 3, Max: 12}}
		})
	})
	if rec.Reason != loop.ReasonTarget || !strings.HasPrefix(rec.Detail, "Score 9.23333 ≥ 9 (6 answers, ") {
		t.Errorf("%+v", rec)
	}
}

// LOOP 14a, 30: a run that is killed while its start is scored, or after that, comes to the same.
func TestResumeFromABaseline(t *testing.T) {
	by := map[session.Address]float64{
		"l/judge": 7, "l/judge#2": 7.4, "l[1]/judge": 5, "l[1]/judge#2": 5.4, "l[2]/judge": 6.8, "l[2]/judge#2": 6.6, "l[3]/judge": 5, "l[3]/judge#2": 5.2,
		"l[1]/judge#4": 7.2, "l[2]/judge#4": 7.2,
	}
	rec := resumesAnywhere(t, func() agent.Agent {
		return judgedTree(t, by, func(c *loopagent.Config) {
			c.MaxIterations, c.OnRegression = 3, loop.RollbackOnWorse
			c.Score = &loop.Score{Key: "score", Baseline: true, Judge: &loop.Judge{Step: "judge", Samples: 2}}
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
	rec := resumesAnywhere(t, func() agent.Agent {
		return judgedTree(t, by, func(c *loopagent.Config) {
			c.MaxIterations, c.OnRegression = 5, loop.RollbackOnWorse
			c.Score = &loop.Score{Key: "score", Judge: &loop.Judge{Step: "judge", Samples: 2}}
		})
	})
	if rec.BestIteration != 3 || rec.Rollbacks != 2 || *rec.BestScore != 8 {
		t.Errorf("%+v, best %v", rec, *rec.BestScore)
	}
}
