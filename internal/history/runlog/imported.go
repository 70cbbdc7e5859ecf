// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"encoding/json"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// importer is the author of the event that pauses an imported run.
const importer = "refrain import"

// Import adds to an unfinished run the event that pauses it, so that no process continues the run before a person does. Call it before
// [Run.Save]. A run that has ended stays as it is.
func (r *Run) Import(file string) error {
	run := new(mark.Run)
	record := ""
	for ev := range r.All() {
		if text, ok := ev.Actions.StateDelta[mark.KeyRun].(string); ok {
			record = text
		}
	}
	if record != "" {
		if err := json.Unmarshal([]byte(record), run); err != nil {
			return err
		}
	}
	if run.ID == "" || run.Status.IsFinal() {
		return nil
	}
	last := r.Last()
	run.Active, run.Since = run.ActiveAt(last.Timestamp), time.Time{}
	run.Status, run.HandOver, run.Deadline = mark.RunIsPaused, false, time.Time{}
	ev, err := session.NewRunEvent(*run, importer, mark.KindRunPaused, mark.RunPaused{By: importer, Reason: "imported from " + file})
	if err != nil {
		return err
	}
	ev.Timestamp = last.Timestamp // the time until the import does not count, because nothing ran in it
	r.added, r.log = append(r.added, ev), nil
	return nil
}

// IsImported reports whether a run is paused because it was imported, so that no person has continued it here.
func IsImported(view *session.View) bool {
	evs := view.Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		m := evs.At(i).Mark
		if m == nil || m.Kind == mark.KindAnswered {
			continue
		}
		var p mark.RunPaused
		return m.Kind == mark.KindRunPaused && m.Decode(&p) == nil && p.By == importer
	}
	return false
}
