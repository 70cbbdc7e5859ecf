// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// The seed's screen, at the moment that it shows: the third of five iterations,
// with a score that is not accepted yet, and the feedback under way.
//
// M9, M10, M11, M12, M13, M14, M15, C31
func TestLiveIsTheScreenOfTheSeed(t *testing.T) {
	log := seedRun(t)
	live, i := new(progress.Live), 0
	for ; ; i++ {
		live.Add(log[i])
		if at := live.Tree().Running(); at != nil && at.Address == "refinador_conteudo_iterativo[3]/feedback_collector" {
			break
		}
	}
	tree := live.Tree()
	main := tree.Main()
	if main == nil || main.Name != "refinador_conteudo_iterativo" || main != tree.Root {
		t.Fatalf("the loop that a person follows is %+v", main)
	}
	want := []string{
		"refinador_conteudo_iterativo running 7m 12s",
		"1 completed 2m 15s score 5.2",
		"  content_generator completed 41s", "  quality_analyzer completed 22s", "  feedback_collector completed 50s", "  criteria_checker completed 22s can exit",
		"2 completed 2m 45s score 6.8",
		"  content_generator completed 1m 11s", "  quality_analyzer completed 22s", "  feedback_collector completed 50s", "  criteria_checker completed 22s can exit",
		"3 running 2m 12s so far 7.4",
		"  content_generator completed 1m 50s", "  quality_analyzer completed 22s", "  feedback_collector running 0ms", "  criteria_checker pending 0ms can exit",
		"final_consolidator pending 0ms",
	}
	if diff := cmp.Diff(want, sketch(tree)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if got := main.Loop.Trend(); got != "↗ Improving" {
		t.Errorf("trend %q", got)
	}
	if got := main.Loop.Estimate(tree.Now); got != "2 more iterations, ~5m 18s, until max iterations" {
		t.Errorf("estimate %q", got)
	}
	for ; i < len(log); i++ {
		live.Add(log[i])
	}
	if main = live.Tree().Main(); main.Loop.Stop == nil || main.Status != progress.StatusCompleted || main.Loop.Estimate(0) != "done" {
		t.Errorf("after the end: %+v", main)
	}
	if f := main.Loop.Finalizer; f.Status != progress.StatusCompleted || f.Text != "the text" {
		t.Errorf("finalizer %+v", f)
	}
}

// M15, X1, K9: what cannot be predicted is not, and a loop that nothing ends is told.
func TestEstimateIsHonest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		plan   loop.Plan
		scores []float64
		want   string
	}{
		{"too few scores", loop.Plan{MaxIterations: 5, Score: &loop.Score{Key: "s"}}, []float64{1, 2}, "not predictable yet: 2 scores, three are needed; at most 3 more iterations"},
		{"no limit", loop.Plan{Score: &loop.Score{Key: "s"}}, []float64{1}, "not predictable yet: 1 score, three are needed"},
		{"no score", loop.Plan{MaxIterations: 5}, nil, "not predictable yet: the loop is not scored; at most 5 more iterations"},
		{"no course", loop.Plan{MaxIterations: 9, Score: &loop.Score{Key: "s"}}, []float64{1, 9, 2, 8, 1, 9}, "not predictable: the scores follow no course; at most 3 more iterations"},
		{"the limit", loop.Plan{MaxIterations: 5, Score: &loop.Score{Key: "s", Target: new(100.0)}}, []float64{1, 2, 3}, "2 more iterations, until max iterations"},
		{"nothing ends it", loop.Plan{Score: &loop.Score{Key: "s", Target: new(1e9)}}, []float64{1, 2, 3}, "nothing is expected to end the loop within 100 iterations"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &progress.Loop{Plan: &tt.plan}
			for i, s := range tt.scores {
				l.Iterations = append(l.Iterations, &progress.Iteration{
					Number: i + 1, Status: progress.StatusCompleted,
					Record: &loop.IterationRecord{Number: i + 1, Score: &s, Complete: true},
				})
			}
			if got := l.Estimate(0); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// F4, G5: attempts, failures, what is skipped, rejected and undone.
func TestLiveShowsWhatWentWrong(t *testing.T) {
	var log []*session.Event
	synctest.Test(t, func(t *testing.T) {
		writer := timed("writer", time.Second, func(n int, ev *session.Event) error {
			ev.Actions.StateDelta = map[string]any{"s": []any{5, 5, 3, 4}[n-1]}
			if n == 1 {
				return errors.New("out of paper")
			}
			return nil
		})
		checker := timed("checker", time.Second, func(n int, ev *session.Event) error {
			if n == 3 {
				return errors.New("no opinion")
			}
			return nil
		})
		last := timed("last", 0, func(int, *session.Event) error { return nil })
		log = record(t, t.Context(), must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{writer, checker, last}}, MaxIterations: 3,
			Score: &loop.Score{Key: "s"}, OnRegression: loop.RollbackOnWorse, OnError: loop.NextIteration,
			Steps: map[string]loopagent.StepPolicy{"writer": {Retry: &loop.Retry{Attempts: 2, Backoff: loop.Duration(time.Second)}}},
		})))
	})
	live := new(progress.Live)
	for i, ev := range log {
		live.Add(ev)
		if i == 4 {
			if s := live.Tree().Running(); s.Status != progress.StatusRunning {
				t.Errorf("%+v", s)
			}
		}
	}
	want := []string{
		"l completed 8s",
		"1 completed 4s score 5", "  writer completed 1s attempt 2", "  checker completed 1s", "  last completed 0ms",
		"2 rejected 2s score 3 undone", "  writer completed 1s", "  checker completed 1s", "  last completed 0ms",
		`3 rejected 2s undone`, "  writer completed 1s", `  checker failed 1s agent "checker" (l[3]/checker): no opinion`, "  last skipped 0ms",
	}
	got := sketch(live.Tree())
	// The backoff is a random part shorter: times that have it are rounded.
	got[0], got[1] = "l completed 8s", strings.Replace(got[1], "3s", "4s", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if its := live.Tree().Root.Loop.Iterations; its[0].Failed() || !its[2].Failed() {
		t.Error("only the third iteration has a failure that stands")
	}
}

