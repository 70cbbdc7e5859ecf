// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain"
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// draft returns a loop whose writer writes "draft 1", "draft 2" and so on, and whose critic scores them with the scores in
// order. Each step that runs adds one to the counter.
func draft(t *testing.T, limit uint, ran *atomic.Int64, scores ...float64) agent.Agent {
	t.Helper()
	step := func(name string, act func(n float64) (string, map[string]any)) agent.Agent {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ran.Add(1)
				n := 0.0
				if v, err := ctx.Session().State().Get("n"); err == nil {
					n = v.(float64)
				}
				ev := session.NewEvent(ctx, ctx.InvocationID())
				text, delta := act(n)
				ev.Content, ev.Actions.StateDelta = genai.NewContentFromText(text, genai.RoleModel), delta
				yield(ev, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	writer := step("writer", func(n float64) (string, map[string]any) {
		return fmt.Sprintf("draft %v", n+1), map[string]any{"n": n + 1}
	})
	critic := step("critic", func(n float64) (string, map[string]any) {
		score := scores[min(int(n), len(scores))-1]
		return fmt.Sprintf("that is %v", score), map[string]any{"score": score}
	})
	a, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer, critic}}, MaxIterations: limit,
		Rules: loop.Plan{Score: &loop.Score{Key: "score", Target: new(9.0), Scorers: []string{"critic"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A run that is canceled at any event, and run again, comes to the same result, and each result in between knows its best.
func TestRunCanceledAtAnyEvent(t *testing.T) {
	var ran atomic.Int64
	events := 0
	want, err := refrain.Run(t.Context(), draft(t, 5, &ran, 4, 7, 6, 9), "go", refrain.OnEvent(func(*session.Event) { events++ }))
	if err != nil {
		t.Fatal(err)
	}
	if want.Text != "draft 4" || want.Stop.Reason != loop.ReasonTarget || want.Best.Iteration != 4 {
		t.Fatalf("%+v", want)
	}
	stopped := errors.New("stopped")
	for at := range events {
		store, a := session.InMemoryService(), draft(t, 5, &ran, 4, 7, 6, 9)
		ctx, cancel := context.WithCancelCause(t.Context())
		seen, scored := 0, 0
		cut, err := refrain.Run(ctx, a, "go", refrain.Session(store, "s"), refrain.OnEvent(func(ev *session.Event) {
			if ev.Mark != nil && ev.Mark.Kind == "iteration_finished" {
				scored++
			}
			if seen++; seen == at+1 {
				cancel(stopped)
			}
		}))
		if cut == nil || err != nil && !errors.Is(err, stopped) {
			t.Fatalf("event %d: %v, %v", at, cut, err)
		}
		if err != nil {
			best := map[int]float64{1: 4, 2: 7, 3: 7, 4: 9}[scored]
			if cut.Best == nil && scored > 0 || cut.Best != nil && best != 0 && *cut.Best.Score != best {
				t.Errorf("event %d: %d iterations have ended, and the best is %+v", at, scored, cut.Best)
			}
			if b := cut.Best; b != nil && (b.Text != fmt.Sprintf("draft %d", b.Iteration) || b.State["n"] != float64(b.Iteration)) {
				t.Errorf("event %d: the best is %+v", at, cut.Best)
			}
		}
		got := cut
		if err != nil {
			if got, err = refrain.Run(t.Context(), a, "go", refrain.Session(store, "s")); err != nil {
				t.Fatalf("event %d: %v", at, err)
			}
		}
		got.Usage, want.Usage, got.Stop, want.Stop = budget.Usage{}, budget.Usage{}, summary(got.Stop), summary(want.Stop)
		if !cmp.Equal(got, want) {
			t.Errorf("event %d: %+v, want %+v", at, got, want)
		}
		if runs := invocations(t, store); runs != 1 {
			t.Errorf("event %d: the session has %d runs, want 1", at, runs)
		}
	}
}

// summary returns a stop record without times and without the seal, which covers them.
func summary(rec *loop.StopRecord) *loop.StopRecord {
	s := *rec
	s.Elapsed, s.Events, s.Digest = 0, 0, ""
	return &s
}

func invocations(t *testing.T, store session.Service) int {
	t.Helper()
	got, err := store.Get(t.Context(), &session.GetRequest{AppName: "refrain", UserID: "user", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	for ev := range got.Session.Events().All() {
		ids[ev.InvocationID] = true
	}
	return len(ids)
}

// A process that is killed leaves a run that the next process continues: finished steps do not run again.
func TestRunOfAKilledProcess(t *testing.T) {
	var ran atomic.Int64
	if path := os.Getenv("REFRAIN_KILLED"); path != "" {
		store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		keep := refrain.Session(store, "s")
		_, err = refrain.Run(t.Context(), draft(t, 5, &ran, 4, 9), "go", keep, refrain.OnEvent(func(ev *session.Event) {
			if ev.Text() == "draft 2" {
				me, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = me.Kill()
				}
				t.Error(err)
				select {}
			}
		}))
		t.Fatalf("the run ended: %v", err)
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	cmd := exec.Command(os.Args[0], "-test.run=^TestRunOfAKilledProcess$")
	cmd.Env = append(os.Environ(), "REFRAIN_KILLED="+path)
	if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "FAIL") {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	res, err := refrain.Run(t.Context(), draft(t, 5, &ran, 4, 9), "go", refrain.Session(store, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "draft 2" || res.Stop.Iterations != 2 || ran.Load() != 2 {
		t.Errorf("%q after %d iterations; %d steps ran in the second process, want 2", res.Text, res.Stop.Iterations, ran.Load())
	}
}

// In a session, another input begins a new run, and so does the same input after the end of a run.
func TestSecondRunOfASession(t *testing.T) {
	var ran atomic.Int64
	store, a := session.InMemoryService(), draft(t, 1, &ran, 4)
	for i, input := range []string{"one", "one", "two"} {
		res, err := refrain.Run(t.Context(), a, input, refrain.Session(store, "s"))
		if err != nil {
			t.Fatal(err)
		}
		// Drafts count on, because the runs of a session share its state; iterations do not.
		want, runs := fmt.Sprintf("draft %d", i+1), invocations(t, store)
		if res.Text != want || res.Best.Iteration != 1 || res.Best.Text != want || runs != i+1 {
			t.Errorf("run %d of %d: %+v, %+v", i+1, runs, res, res.Best)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := refrain.Run(ctx, a, "three", refrain.Session(store, "s"), refrain.OnEvent(func(*session.Event) { cancel() })); err == nil {
		t.Fatal("a canceled run has no error")
	}
	if _, err := refrain.Run(t.Context(), a, "four", refrain.Session(store, "s")); err != nil || invocations(t, store) != 5 {
		t.Errorf("%d runs, want 5: %v", invocations(t, store), err)
	}
}

// A loop that a limit has stopped has a result and no error, and continues when it may run longer.
func TestResumeWithAHigherLimit(t *testing.T) {
	var ran atomic.Int64
	store := session.InMemoryService()
	res, err := refrain.Run(t.Context(), draft(t, 3, &ran, 7, 5, 6, 8), "go", refrain.Session(store, "s"))
	if err != nil {
		t.Fatal(err)
	}
	want := &refrain.Best{Iteration: 1, Score: new(7.0), Text: "draft 1", State: map[string]any{"n": 1.0, "score": 7.0}}
	if diff := cmp.Diff(want, res.Best); diff != "" || res.Stop.Reason != loop.ReasonMaxIterations || res.Text != "draft 1" {
		t.Errorf("%+v %s", res, diff)
	}
	_, err = refrain.Resume(t.Context(), draft(t, 3, &ran, 7, 5, 6, 8), refrain.Session(store, "s"))
	if err == nil || !strings.Contains(err.Error(), "max_iterations") {
		t.Errorf("the same limit again: %v", err)
	}
	if res, err = refrain.Resume(t.Context(), draft(t, 4, &ran, 7, 5, 6, 8), refrain.Session(store, "s")); err != nil {
		t.Fatal(err)
	}
	if res.Text != "draft 4" || *res.Best.Score != 8 || invocations(t, store) != 1 {
		t.Errorf("%+v %+v", res, res.Best)
	}
}

// A failed run has its best iteration beside its error, and Resume retries the failed step.
func TestResumeOfAFailedRun(t *testing.T) {
	broken := true
	fails, err := agent.New(agent.Config{Name: "publish", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			if broken {
				yield(nil, errors.New("no paper"))
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	says := says("writer", "a poem")
	a, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{says, fails}}, MaxIterations: 2})
	if err != nil {
		t.Fatal(err)
	}
	store := session.InMemoryService()
	res, err := refrain.Run(t.Context(), a, "go", refrain.Session(store, "s"))
	if err == nil || !strings.Contains(err.Error(), "no paper") || res == nil || !res.Stop.Reason.Failed() {
		t.Fatalf("%+v, %v", res, err)
	}
	broken = false
	if res, err = refrain.Resume(t.Context(), a, refrain.Session(store, "s")); err != nil || res.Best.Iteration != 2 || res.Best.Score != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// What cannot run says what to do.
func TestRunThatDoesNotBegin(t *testing.T) {
	var ran atomic.Int64
	a := draft(t, 1, &ran, 4)
	for name, tt := range map[string]struct {
		call func() (*refrain.Result, error)
		want string
	}{
		"no agent":  {func() (*refrain.Result, error) { return refrain.Run(t.Context(), nil, "go") }, "needs an Agent"},
		"nil agent": {func() (*refrain.Result, error) { return refrain.Run(t.Context(), (*loopagent.Agent)(nil), "go") }, "needs an Agent"},
		"no store":  {func() (*refrain.Result, error) { return refrain.Run(t.Context(), a, "go", refrain.Session(nil, "s")) }, "needs a store"},
		"no ID": {func() (*refrain.Result, error) {
			return refrain.Run(t.Context(), a, "go", refrain.Session(session.InMemoryService(), ""))
		}, "needs a store and an ID"},
		"nothing kept": {func() (*refrain.Result, error) { return refrain.Resume(t.Context(), a) }, "refrain.Session"},
		"no run": {func() (*refrain.Result, error) {
			return refrain.Resume(t.Context(), a, refrain.Session(session.InMemoryService(), "s"))
		}, "start one with refrain.Run"},
	} {
		if res, err := tt.call(); res != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v; want %q", name, res, err, tt.want)
		}
	}
	if _, err := refrain.Resume(t.Context(), a, refrain.Session(session.InMemoryService(), "s")); !errors.Is(err, runner.ErrRunNotFound) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res, err := refrain.Run(ctx, a, "go"); res != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", res, err)
	}
}

// The panic of a callback reaches its program, and the run can be resumed.
func TestCallbackThatPanics(t *testing.T) {
	var ran atomic.Int64
	store, a := session.InMemoryService(), draft(t, 3, &ran, 4, 9)
	func() {
		defer func() {
			if got := recover(); got != "no more" {
				t.Errorf("recovered %v", got)
			}
		}()
		refrain.Run(t.Context(), a, "go", refrain.Session(store, "s"), refrain.OnEvent(func(ev *session.Event) {
			if ev.Text() == "draft 2" {
				panic("no more")
			}
		}))
	}()
	res, err := refrain.Run(t.Context(), a, "go", refrain.Session(store, "s"))
	if err != nil || res.Text != "draft 2" || invocations(t, store) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

type review struct {
	Reason string  `json:"reason"`
	Score  float64 `json:"score"`
}

// An answer in the form of a Go type is decoded into it. A value of another type is an error that names it.
func TestResultAs(t *testing.T) {
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{JSON: map[string]any{"reason": "short", "score": "high"}}, // the agent asks again
		{JSON: map[string]any{"reason": "short", "score": 7.5}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	critic, err := llmagent.New(llmagent.Config{Name: "critic", Model: llm, OutputSchema: llmagent.OutputOf[review]()})
	if err != nil {
		t.Fatal(err)
	}
	res, err := refrain.Run(t.Context(), critic, "judge")
	if err != nil {
		t.Fatal(err)
	}
	var got review
	if err := res.As(&got); err != nil || got != (review{"short", 7.5}) {
		t.Errorf("%+v, %v", got, err)
	}
	if res.Best != nil || res.Stop != nil || res.Usage.Calls != 2 {
		t.Errorf("%+v", res)
	}
	var wrong struct{ Score string }
	if err := res.As(&wrong); err == nil || !strings.Contains(err.Error(), "number into Go struct field") {
		t.Errorf("a number as a text: %v", err)
	}
	if _, ok := errors.AsType[*json.SyntaxError]((&refrain.Result{Text: "well"}).As(&got)); !ok {
		t.Error("a text as an object has no syntax error")
	}
}

// A run has the limits of its configuration, and one that has failed by them goes on with higher ones.
func TestRunWithConfig(t *testing.T) {
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "a"}, {Text: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	writer, err := llmagent.New(llmagent.Config{Name: "writer", Model: llm})
	if err != nil {
		t.Fatal(err)
	}
	a, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}}, MaxIterations: 2})
	if err != nil {
		t.Fatal(err)
	}
	keep := refrain.Session(session.InMemoryService(), "s")
	res, err := refrain.Run(t.Context(), a, "go", keep, refrain.Config(agent.RunConfig{MaxLLMCalls: 1}))
	if err == nil || res == nil || res.Best.Text != "a" {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err = refrain.Resume(t.Context(), a, keep, refrain.Config(agent.RunConfig{MaxLLMCalls: 2})); err != nil || res.Text != "b" {
		t.Errorf("%+v, %v", res, err)
	}
}

// The usage of a resumed run is that of all its processes.
func TestUsageOfAResumedRun(t *testing.T) {
	usage := func(cut bool) budget.Usage {
		llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "a"}, {Text: "b"}, {Text: "c"}}})
		if err != nil {
			t.Fatal(err)
		}
		writer, err := llmagent.New(llmagent.Config{Name: "writer", Model: llm})
		if err != nil {
			t.Fatal(err)
		}
		a, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}}, MaxIterations: 3})
		if err != nil {
			t.Fatal(err)
		}
		store := session.InMemoryService()
		ctx, cancel := context.WithCancel(t.Context())
		res, err := refrain.Run(ctx, a, "go", refrain.Session(store, "s"), refrain.OnEvent(func(ev *session.Event) {
			if cut && ev.Mark != nil && ev.Mark.Kind == "step_finished" && ev.Iteration == 2 {
				cancel()
			}
		}))
		if cut {
			if res == nil || res.Usage.Calls != 2 {
				t.Errorf("the first part of the run: %+v, %v", res, err)
			}
			res, err = refrain.Run(t.Context(), a, "go", refrain.Session(store, "s"))
		}
		if err != nil {
			t.Fatal(err)
		}
		return res.Usage
	}
	if whole, parts := usage(false), usage(true); whole.Calls != 3 || parts.Calls != 3 {
		t.Errorf("%+v, in two parts %+v", whole, parts)
	}
}
