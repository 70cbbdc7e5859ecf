// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/internal/erratictest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// tenses is a ledger, a row on each line.
func tenses(l loop.Ledger) (lines []string) {
	for _, r := range l.Rows {
		line := r.Name + " " + string(r.Status)
		if r.Have != nil {
			line += fmt.Sprintf(" %.6g of %.6g", *r.Have, *r.Bound)
		}
		if r.Counted != 0 {
			line += fmt.Sprintf(" (+%.6g)", r.Counted)
		}
		lines = append(lines, line)
	}
	return lines
}

// M9, M15: the seed's run, in the middle and at its end.
func TestLedgerOfTheSeedsRun(t *testing.T) {
	log := seedRun(t)
	live, i := new(progress.Live), 0
	for ; ; i++ {
		live.Add(log[i])
		if at := running(live.Tree()); at != nil && at.Address == "refinador_conteudo_iterativo[3]/feedback_collector" {
			break
		}
	}
	main := live.Tree().Main()
	led := main.Loop.Ledger(live.Tree().Now)
	if diff := cmp.Diff([]string{"exit_loop not_asked", "target far 7.4 of 8", "max_iterations likely 3 of 5 (+1)"}, tenses(led)); diff != "" {
		t.Errorf("in the third iteration (-want +got):\n%s", diff)
	}
	if led.Reason != "" || led.Forecast == nil || !led.Rows[1].Provisional {
		t.Errorf("%+v", led)
	}
	for i++; i < len(log); i++ {
		live.Add(log[i])
	}
	led = main.Loop.Ledger(live.Tree().Now)
	if diff := cmp.Diff([]string{"exit_loop not_asked", "target fired 8.1 of 8", "max_iterations far 4 of 5"}, tenses(led)); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
	if led.Reason != loop.ReasonTarget || led.Nearest != "max_iterations" || led.Forecast != nil {
		t.Errorf("%+v", led)
	}
}

// numbered are the rows that always have numbers.
func numbered(name string) bool {
	return name != "exit_loop" && !strings.HasPrefix(name, "stop_when") && name != "budget" && name != "timeout"
}

// Whatever a run does, the ledger of each of its loops at its end is the stop record, with
// the numbers that the loop had: a log tells them all. On the way no row is lost.
func TestLedgerIsTheStopRecordAtTheEnd(t *testing.T) {
	for seed := range longtest.N[uint64](60, 400) {
		dice := rand.New(rand.NewPCG(seed, 4))
		inner := erratictest.Loop(t, "inner", dice, erratictest.Agent(t, "a", dice), erratictest.Agent(t, "b", dice))
		outer := erratictest.Loop(t, "outer", dice, erratictest.Agent(t, "c", dice), inner, erratictest.Agent(t, "d", dice))
		live, stops := new(progress.Live), 0
		for _, ev := range record(t, t.Context(), outer) {
			live.Add(ev)
			for s := range live.Tree().Loops() {
				if led := s.Loop.Ledger(live.Tree().Now); len(led.Rows) == 0 || (led.Reason == "") != (led.Forecast != nil) {
					t.Fatalf("seed %d, event %d: %+v", seed, ev.Seq, led)
				}
			}
			if ev.Mark == nil || ev.Mark.Kind != mark.KindLoopStopped {
				continue
			}
			var rec loop.StopRecord
			if err := ev.Mark.Decode(&rec); err != nil {
				t.Fatal(err)
			}
			stops++
			for s := range live.Tree().Loops() {
				if s.Address != ev.Address {
					continue
				}
				led := s.Loop.Ledger(live.Tree().Now)
				for i, c := range rec.Conditions {
					r := led.Rows[i]
					if !cmp.Equal(r.ConditionRecord, c) || (r.Status == loop.ConditionFired) != c.Fired || numbered(c.Name) && r.Bound == nil {
						t.Fatalf("seed %d, %s: recorded %+v, the ledger has %+v", seed, ev.Address, c, r)
					}
				}
				if led.Nearest != rec.Nearest || led.Reason != rec.Reason {
					t.Fatalf("seed %d, %s: %+v", seed, ev.Address, led)
				}
			}
		}
		if stops == 0 {
			t.Fatalf("seed %d: no loop has stopped", seed)
		}
	}
}

// scoring returns a loop whose one step writes these scores.
func scoring(t *testing.T, limit uint, scores ...float64) agent.Agent {
	t.Helper()
	return must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{timed("s", time.Second, func(n int, ev *session.Event) error {
			ev.Actions.StateDelta = map[string]any{"score": scores[n-1], "text": strings.Repeat("long ", 300) + fmt.Sprint(n)}
			return nil
		})}},
		MaxIterations: limit,
		Rules: loop.Plan{
			Score: &loop.Score{Key: "score", Target: new(99.0)}, OnRegression: loop.RollbackOnWorse,
			StopWhen: &loop.Condition{Expr: `state.text.endsWith("9")`},
		},
	}))
}

