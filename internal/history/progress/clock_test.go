// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// A run's clock stands still while no process drives the run, or a person is waited for, and that of a fork begins
// with the fork. M9, LOOP 30
func TestActiveTime(t *testing.T) {
	began := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	type event struct {
		at   int // seconds
		kind mark.Kind
		data any
	}
	waits := mark.RunPaused{Waits: []string{"q"}}
	for name, c := range map[string]struct {
		log  []event
		want int
	}{
		"under way":            {[]event{{0, mark.KindRunStarted, nil}, {12, mark.KindStepStarted, nil}}, 12},
		"paused":               {[]event{{0, mark.KindRunStarted, nil}, {12, mark.KindRunPaused, nil}, {40, mark.KindRunTaken, nil}, {41, mark.KindRunResumed, nil}, {45, mark.KindStepStarted, nil}}, 17},
		"waits, answered":      {[]event{{0, mark.KindRunStarted, nil}, {1, mark.KindRunPaused, waits}, {121, mark.KindAnswered, nil}, {121, mark.KindRunPaused, nil}, {125, mark.KindRunTaken, nil}, {125, mark.KindRunResumed, nil}, {126, mark.KindRunEnded, nil}}, 2},
		"waits still":          {[]event{{0, mark.KindRunStarted, nil}, {1, mark.KindRunPaused, waits}, {121, mark.KindAnswered, nil}}, 1},
		"answered at work":     {[]event{{0, mark.KindRunStarted, nil}, {10, mark.KindAnswered, nil}, {30, mark.KindStepFinished, nil}}, 30},
		"paused, canceled":     {[]event{{0, mark.KindRunStarted, nil}, {3, mark.KindRunPaused, nil}, {90, mark.KindRunEnded, mark.RunEnded{Status: mark.RunCanceled}}}, 3},
		"died, resumed":        {[]event{{0, mark.KindRunStarted, nil}, {3, mark.KindStepStarted, nil}, {90, mark.KindRunTaken, nil}, {91, mark.KindRunResumed, nil}, {93, mark.KindStepStarted, nil}}, 6},
		"died, answered":       {[]event{{0, mark.KindRunStarted, nil}, {3, mark.KindStepStarted, nil}, {50, mark.KindAnswered, nil}, {90, mark.KindRunTaken, nil}, {91, mark.KindRunResumed, nil}}, 4},
		"without a supervisor": {[]event{{0, mark.KindStepStarted, nil}, {3, mark.KindStepFinished, nil}, {90, mark.KindRunResumed, nil}, {92, mark.KindStepStarted, nil}}, 5},
		"ended, continued":     {[]event{{0, mark.KindRunStarted, nil}, {3, mark.KindRunEnded, nil}, {90, mark.KindRunTaken, nil}, {90, mark.KindRunResumed, nil}, {94, mark.KindRunEnded, nil}}, 7},
		"forked":               {[]event{{0, mark.KindRunStarted, nil}, {9, mark.KindIterationFinished, nil}, {500, mark.KindRunPaused, mark.RunPaused{Session: "r_fork"}}, {600, mark.KindRunTaken, nil}, {600, mark.KindRunResumed, nil}, {604, mark.KindRunEnded, nil}}, 4},
	} {
		var live progress.Live
		for i, e := range c.log {
			m, err := mark.New(e.kind, e.data)
			if err != nil {
				t.Fatal(err)
			}
			live.Add(&session.Event{Seq: int64(i + 1), Timestamp: began.Add(time.Duration(e.at) * time.Second), Mark: m})
		}
		want := time.Duration(c.want) * time.Second
		if got := live.Tree().Active(); got != want {
			t.Errorf("%s: active for %v, want %v", name, got, want)
		}
	}
}
