// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// marking is a loop whose writer says a draft and whose critic gives it a mark:
// 5, 7, 4, which is undone, and 9. broken lets the critic fail in the second
// iteration.
func marking(t *testing.T, broken bool) agent.Agent {
	t.Helper()
	step := func(name string, run func(n int) (map[string]any, error)) agent.Agent {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				n, _ := drive.At(ctx).Lookup("iteration")
				at := 0
				fmt.Sscan(fmt.Sprint(n), &at)
				delta, err := run(at)
				if err != nil {
					yield(nil, err)
					return
				}
				begun := &session.Event{}
				begun.Actions.StateDelta = map[string]any{"begun:" + name: at}
				ev := &session.Event{}
				ev.Content = genai.NewContentFromText(fmt.Sprint(name, " ", at), genai.RoleModel)
				ev.Actions.StateDelta = delta
				_ = yield(begun, nil) && yield(ev, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	marks := []int{5, 7, 4, 9}
	writer := step("writer", func(n int) (map[string]any, error) {
		return map[string]any{"draft": fmt.Sprint("version ", n), "iteration:now": n}, nil
	})
	critic := step("critic", func(n int) (map[string]any, error) {
		if broken && n == 2 {
			return nil, errors.New("no mark")
		}
		return map[string]any{"mark": marks[n-1], "n": n}, nil
	})
	a, err := loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "marking", SubAgents: []agent.Agent{writer, critic}},
		MaxIterations: 9, Rules: loop.Plan{OnRegression: loop.RollbackOnWorse, Score: &loop.Score{Key: "mark", Target: new(9.0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// logOf runs an agent, leaves after so many events if it is not 0, and resumes it
// then. It returns the whole log.
func logOf(t *testing.T, a agent.Agent, leave int, resume bool) []*session.Event {
	t.Helper()
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "a", Agent: a, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{},
		runner.WithStateDelta(map[string]any{"n": 0})) {
		if err != nil {
			break
		}
		id = ev.InvocationID
		if leave--; leave == 0 {
			break
		}
	}
	if resume {
		for _, err := range r.Resume(t.Context(), "u", "s", id, agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(session.ViewOf(got.Session).Log().All())
}

// D15: how far a run is can be read off its session, whenever somebody looks.
func TestSummary(t *testing.T) {
	whole := logOf(t, marking(t, false), 0, false)
	brief := func(s *progress.Summary) string {
		score := "-"
		if s.Score != nil {
			score = fmt.Sprint(*s.Score)
		}
		reason := "-"
		if s.Stop != nil {
			reason = string(s.Stop.Reason)
		}
		return fmt.Sprintf("%s %s %d %s %s %s", s.Name, s.Status, s.Iteration, score, reason, s.Error)
	}
	until := func(kind mark.Kind, nth int) []*session.Event {
		for i, ev := range whole {
			if ev.Mark != nil && ev.Mark.Kind == kind {
				if nth--; nth == 0 {
					return whole[:i+1]
				}
			}
		}
		t.Fatalf("no %s", kind)
		return nil
	}
	for _, tt := range []struct {
		name string
		log  []*session.Event
		want string
	}{
		{"nothing", nil, " running 0 - - "},
		{"begun", whole[:2], "marking running 0 - - "},
		{"one iteration", until(mark.KindIterationFinished, 1), "marking running 1 5 - "},
		{"a worse one does not count", until(mark.KindIterationFinished, 3), "marking running 3 7 - "},
		{"done", whole, "marking completed 4 9 target_reached "},
		{"the tail of it", whole[len(whole)-4:], "marking completed 4 9 target_reached "},
		{"failed", logOf(t, marking(t, true), 0, false), "marking failed 2 5 error agent \"critic\" (marking[2]/critic): no mark"},
		{"cut off", logOf(t, marking(t, false), 12, false), "marking running 2 5 - "},
		{"resumed", logOf(t, marking(t, false), 12, true), "marking completed 4 9 target_reached "},
		{"with marks of the run", append(slices.Clone(whole), runEvent(t, whole, mark.KindRunEnded, mark.RunEnded{Status: mark.RunCanceled, Error: "by ana"})),
			"marking canceled 4 9 target_reached by ana"},
		{"done, but for its mark of the run", slices.Concat([]*session.Event{runEvent(t, whole, mark.KindRunStarted, mark.RunStarted{})}, whole),
			"marking running 4 9 target_reached "},
		{"paused", append(slices.Clone(whole[:9]), runEvent(t, whole, mark.KindRunPaused, mark.RunPaused{Waits: []string{"q1"}})), "marking waiting 1 - - "},
	} {
		if got := brief(progress.Summarize(tt.log)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The row of a race is that of the winner, whichever loop has ended last, and wherever the last events begin.
func TestSummaryOfARace(t *testing.T) {
	add := func(log *[]*session.Event, at session.Address, kind mark.Kind, data any) {
		m, err := mark.New(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		*log = append(*log, &session.Event{InvocationID: "i", Address: at, Mark: m})
	}
	loopEnds := func(log *[]*session.Event, name string, score float64, n int, reason loop.StopReason) {
		at := session.Address("r/" + name)
		for i := 1; i <= n; i++ {
			add(log, at, mark.KindIterationFinished, loop.IterationRecord{Number: i, Score: new(score), Complete: true})
		}
		add(log, at, mark.KindLoopStopped, loop.StopRecord{Loop: name, Reason: reason, Iteration: n, BestVersion: loop.BestVersion{BestScore: new(score)}})
	}
	d := mark.RaceDecided{Winner: "good", Standings: []mark.Standing{{Loop: "good", Score: new(9.5), Iterations: 1, Stop: "target_reached"},
		{Loop: "bad", Score: new(2.0), Iterations: 3, Stop: "max_iterations"}}}
	var before, after []*session.Event
	loopEnds(&before, "good", 9.5, 1, loop.ReasonTarget)
	loopEnds(&before, "bad", 2, 3, loop.ReasonMaxIterations)
	add(&before, "r", mark.KindRaceDecided, d)
	d.Continues = true
	add(&after, "r", mark.KindRaceDecided, d)
	loopEnds(&after, "good", 9.5, 1, loop.ReasonTarget)
	loopEnds(&after, "bad", 2, 3, loop.ReasonMaxIterations)
	for name, log := range map[string][]*session.Event{"before": before, "after": after, "the last events": before[3:]} {
		s := progress.Summarize(log)
		if s.Stop == nil || s.Stop.Reason != loop.ReasonTarget || s.Iteration != 1 || s.Score == nil || *s.Score != 9.5 {
			t.Errorf("decided %s: %v, iteration %d, score %v", name, s.Stop, s.Iteration, s.Score)
		}
		var f progress.Fold
		for _, ev := range log {
			f.Add(ev)
		}
		if rec := f.Stop(); rec == nil || rec.Reason != loop.ReasonTarget || len(f.Stops()) != 1 {
			t.Errorf("decided %s: stops %v", name, f.Stops())
		}
	}
	if s := progress.Summarize(after[:1]); s.Stop != nil || s.Iteration != 1 || *s.Score != 9.5 {
		t.Errorf("while the winner goes on: %v, iteration %d, score %v", s.Stop, s.Iteration, s.Score)
	}
}

func runEvent(t *testing.T, log []*session.Event, kind mark.Kind, data any) *session.Event {
	t.Helper()
	ev, err := session.NewRunEvent(mark.Run{ID: log[0].InvocationID}, "refrain", kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// An open question is told until it is answered.
func TestSummaryOfARunThatWaits(t *testing.T) {
	ask := func(id, text string) *session.Event {
		ev := runEvent(t, []*session.Event{{InvocationID: "i"}}, mark.KindAsked, mark.Question{ID: id, Text: text})
		ev.Address = "review"
		return ev
	}
	answer := runEvent(t, []*session.Event{{InvocationID: "i"}}, mark.KindAnswered, mark.Answer{ID: "q1"})
	log := []*session.Event{ask("q1", "Publish?"), ask("q2", "Where?"), answer}
	got := progress.Summarize(log).Waits
	if len(got) != 1 || got[0].Text != "Where?" {
		t.Errorf("waits for %v", got)
	}
	if got := progress.Summarize(append(log, ask("q2", "Where to?"))).Waits; len(got) != 1 || got[0].Text != "Where to?" {
		t.Errorf("asked again, waits for %v", got)
	}
	ended := runEvent(t, log, mark.KindRunEnded, mark.RunEnded{Status: mark.RunCanceled})
	if got := progress.Summarize(append(log, ended)).Waits; len(got) != 0 {
		t.Errorf("canceled, waits for %v", got)
	}
}

// D15, G9: the state at each iteration is read off the log; what was undone too.
func TestStateAtAnIteration(t *testing.T) {
	for name, log := range map[string][]*session.Event{
		"whole":   logOf(t, marking(t, false), 0, false),
		"resumed": logOf(t, marking(t, false), 26, true), // in the third iteration
	} {
		t.Run(name, func(t *testing.T) {
			initial := map[string]any{"lang": "en"}
			at := func(n int) map[string]any {
				seq := progress.IterationSeq(slices.Values(session.Current(log)), "marking", n)
				if seq == 0 {
					t.Fatalf("no iteration %d", n)
				}
				return progress.StateAfter(initial, slices.Values(log), seq, nil)
			}
			for n, want := range []map[string]any{
				{"n": 0.0, "lang": "en"},
				{"n": 1.0, "draft": "version 1", "mark": 5.0, "iteration:now": 1.0},
				{"n": 2.0, "draft": "version 2", "mark": 7.0, "iteration:now": 2.0},
				{"n": 3.0, "draft": "version 3", "mark": 4.0, "iteration:now": 3.0},
			} {
				got := at(n)
				maps.DeleteFunc(got, func(k string, _ any) bool { _, in := want[k]; return !in })
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("iteration %d (-want +got):\n%s", n, diff)
				}
			}
			current := slices.Values(session.Current(log))
			if progress.IterationSeq(current, "marking", 5) != 0 || progress.IterationSeq(current, "other", 1) != 0 {
				t.Error("there is an iteration that never was")
			}
			over := runEvent(t, log, mark.KindRunEnded, mark.RunEnded{})
			over.Seq = log[len(log)-1].Seq + 1
			end := progress.StateAfter(initial, slices.Values(append(slices.Clone(log), over)), over.Seq, nil)
			if end["draft"] != "version 4" || end["mark"] != 9.0 || end["iteration:now"] != nil {
				t.Errorf("at the end: %v", end)
			}
			if len(initial) != 1 {
				t.Errorf("the initial state was changed: %v", initial)
			}
		})
	}
}

// Of a loop that was tried again, the iterations of the last attempt count.
func TestIterationsOfARetriedLoop(t *testing.T) {
	l := &told{t: t}
	for _, iterations := range []int{2, 1} {
		l.mark("refine", 0, mark.KindLoopStarted, loop.Plan{})
		for n := range iterations {
			l.mark(session.Address(fmt.Sprintf("refine[%d]/critic", n+1)), n+1, mark.KindStepStarted, nil)
			l.mark("refine", 0, mark.KindIterationFinished, loop.IterationRecord{Number: n + 1})
		}
	}
	for i, ev := range l.evs {
		ev.Seq = int64(i + 1)
	}
	for n, want := range []int64{6, 8, 0} {
		if got := progress.IterationSeq(slices.Values(l.evs), "refine", n); got != want {
			t.Errorf("iteration %d ends with event %d, want %d", n, got, want)
		}
	}
}

// A run that was cut off and resumed agrees with its stop records, wherever it
// was cut off. G9
func TestVerifyOfAResumedRun(t *testing.T) {
	whole := len(logOf(t, marking(t, false), 0, false))
	for leave := 2; leave < whole-1; leave++ {
		log := logOf(t, marking(t, false), leave, true)
		for _, s := range verify.Of(slices.Values(log)).Loops() {
			if s.Problem != "" {
				t.Fatalf("left after %d events: %s: %s", leave, s.Loop, s.Problem)
			}
		}
	}
}
