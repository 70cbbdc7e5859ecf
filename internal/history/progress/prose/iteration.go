// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// IterationNote returns in English the note on an iteration besides its score, and whether it is bad. Before the end of the
// iteration it has only what people have told the run. It has no character that commands a terminal.
func IterationNote(l *progress.Loop, it *progress.Iteration) (note string, bad bool) {
	rec := it.Record
	var notes []string
	if it.Task != nil {
		notes = append(notes, it.Task.Text())
	}
	if len(it.Hints) > 0 {
		notes = append(notes, "told: "+progress.HintsText(it.Hints))
	}
	if rec == nil {
		return brief.Clean(strings.Join(notes, "; ")), false
	}
	switch {
	case rec.Rejected != "" && it.RolledBack:
		notes, bad = append(notes, "undone: "+rec.Rejected), true
	case rec.Rejected != "":
		notes, bad = append(notes, "rejected: "+rec.Rejected), true
	case rec.Best && l.Best() == it:
		notes = append(notes, "best")
	case rec.Delta != nil && *rec.Delta < -rec.Noise:
		notes, bad = append(notes, "regression"), true
	case !rec.Complete && rec.Failures > 0:
		notes, bad = append(notes, "cut short by a failure"), true
	case rec.Failures == 1:
		notes, bad = append(notes, "1 failure"), true
	case rec.Failures > 1:
		notes, bad = append(notes, fmt.Sprintf("%d failures", rec.Failures)), true
	case !rec.Complete:
		notes = append(notes, "left early")
	}
	if rec.Leg > 0 {
		notes = append(notes, fmt.Sprintf("leg %d", rec.Leg))
	}
	if rec.Unscored != "" {
		notes, bad = append(notes, "no score: "+rec.Unscored), true
	}
	for _, f := range rec.Findings {
		notes, bad = append(notes, "doubtful: "+f.Text), true
	}
	if rec.Warning != "" {
		notes, bad = append(notes, rec.Warning), true
	}
	return brief.Clean(strings.Join(notes, "; ")), bad
}
