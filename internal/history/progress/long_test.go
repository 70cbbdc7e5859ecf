// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/testkit/heaptest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// draftText is what the writer says in an iteration of longLog.
func draftText(iteration, size int) string {
	return fmt.Sprintf("draft %d: %s", iteration, strings.Repeat("x", size))
}

// longLog yields the events of a loop of n iterations, in each of which a step says a
// long text that is a state key, too.
func longLog(t *testing.T, n, size int, yield func(*session.Event)) {
	t.Helper()
	seq := int64(0)
	add := func(at session.Address, iteration int, kind mark.Kind, data any) *session.Event {
		seq++
		ev := &session.Event{Seq: seq, InvocationID: "run", Author: at.Agent(), Address: at, Iteration: iteration}
		if kind != "" {
			m, err := mark.New(kind, data)
			if err != nil {
				t.Fatal(err)
			}
			ev.Mark = m
		}
		return ev
	}
	yield(add("refine", 0, mark.KindStepStarted, nil))
	yield(add("refine", 0, mark.KindLoopStarted, loop.Plan{Steps: []loop.Step{{Name: "writer"}}}))
	for i := 1; i <= n; i++ {
		at := session.Address(fmt.Sprintf("refine[%d]/writer", i))
		yield(add(at, i, mark.KindStepStarted, nil))
		said := add(at, i, "", nil)
		said.Content = genai.NewContentFromText(draftText(i, size), genai.RoleModel)
		said.Actions.StateDelta = map[string]any{"draft": draftText(i, size), "n": i}
		yield(said)
		yield(add(at, i, mark.KindStepFinished, mark.StepFinished{}))
		yield(add("refine", 0, mark.KindIterationFinished, loop.IterationRecord{Number: i, Complete: true}))
	}
}

// What the folds of a run hold does not grow with what is said in it: an iteration of
// 50 kB takes less than a tenth of that.
func TestFoldsHoldNoTexts(t *testing.T) {
	folds := func(n int) any {
		var live progress.Live
		var fold progress.Fold
		var diagnosis prose.Diagnosis
		longLog(t, n, 50_000, func(ev *session.Event) {
			live.Add(ev)
			fold.Add(ev)
			diagnosis.Add(ev)
		})
		if want := draftText(n, 50_000); fold.Answer() != want {
			t.Errorf("after %d iterations the answer is %.40q", n, fold.Answer())
		}
		its := live.Tree().Main().Loop.Iterations
		if text := its[n-1].Steps[0].Text; !strings.HasSuffix(text, "xxx") || len(text) < 30_000 {
			t.Errorf("of the last step the tree has %d bytes", len(text))
		}
		if text := its[0].Steps[0].Text; text == "" {
			t.Error("of the first step the tree has nothing, want a text or its beginning")
		}
		return []any{&live, &fold, &diagnosis}
	}
	few, many := heaptest.Held(func() any { return folds(500) }), heaptest.Held(func() any { return folds(1500) })
	if each := (many - few) / 1000; each > 5_000 {
		t.Errorf("500 iterations hold %d bytes, 1500 hold %d: %d for each, want at most 5000", few, many, each)
	}
}

// From an outline, answers and states are the same: the texts are read from the log.
func TestOutlinesAreReadWhole(t *testing.T) {
	var log, outline []*session.Event
	longLog(t, 5, 1000, func(ev *session.Event) {
		log, outline = append(log, ev), append(outline, ev.Outlined())
	})
	whole := func(ev *session.Event) *session.Event { return log[ev.Seq-1] }
	fold := progress.Fold{Whole: whole}
	for _, ev := range outline {
		fold.Add(ev)
	}
	if got, want := fold.Answer(), draftText(5, 1000); got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	for _, ev := range log {
		want := progress.StateAfter(nil, slices.Values(log), ev.Seq, nil)
		if diff := cmp.Diff(want, progress.StateAfter(nil, slices.Values(outline), ev.Seq, whole)); diff != "" {
			t.Fatalf("the state after event %d (-log +outline):\n%s", ev.Seq, diff)
		}
	}
}