// U10: an inner loop is seen in its outer one, and leaving it is not leaving that.
func TestLiveShowsNestedLoops(t *testing.T) {
	var log []*session.Event
	synctest.Test(t, func(t *testing.T) {
		cut := timed("cut", time.Second, func(n int, ev *session.Event) error {
			if n%2 == 0 {
				ev.Actions.Escalate = true
				ev.Actions.Exit = &session.Exit{By: "cut", Reason: "short"}
			}
			return nil
		})
		polish := must(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "polish", SubAgents: []agent.Agent{cut}}, MaxIterations: 9}))
		chapter := must(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "chapter", SubAgents: []agent.Agent{
			timed("draft", time.Second, func(int, *session.Event) error { return nil }), polish,
		}}}))
		log = record(t, t.Context(), must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "book", SubAgents: []agent.Agent{chapter}}, MaxIterations: 2,
		})))
	})
	live := new(progress.Live)
	for _, ev := range log {
		live.Add(ev)
	}
	want := []string{
		"book completed 6s",
		"1 completed 3s", "  chapter completed 3s", "    draft completed 1s", "    polish completed 2s",
		"    1 completed 1s", "      cut completed 1s", "    2 completed 1s", "      cut completed 1s",
		"2 completed 3s", "  chapter completed 3s", "    draft completed 1s", "    polish completed 2s",
		"    1 completed 1s", "      cut completed 1s", "    2 completed 1s", "      cut completed 1s",
	}
	if diff := cmp.Diff(want, sketch(live.Tree())); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if main := live.Tree().Main(); main.Name != "book" {
		t.Errorf("the loop that a person follows is %s", main.Name)
	}
}

// A run that is resumed is one run: what was cut off is gone, and the time for
// which nothing ran is no time of it.
func TestLiveFollowsAResumedRun(t *testing.T) {
	var log []*session.Event
	var before, after []string
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		slow := timed("slow", 10*time.Second, func(n int, ev *session.Event) error { return nil })
		root := must(loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "l", SubAgents: []agent.Agent{timed("quick", time.Second, func(int, *session.Event) error { return nil }), slow}},
			MaxIterations: 2,
		}))
		r, svc := newRunner(t, root)
		time.AfterFunc(16*time.Second, cancel) // in the second iteration's slow
		live := new(progress.Live)
		id := ""
		for ev, err := range r.Run(ctx, "ana", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err == nil {
				live.Add(ev)
				id = ev.InvocationID
			}
		}
		before = sketch(live.Tree())
		time.Sleep(time.Hour)
		for ev, err := range r.Resume(t.Context(), "ana", "s", id, agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			live.Add(ev)
		}
		after = sketch(live.Tree())
		got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "test", UserID: "ana", SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		for ev := range session.ViewOf(got.Session).Log().All() {
			log = append(log, ev)
		}
	})
	if diff := cmp.Diff([]string{
		"l canceled 16s", "1 completed 11s", "  quick completed 1s", "  slow completed 10s", "2 canceled 5s", "  quick completed 1s", "  slow canceled 4s",
	}, before); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	want := []string{
		"l completed 26s", "1 completed 11s", "  quick completed 1s", "  slow completed 10s", "2 completed 15s", "  quick completed 1s", "  slow completed 10s attempt 2",
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	live := new(progress.Live)
	for _, ev := range log {
		live.Add(ev)
	}
	if diff := cmp.Diff(want, sketch(live.Tree())); diff != "" {
		t.Errorf("from the log (-want +got):\n%s", diff)
	}
}

