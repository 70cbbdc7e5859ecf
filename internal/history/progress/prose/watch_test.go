// SPDX-License-Identifier: Apache-2.0

package prose_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// markedAs is the event of a mark.
func markedAs(t *testing.T, at session.Address, iteration int, kind mark.Kind, data any) *session.Event {
	t.Helper()
	m, err := mark.New(kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return &session.Event{Author: at.Agent(), Address: at, Iteration: iteration, Mark: m}
}

// A Watch is a Fold, a Diagnosis and Resources.
func TestWatchIsAllThree(t *testing.T) {
	score := 7.5
	ended := markedAs(t, "l[1]/a", 1, mark.KindStepFinished, mark.StepFinished{Error: "boom", Seconds: 2,
		Outcome: []byte(`{"exit_words":true}`)})
	iteration := markedAs(t, "l", 0, mark.KindIterationFinished, loop.IterationRecord{Number: 1, Score: &score,
		Complete: true, StateSize: 99})
	events := []*session.Event{
		markedAs(t, "l", 0, mark.KindStepStarted, nil), markedAs(t, "l[1]/a", 1, mark.KindStepStarted, nil), ended, iteration,
		{Author: "a", Address: "l[2]/a", Iteration: 2, Mark: &mark.Mark{Kind: mark.KindStepFinished, Data: []byte("{")}},
		{Author: "l", Address: "l", Mark: &mark.Mark{Kind: mark.KindIterationFinished, Data: []byte("{")}},
		markedAs(t, "l", 0, mark.KindLoopStopped, loop.StopRecord{Reason: loop.ReasonMaxIterations, Iterations: 1}),
		markedAs(t, "l", 0, mark.KindStepFinished, mark.StepFinished{Usage: []byte(`{"calls":3}`)}),
	}
	var w prose.Watch
	var f progress.Fold
	var d prose.Diagnosis
	var r progress.Resources
	for _, ev := range events {
		want := f.Add(ev)
		d.Add(ev)
		r.Add(ev)
		if diff := cmp.Diff(want, w.Add(ev)); diff != "" {
			t.Errorf("%s: lines (-Fold +Watch):\n%s", ev.Mark.Kind, diff)
		}
	}
	if diff := cmp.Diff(d.Findings(), w.Diagnosis.Findings()); diff != "" || len(d.Findings()) == 0 {
		t.Errorf("findings (-Diagnosis +Watch):\n%s", diff)
	}
	if got, want := fmt.Sprint(w.Resources.Lines()), fmt.Sprint(r.Lines()); got != want || r.Usage.Calls != 3 {
		t.Errorf("resources %s, want %s", got, want)
	}
}
