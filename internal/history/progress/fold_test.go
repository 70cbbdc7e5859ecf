// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

func Example() {
	scores := []float64{5.2, 6.8, 7.4, 7.6}
	writer := says("writer", func(n int, ev *session.Event) error {
		ev.Content = genai.NewContentFromText(fmt.Sprintf("draft %d", n), genai.RoleModel)
		ev.Actions.StateDelta = map[string]any{"score": scores[n-1]}
		return nil
	})
	root := must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}},
		Rules:       loop.Plan{Score: &loop.Score{Key: "score", MinDeltaPercent: new(5.0)}},
	}))
	f, _ := follow(context.Background(), root, func(line string) {
		line, _, _ = strings.Cut(line, "  ") // without the time it took
		fmt.Println(line)
	})
	fmt.Println(f.Answer())
	// Output:
	// Iteration 1: Score 5.2 → Improvement: N/A
	// Iteration 2: Score 6.8 → Improvement: +1.6 (30.8%)
	// Iteration 3: Score 7.4 → Improvement: +0.6 (8.8%)
	// Iteration 4: Score 7.6 → Improvement: +0.2 (2.7%)
	// Convergence detected: Improvement < 5%
	// Stopped: converged after 4 iterations: Improvement < 5%
	// draft 4
}

// M1, C8: the answer is the loop's result, also where it could not say it.
func TestAnswerIsTheResult(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	writer := says("writer", func(n int, ev *session.Event) error {
		if n == 3 {
			cancel(stopped)
		}
		ev.Content = genai.NewContentFromText(fmt.Sprintf("draft %d", n), genai.RoleModel)
		ev.Actions.StateDelta = map[string]any{"score": []float64{1, 9, 2}[n-1]}
		return nil
	})
	root := must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}},
		Rules:       loop.Plan{Score: &loop.Score{Key: "score"}},
	}))
	f, err := follow(ctx, root, func(string) {})
	if !errors.Is(err, stopped) {
		t.Errorf("error %v, want the cause of the cancellation", err)
	}
	if f.Answer() != "draft 2" {
		t.Errorf("answer %q, want the best draft", f.Answer())
	}
	if rec := f.Stop(); rec == nil || rec.Reason != loop.ReasonCanceled {
		t.Errorf("stop record %v, want canceled", rec)
	}
	if at, _ := f.Running(); at != "" {
		t.Errorf("step %q is still running after the end", at)
	}
}

// Loops side by side have their own results.
func TestLoopsInParallelDoNotMix(t *testing.T) {
	var subs []agent.Agent
	for _, name := range []string{"a", "b"} {
		subs = append(subs, must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: name, SubAgents: []agent.Agent{says(name+"_writer", func(n int, ev *session.Event) error {
				ev.Content = genai.NewContentFromText(fmt.Sprint(name, n), genai.RoleModel)
				return nil
			})}},
			MaxIterations: 3,
		})))
	}
	root := must(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: subs}}))
	var lines []string
	f, err := follow(t.Context(), root, func(l string) { lines = append(lines, l) })
	if err != nil {
		t.Fatal(err)
	}
	if stops := f.Stops(); len(stops) != 2 || stops[0].Iterations != 3 || stops[1].Iterations != 3 {
		t.Errorf("stops %v, want 2 after 3 iterations each", stops)
	}
	if a := f.Answer(); a != "a3" && a != "b3" {
		t.Errorf("answer %q is no loop's result", a)
	}
	for _, want := range []string{"a: Iteration 3", "b: Stopped: max_iterations after 3 iterations"} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// T6, G5: failures and requests to leave are told, on one harmless line each.