// C31: a score is provisional from the moment that it is written until its iteration
// ends, and none of an iteration before is taken for it.
func TestProvisionalScore(t *testing.T) {
	for _, score := range []*loop.Score{{Key: "s"}, {Expr: "state.s * 1.0"}} {
		t.Run(score.Key+score.Expr, func(t *testing.T) {
			var log []*session.Event
			synctest.Test(t, func(t *testing.T) {
				log = record(t, t.Context(), must(loopagent.New(loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
						timed("idle", 0, func(int, *session.Event) error { return nil }),
						timed("judge", 0, func(n int, ev *session.Event) error {
							ev.Actions.StateDelta = map[string]any{"s": n}
							return nil
						}),
						timed("after", 0, func(int, *session.Event) error { return nil }),
					}},
					MaxIterations: 2, Score: score,
				})))
			})
			live := new(progress.Live)
			var got []string
			for _, ev := range log {
				live.Add(ev)
				if ev.Mark == nil || ev.Mark.Kind != session.MarkStepFinished || ev.Iteration == 0 {
					continue
				}
				it, s := live.Tree().Root.Loop.Current(), "none"
				if it.Provisional != nil {
					s = fmt.Sprint(*it.Provisional)
				}
				got = append(got, fmt.Sprintf("%d %s %s", it.Number, ev.Address.Agent(), s))
			}
			want := []string{"1 idle none", "1 judge 1", "1 after 1", "2 idle none", "2 judge 2", "2 after 2"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if it := live.Tree().Root.Loop.Current(); it.Provisional != nil || *it.Record.Score != 2 {
				t.Errorf("after the end: %+v", it)
			}
		})
	}
}

// What a model says is seen while it says it, once, and not without end.
func TestLiveHearsStreams(t *testing.T) {
	say := func(text string, partial bool) *session.Event {
		ev := &session.Event{Author: "a", Address: "a", InvocationID: "i"}
		ev.Content, ev.Partial = genai.NewContentFromText(text, genai.RoleModel), partial
		return ev
	}
	live := new(progress.Live)
	for i, step := range []struct {
		ev   *session.Event
		want string
	}{
		{say("once ", true), "once "},
		{say("upon", true), "once upon"},
		{say("once upon", false), "once upon"},
		{say("a time", true), "once upona time"},
		{say("a time", false), "once upon\n\na time"},
	} {
		live.Add(step.ev)
		if got := live.Tree().Root.Text; got != step.want {
			t.Errorf("%d: %q, want %q", i, got, step.want)
		}
	}
	live.Add(say(strings.Repeat("é", 100_000), false))
	if got := live.Tree().Root.Text; len(got) > 33<<10 || !strings.HasPrefix(got, "…é") {
		t.Errorf("%d bytes are kept, from %q", len(got), got[:8])
	}
}

// The same log gives the same tree, and so does each of its beginnings, whatever
// was made of it in between.
func TestLiveIsAFunctionOfTheLog(t *testing.T) {
	log := seedRun(t)
	one := new(progress.Live)
	for n, ev := range log {
		one.Add(ev)
		another := new(progress.Live)
		for _, ev := range log[:n+1] {
			another.Add(ev)
		}
		a, err := json.Marshal(one.Tree())
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(another.Tree())
		if string(a) != string(b) {
			t.Fatalf("after %d events:\n%s\n%s", n+1, a, b)
		}
	}
}