// From an outline the ledger is the same, where events can be read in full; else what it
// cannot know is unknown.
func TestLedgerOfAnOutline(t *testing.T) {
	var log []*session.Event
	synctest.Test(t, func(t *testing.T) { log = record(t, t.Context(), scoring(t, 5, 1, 2, 3, 2, 5)) })
	at := func(whole progress.Whole, outlined bool) []string {
		live := &progress.Live{Whole: whole}
		for _, ev := range log {
			if outlined {
				ev = ev.Outlined()
			}
			if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
				break // then the record decides
			}
			live.Add(ev)
		}
		return tenses(live.Tree().Main().Loop.Ledger(live.Tree().Now))
	}
	want := []string{"exit_loop not_asked", "stop_when far", "target far 5 of 99", "max_iterations fired 5 of 5"}
	if diff := cmp.Diff(want, at(nil, false)); diff != "" {
		t.Errorf("from the log (-want +got):\n%s", diff)
	}
	whole := func(ev *session.Event) *session.Event {
		for _, e := range log {
			if e.Seq == ev.Seq {
				return e
			}
		}
		return ev
	}
	if diff := cmp.Diff(want, at(whole, true)); diff != "" {
		t.Errorf("from an outline (-want +got):\n%s", diff)
	}
	want[1] = "stop_when unknown"
	if diff := cmp.Diff(want, at(nil, true)); diff != "" {
		t.Errorf("from an outline alone (-want +got):\n%s", diff)
	}
}

// A log that has no outcomes, as those of old versions, has what its records tell.
func TestLedgerOfALogWithoutOutcomes(t *testing.T) {
	live := new(progress.Live)
	longLog(t, 3, 10, live.Add)
	s := live.Tree().Main()
	s.Loop.Plan.MaxIterations, s.Loop.Plan.NoProgress = 9, new(loop.NoProgress)
	if diff := cmp.Diff([]string{"exit_loop not_asked", "no_progress unknown", "max_iterations far 3 of 9"}, tenses(s.Loop.Ledger(0))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// LOOP 31: a loop that goes on with a larger limit has that limit.
func TestLedgerOfAContinuedLoop(t *testing.T) {
	scores := []float64{1, 2, 3, 4, 5, 6}
	var log []*session.Event
	var middle []string
	synctest.Test(t, func(t *testing.T) {
		svc := session.InMemoryService()
		with := func(limit uint, scores ...float64) *runner.Runner {
			r, err := runner.New(runner.Config{AppName: "test", Agent: scoring(t, limit, scores...), SessionService: svc, AutoCreateSession: true, Durable: true})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		live := new(progress.Live)
		id := ""
		for ev, err := range with(2, scores...).Run(t.Context(), "ana", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			id = ev.InvocationID
			live.Add(ev)
			log = append(log, ev)
		}
		for ev, err := range with(6, scores[2:]...).Resume(t.Context(), "ana", "s", id, agent.RunConfig{}, runner.Continue()) {
			if err != nil {
				t.Fatal(err)
			}
			live.Add(ev)
			log = append(log, ev)
			if at, n := running(live.Tree()), live.Tree().Main().Loop.Current(); at != nil && n.Number == 4 && n.Record == nil && n.Provisional == nil {
				middle = tenses(live.Tree().Main().Loop.Ledger(live.Tree().Now))
			}
		}
	})
	if diff := cmp.Diff([]string{"exit_loop not_asked", "stop_when far", "target far 3 of 99", "max_iterations likely 4 of 6 (+1)"}, middle); diff != "" {
		t.Errorf("in the fourth iteration (-want +got):\n%s", diff)
	}
	live := new(progress.Live)
	for _, ev := range log {
		live.Add(ev)
	}
	if diff := cmp.Diff([]string{"exit_loop not_asked", "stop_when far", "target far 6 of 99", "max_iterations fired 6 of 6"},
		tenses(live.Tree().Main().Loop.Ledger(0))); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

// M11, D12: what a run that was cut off had counted is counted once when it goes on.
func TestLedgerOfARunThatWasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := newRunner(t, scoring(t, 5, 1, 2, 3, 4, 5, 6))
		time.AfterFunc(2500*time.Millisecond, cancel)
		live := new(progress.Live)
		id := ""
		for ev, err := range r.Run(ctx, "ana", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err == nil {
				live.Add(ev)
				id = ev.InvocationID
			}
		}
		l := live.Tree().Main().Loop
		if diff := cmp.Diff([]string{"exit_loop not_asked", "stop_when far", "target far 2 of 99", "max_iterations far 2 of 5"}, tenses(l.Ledger(0))); diff != "" {
			t.Errorf("cut off (-want +got):\n%s", diff)
		}
		for ev, err := range r.Resume(t.Context(), "ana", "s", id, agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			live.Add(ev)
		}
		l = live.Tree().Main().Loop
		if diff := cmp.Diff([]string{"exit_loop not_asked", "stop_when far", "target far 6 of 99", "max_iterations fired 5 of 5"}, tenses(l.Ledger(0))); diff != "" {
			t.Errorf("at the end (-want +got):\n%s", diff)
		}
	})
}

// An iteration is written from the one before, or from the best if that was undone.
func TestLineage(t *testing.T) {
	var log []*session.Event
	synctest.Test(t, func(t *testing.T) { log = record(t, t.Context(), scoring(t, 6, 5, 7, 6, 4, 8, 9)) })
	live := new(progress.Live)
	for _, ev := range log {
		live.Add(ev)
	}
	var got []string
	for _, it := range live.Tree().Main().Loop.Iterations {
		line := fmt.Sprintf("%d from %d", it.Number, it.From)
		if it.RolledBack {
			line += fmt.Sprintf(", undone: back to %d", it.BackTo)
		}
		got = append(got, line)
	}
	want := []string{"1 from 0", "2 from 1", "3 from 2, undone: back to 2", "4 from 2, undone: back to 2", "5 from 2", "6 from 5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
