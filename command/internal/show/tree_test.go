// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/show"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
)

// A step that waits for the limit of its provider says so, and until when.
func TestTreeSaysWhatWaitsForALimit(t *testing.T) {
	until := time.Now().Add(time.Minute)
	step := &progress.Step{Name: "coder", Status: progress.StatusRunning, Activity: progress.Activity{Limited: until}}
	s := show.Shown{Report: &runlog.Report{Tree: &progress.Tree{Root: step}}}
	var b strings.Builder
	s.PrintTree(&b)
	if want := "  " + progress.Waits(until, time.Now()); !strings.Contains(b.String(), want) {
		t.Errorf("got %q, want %q in it", b.String(), want)
	}
}