// T6: what could command a terminal, or hide, is no part of a line.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mb\x1b]0;t\ac":   "a[31mb]0;tc",
		"a\u009b31mb\x7f\x00":     "a31mb",
		"x\u202ecod.exe\u2066y":   "xcod.exey",
		"a\u200bb\ufeffc\u00ad":   "abc",
		"one\r\ntwo\tthree\u2028": "one  two three ",
		"日本 👩\u200d💻 é":           "日本 👩\u200d💻 é",
		"\xff\xfe":                "\ufffd\ufffd",
		"\U000e0041hidden":        "hidden",
	} {
		if got := progress.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 850 * time.Millisecond: "850ms", 9*time.Second + 900*time.Millisecond: "9s",
		8*time.Minute + 32*time.Second: "8m 32s", 2*time.Hour + 5*time.Minute + 59*time.Second: "2h 05m",
	} {
		if got := progress.Clock(d); got != want {
			t.Errorf("Clock(%v) = %q, want %q", d, got, want)
		}
	}
}

// seedRun is the log of the run that the seed shows.
func seedRun(t *testing.T) []*session.Event {
	t.Helper()
	var log []*session.Event
	nothing := func(int, *session.Event) error { return nil }
	synctest.Test(t, func(t *testing.T) {
		generator := must(agent.New(agent.Config{Name: "content_generator", Run: paced(func(n int) time.Duration {
			return []time.Duration{41, 71, 110, 41}[n-1] * time.Second
		}, nothing)}))
		analyzer := timed("quality_analyzer", 22*time.Second, func(n int, ev *session.Event) error {
			ev.Actions.StateDelta = map[string]any{"score": []float64{5.2, 6.8, 7.4, 8.1}[n-1]}
			return nil
		})
		final := timed("final_consolidator", 0, func(_ int, ev *session.Event) error {
			ev.Content = genai.NewContentFromText("the text", genai.RoleModel)
			return nil
		})
		log = record(t, t.Context(), must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "refinador_conteudo_iterativo", SubAgents: []agent.Agent{
				generator, analyzer, timed("feedback_collector", 50*time.Second, nothing), timed("criteria_checker", 22*time.Second, nothing), final,
			}},
			MaxIterations: 5, CanExit: []string{"criteria_checker"}, Finalizer: "final_consolidator",
			Score: &loop.Score{Key: "score", Target: new(8.0)},
		})))
	})
	return log
}

// sketch is a tree in a line for each step and iteration.
func sketch(t *progress.Tree) []string {
	var lines []string
	var step func(s *progress.Step, in string)
	step = func(s *progress.Step, in string) {
		line := fmt.Sprintf("%s%s %s %s", in, s.Name, s.Status, progress.Clock(s.Took(t.Now)))
		if s.Attempt > 1 {
			line += fmt.Sprintf(" attempt %d", s.Attempt)
		}
		if s.CanExit {
			line += " can exit"
		}
		if s.Error != "" {
			line += " " + s.Error
		}
		lines = append(lines, line)
		if s.Loop != nil {
			for _, it := range s.Loop.Iterations {
				line := fmt.Sprintf("%s%d %s %s", in, it.Number, it.Status, progress.Clock(it.Took(t.Now)))
				switch {
				case it.Provisional != nil:
					line += fmt.Sprintf(" so far %v", *it.Provisional)
				case it.Record != nil && it.Record.Score != nil:
					line += fmt.Sprintf(" score %v", *it.Record.Score)
				}
				if it.RolledBack {
					line += " undone"
				}
				lines = append(lines, line)
				for _, c := range it.Steps {
					step(c, in+"  ")
				}
			}
			if s.Loop.Finalizer != nil {
				step(s.Loop.Finalizer, in)
			}
		}
		for _, c := range s.Steps {
			step(c, in+"  ")
		}
	}
	step(t.Root, "")
	return lines
}

// timed returns an agent that takes its time, and then does f.
func timed(name string, d time.Duration, f func(n int, ev *session.Event) error) agent.Agent {
	return must(agent.New(agent.Config{Name: name, Run: paced(func(int) time.Duration { return d }, f)}))
}

func paced(d func(n int) time.Duration, f func(n int, ev *session.Event) error) func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	n := 0
	return func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n++
			select {
			case <-time.After(d(n)):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			ev := &session.Event{LLMResponse: model.LLMResponse{}}
			if err := f(n, ev); err != nil {
				yield(nil, err)
				return
			}
			yield(ev, nil)
		}
	}
}

// record is the log of a durable run.
func record(t *testing.T, ctx context.Context, root agent.Agent) []*session.Event {
	t.Helper()
	r, _ := newRunner(t, root)
	var log []*session.Event
	for ev, err := range r.Run(ctx, "ana", "", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Log(err)
			break
		}
		log = append(log, ev)
	}
	return log
}

func newRunner(t *testing.T, root agent.Agent) (*runner.Runner, session.Service) {
	t.Helper()
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "test", Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	return r, svc
}
