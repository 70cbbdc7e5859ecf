// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Ledger returns every stop condition of the loop with its value, its bound and how near it is, at a
// time of the run's clock. It may be asked for at any time: while the loop goes on, it says how the
// loop can stop; after that, why it did, as the stop record has it.
//
// A loop whose log lacks the outcomes of steps, as those of old versions do, has rows with the tense
// [loop.TenseUnknown].
func (l *Loop) Ledger(now time.Duration) loop.Ledger {
	t, whole := l.Tally()
	led := l.Plan.Ledger(&t, l.Moment(now))
	if !whole {
		forget(led.Rows)
	}
	if l.Stop != nil {
		led.Rows, led.Nearest = recordedRows(led.Rows, l.Stop), l.Stop.Nearest
	}
	return led
}

// forget makes those rows unknown that records of iterations do not tell.
func forget(rows []loop.Row) {
	for i := range rows {
		r := &rows[i]
		switch r.Name {
		case "exit_loop", "target", "dimension_target", "max_iterations", "timeout":
			continue
		}
		r.Have, r.Counted, r.Near, r.Holds, r.Value = nil, 0, 0, false, ""
		r.Tense, r.Note = loop.TenseUnknown, "the log does not tell"
	}
}

// recordedRows are the rows of a loop that has stopped. What its record says is so: of rows that
// say otherwise, the numbers are left out.
func recordedRows(rows []loop.Row, rec *loop.StopRecord) []loop.Row {
	out := make([]loop.Row, len(rec.Conditions))
	for i, c := range rec.Conditions {
		j := slices.IndexFunc(rows, func(r loop.Row) bool { return r.ConditionRecord == c })
		if j >= 0 {
			out[i] = rows[j]
			continue
		}
		out[i] = loop.Row{ConditionRecord: c, Tense: loop.TenseFar}
		switch r := &out[i]; {
		case c.Fired:
			r.Tense, r.Near = loop.TenseFired, 1
		case c.Holds:
			r.Tense, r.Near = loop.TenseHolds, 1
		case c.Name == "exit_loop":
			r.Tense = loop.TenseNotAsked
			if c.Threshold != "any step" && c.Threshold != "nobody" {
				r.Who = strings.Split(c.Threshold, ", ")
			}
		case c.Value == "":
			r.Tense = loop.TenseUnknown
		}
	}
	return out
}

// Moment returns what is known of the iteration under way, at a time of the run's clock, besides the tally.
func (l *Loop) Moment(now time.Duration) loop.Moment {
	if l.Stop != nil {
		return loop.Moment{Reason: l.Stop.Reason}
	}
	it := l.Current()
	if it == nil || it.Record != nil {
		return loop.Moment{}
	}
	m := loop.Moment{Iteration: it.Number, Score: it.Provisional, Dimensions: it.dimensions}
	if l.account.whole() {
		m.Began = l.account.began
	}
	for _, s := range it.Steps {
		if s.Status != StatusRunning {
			continue
		}
		m.Active = max(m.Active, now-s.Began)
		u := s.live // what it used in earlier attempts is counted
		for c := range s.Children() {
			u.Add(c.Usage())
		}
		m.Usage.Calls += u.Calls
		m.Usage.InputTokens += u.InputTokens
		m.Usage.OutputTokens += u.OutputTokens
		if u.Cost > 0 {
			m.Usage.Cost = new(u.Cost)
		}
	}
	return m
}
