// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
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
		if at := running(live.Tree()); at != nil && at.Address == "refinador_conteudo_iterativo[3]/feedback_collector" {
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
	if got := prose.Trend(main.Loop); got != "↗ Improving" {
		t.Errorf("trend %q", got)
	}
	if got := prose.Estimate(main.Loop, tree.Now); got != "2 more iterations, ~5m 18s, until max iterations" {
		t.Errorf("estimate %q", got)
	}
	for ; i < len(log); i++ {
		live.Add(log[i])
	}
	if main = live.Tree().Main(); main.Loop.Stop == nil || main.Status != progress.StatusCompleted || prose.Estimate(main.Loop, 0) != "done" {
		t.Errorf("after the end: %+v", main)
	}
	if f := main.Loop.Finalizer; f.Status != progress.StatusCompleted || f.Text != "the text" {
		t.Errorf("finalizer %+v", f)
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
			Rules: loop.Plan{
				Score: &loop.Score{Key: "s"}, OnRegression: loop.RollbackOnWorse, OnError: loop.NextIteration,
				Steps: []loop.Step{{Name: "writer", Retry: &loop.Retry{Attempts: 2, Backoff: loop.Duration(time.Second)}}},
			},
		})))
	})
	live := new(progress.Live)
	for i, ev := range log {
		live.Add(ev)
		if i == 4 {
			if s := running(live.Tree()); s.Status != progress.StatusRunning {
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

// While a step runs, its answers are counted as its budget counts them.
func TestLiveCountsAllTokens(t *testing.T) {
	live, ev := new(progress.Live), &session.Event{Author: "writer", Address: "l[1]/writer", Iteration: 1}
	ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: 10, ToolUsePromptTokenCount: 5, CandidatesTokenCount: 4, ThoughtsTokenCount: 3, TotalTokenCount: 30,
	}
	live.Add(ev)
	if got, want := live.Tree().Root.Usage(), (progress.Usage{Calls: 1, InputTokens: 15, OutputTokens: 15}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
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

// What a coding agent does is seen while it does it, and no more when it has ended.
func TestLiveHearsLines(t *testing.T) {
	live := new(progress.Live)
	at := func(partial bool, meta map[string]any) *session.Event {
		ev := &session.Event{Author: "a", Address: "a", InvocationID: "i"}
		ev.Partial, ev.CustomMetadata = partial, meta
		return ev
	}
	for _, line := range []string{"edits a.go", "runs go test"} {
		live.Add(at(true, map[string]any{mark.MetadataDoing: line}))
		if got := live.Tree().Root.Line; got != line {
			t.Errorf("got %q, want %q", got, line)
		}
	}
	if got := live.Tree().Root.Text; got != "edits a.go\nruns go test\n" {
		t.Errorf("got %q", got)
	}
	live.Add(at(true, map[string]any{mark.MetadataDoing: 7}))
	live.Add(at(false, nil))
	if got := live.Tree().Root; got.Line != "" || got.Text != "" {
		t.Errorf("got %q and %q after the step's event", got.Line, got.Text)
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

// A step whose provider is limited shows until when it waits, and no longer than it does.
func TestLiveShowsAWaitForALimit(t *testing.T) {
	now := time.Date(2026, 11, 26, 13, 0, 0, 0, time.Local)
	until := now.Add(65 * time.Minute)
	limited, err := mark.New(mark.KindLimited, mark.Limited{Until: until, Why: "Too many requests"})
	if err != nil {
		t.Fatal(err)
	}
	var live progress.Live
	var fold progress.Fold
	var lines []string
	add := func(m *mark.Mark) *progress.Step {
		ev := &session.Event{InvocationID: "i", Author: "c", Address: "c", Timestamp: now, Mark: m}
		live.Add(ev)
		lines = append(lines, fold.Add(ev)...)
		return live.Tree().Root
	}
	add(&mark.Mark{Kind: mark.KindStepStarted})
	if s := add(limited); !s.Limited.Equal(until) || s.Status != progress.StatusRunning {
		t.Errorf("got %+v", s)
	}
	if s := add(&mark.Mark{Kind: mark.KindLimitOver}); !s.Limited.IsZero() {
		t.Errorf("it waits still: %+v", s)
	}
	add(limited)
	if s := add(&mark.Mark{Kind: mark.KindStepFinished, Data: json.RawMessage(`{"canceled":true}`)}); !s.Limited.IsZero() {
		t.Errorf("it has ended, and waits: %+v", s)
	}
	want := "c waits until 14:05 (limited)"
	if diff := cmp.Diff([]string{want, want}, lines); diff != "" {
		t.Error(diff)
	}
	if got := progress.Waits(until, now.AddDate(0, 0, -1)); got != "waits until 26 Nov 14:05 (limited)" {
		t.Error(got)
	}
}