func TestLinesAreHarmless(t *testing.T) {
	bad := says("bad", func(int, *session.Event) error { return errors.New("no\n\x1b[31mway\x00") })
	leaves := says("leaves", func(_ int, ev *session.Event) error {
		ev.Actions.Escalate = true
		ev.Actions.Exit = &session.Exit{Reason: "done\n\x1b]0;title\a", Status: session.ExitBlocked}
		return nil
	})
	root := must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{bad, leaves}},
		Rules:       loop.Plan{OnError: loop.SkipStep},
	}))
	var lines []string
	if _, err := follow(t.Context(), root, func(l string) { lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`Failed: agent "bad" (refine[1]/bad): no [31mway`,
		"exit_loop triggered by leaves (blocked): done ]0;title",
		"Iteration 1",
		"Stopped: blocked after 1 iteration: done ]0;title",
	}
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "  ")
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// G10: an attempt that is followed by another is not said to have failed.
func TestLinesOfAttempts(t *testing.T) {
	flaky := says("flaky", func(n int, _ *session.Event) error {
		if n != 2 {
			return errors.New("out of paper")
		}
		return nil
	})
	root := must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{flaky}}, MaxIterations: 2,
		Rules: loop.Plan{
			OnError: loop.SkipStep,
			Steps:   []loop.Step{{Name: "flaky", Retry: &loop.Retry{Attempts: 2}}},
		},
	}))
	var lines []string
	if _, err := follow(t.Context(), root, func(l string) { l, _, _ = strings.Cut(l, "  "); lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	const why = `agent "flaky" (refine[%d]/flaky): out of paper`
	want := []string{
		"flaky: attempt 1 failed and is followed by another: " + fmt.Sprintf(why, 1),
		"Iteration 1",
		"flaky: attempt 1 failed and is followed by another: " + fmt.Sprintf(why, 2),
		"Failed: " + fmt.Sprintf(why, 2),
		"Iteration 2",
		"Stopped: max_iterations after 2 iterations: limit of 2 iterations",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// M9: an iteration that a pause interrupts is reported with its active time, as it is shown later.
func TestLineOfAnIterationHasItsActiveTime(t *testing.T) {
	var fold progress.Fold
	var live progress.Live
	began := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	var lines []string
	for i, e := range []struct {
		at        int // seconds
		kind      mark.Kind
		address   session.Address
		iteration int
		data      any
	}{
		{0, mark.KindRunStarted, "", 0, nil},
		{0, mark.KindStepStarted, "refine", 0, nil},
		{1, mark.KindStepStarted, "refine[1]/writer", 1, nil},
		{3, mark.KindStepFinished, "refine[1]/writer", 1, mark.StepFinished{Seconds: 2}},
		{3, mark.KindRunPaused, "", 0, nil},
		{63, mark.KindRunTaken, "", 0, nil},
		{63, mark.KindRunResumed, "", 0, nil},
		{64, mark.KindIterationFinished, "refine", 0, loop.IterationRecord{Number: 1, Complete: true}},
	} {
		m, err := mark.New(e.kind, e.data)
		if err != nil {
			t.Fatal(err)
		}
		ev := &session.Event{Seq: int64(i + 1), Timestamp: began.Add(time.Duration(e.at) * time.Second), Address: e.address,
			Iteration: e.iteration, Mark: m}
		lines = append(lines, fold.Add(ev)...)
		live.Add(ev)
	}
	if want := []string{"Iteration 1  3s"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
	if got := live.Tree().Root.Loop.Iterations[0].Took(0); got != 3*time.Second {
		t.Errorf("the tree shows %v", got)
	}
}

// LOOP 18, 19: whoever follows a run is told that an iteration was not accepted, and why, and what was undone.
func TestLinesOfRejectedIterations(t *testing.T) {
	writer := says("writer", func(n int, ev *session.Event) error {
		ev.Actions.StateDelta = map[string]any{"s": []any{5, 7, 4}[n-1]}
		return nil
	})
	root := must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}}, MaxIterations: 3,
		Rules: loop.Plan{Score: &loop.Score{Key: "s"}, QualityGate: new(6.0), OnRegression: loop.RollbackOnWorse},
	}))
	var lines []string
	if _, err := follow(t.Context(), root, func(l string) { l, _, _ = strings.Cut(l, "  "); lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Iteration 1: Score 5 → Improvement: N/A",
		"Not accepted: score 5 does not pass the quality gate of 6",
		"Undone: iteration 1; the state is as before the first iteration",
		"Iteration 2: Score 7 → Improvement: N/A",
		"Iteration 3: Score 4 → Improvement: -3 (-42.9%)",
		"Not accepted: score 4 does not pass the quality gate of 6",
		"Undone: iteration 3; the state is that of iteration 2",
		"Stopped: max_iterations after 3 iterations: limit of 3 iterations",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// says returns an agent that does f the n-th time it runs.
func says(name string, f func(n int, ev *session.Event) error) agent.Agent {
	n := 0
	return must(agent.New(agent.Config{
		Name: name,
		Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				n++
				ev := &session.Event{}
				if err := f(n, ev); err != nil {
					yield(nil, err)
					return
				}
				yield(ev, nil)
			}
		},
	}))
}

// follow runs an agent in a durable run and folds what happens.
func follow(ctx context.Context, root agent.Agent, say func(string)) (*progress.Fold, error) {
	r, err := runner.New(runner.Config{
		AppName: "test", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true,
	})
	if err != nil {
		return nil, err
	}
	var f progress.Fold
	for ev, err := range r.Run(ctx, "ana", "", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return &f, err
		}
		for _, l := range f.Add(ev) {
			say(l)
		}
	}
	return &f, nil
}

func must(a agent.Agent, err error) agent.Agent {
	if err != nil {
		log.New(os.Stderr, "", 0).Fatal(err)
	}
	return a
}

// The decision of a race is told on one line, with the errors of the scores.
func TestRaceText(t *testing.T) {
	d := &mark.RaceDecided{Winner: "deep", Continues: true, Reason: "the best score, 9", Ties: []string{"quick"}, Standings: []mark.Standing{
		{Loop: "quick", Score: new(7.25), Error: 0.314, Best: 2, Iterations: 3}, {Loop: "deep", Score: new(9.0), Iterations: 3},
		{Loop: "odd", Failure: "no\nway"}, {Loop: "mute"}}}
	const want = "Race: deep wins and goes on: the best score, 9, within the judge's noise of quick; " +
		"quick: 7.25 ± 0.31 (iteration 2 of 3), deep: 9, odd failed: no way, mute: no score"
	if got := progress.RaceText(d); got != want {
		t.Errorf("got  %q,\nwant %q", got, want)
	}
}
