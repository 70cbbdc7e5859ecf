// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Ledger returns every stop condition of the loop with its value, its bound and how near it is, at a time of the
// run's clock. While the loop runs, it shows how the loop can stop; afterwards, why it stopped, from the stop record.
//
// If the log lacks the outcomes of steps, as logs of old versions do, some rows have the status [loop.ConditionUnknown].
func (l *Loop) Ledger(now time.Duration) loop.Ledger {
	t, whole := l.Tally()
	led := l.Plan.Ledger(&t, l.Moment(now))
	if !whole {
		forget(led.Rows)
	}
	if l.Stop != nil {
		led.Rows, led.Nearest = recordedRows(led.Rows, l.Stop, l.Plan.CanExit), l.Stop.Nearest
	}
	return led
}

// forget marks the rows as unknown that the records of iterations cannot determine.
func forget(rows []loop.Row) {
	for i := range rows {
		r := &rows[i]
		switch r.Name {
		case "exit_loop", "target", "dimension_target", "max_iterations", "timeout":
			continue
		}
		r.Have, r.Counted, r.Near, r.Holds, r.Value = nil, 0, 0, false, ""
		r.Status, r.Note = loop.ConditionUnknown, "the log does not tell"
	}
}

// recordedRows returns the rows of a stopped loop. The stop record is right: rows that contradict it have the record's
// numbers. The record of an old version has none.
func recordedRows(rows []loop.Row, rec *loop.StopRecord, canExit []string) []loop.Row {
	out := make([]loop.Row, len(rec.Conditions))
	for i, c := range rec.Conditions {
		j := slices.IndexFunc(rows, func(r loop.Row) bool { return sameTexts(&r.ConditionRecord, &c) })
		if j >= 0 {
			if out[i] = rows[j]; c.Unit != "" {
				out[i].ConditionRecord = c
			}
			continue
		}
		out[i] = loop.Row{ConditionRecord: c, Status: loop.ConditionFar}
		switch r := &out[i]; {
		case c.Fired:
			r.Status, r.Near = loop.ConditionFired, 1
		case c.Holds:
			r.Status, r.Near = loop.ConditionHolds, 1
		case c.Name == "exit_loop":
			r.Status, r.Who = loop.ConditionNotAsked, canExit
		case c.Value == "":
			r.Status = loop.ConditionUnknown
		}
	}
	return out
}

// sameTexts reports whether two records of a condition agree in everything that the records of all versions have.
func sameTexts(a, b *loop.ConditionRecord) bool {
	return a.Name == b.Name && a.Expr == b.Expr && a.Value == b.Value && a.Threshold == b.Threshold && a.Holds == b.Holds &&
		a.Fired == b.Fired && a.Note == b.Note
}

// Moment returns the known values of the running iteration besides the tally, at a time of the run's clock.
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
		u := s.used.current.value() // what it used in earlier attempts is counted
		u.Add(s.below())
		m.Usage.Calls += u.Calls
		m.Usage.InputTokens += u.InputTokens
		m.Usage.OutputTokens += u.OutputTokens
		if u.Cost > 0 {
			m.Usage.Cost = new(u.Cost)
		}
	}
	return m
}
