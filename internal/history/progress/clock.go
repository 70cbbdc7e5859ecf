// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// clock measures the active time of a run. It stands still while the run is paused, waits for a person or has ended,
// and while no process drives it, until a process takes over or resumes the run.
type clock struct {
	began, last time.Time     // of the first and of the last event
	worked      time.Time     // of the last event that the run's driver wrote
	idle        time.Duration // for which the clock stood still
	forked      time.Duration // what it showed when the run was forked from another
	stands      bool
	taken       bool // a process has taken the run up and not resumed it yet
}

// tick advances to the time of the next event and returns the clock's time.
func (c *clock) tick(ev *session.Event) time.Duration {
	at := ev.Timestamp
	if at.Before(c.last) {
		at = c.last // or none was given
	}
	if c.began.IsZero() {
		c.began, c.worked = at, at
	}
	c.last = at
	kind, forks := mark.Kind(""), false
	if ev.Mark != nil {
		var p mark.RunPaused
		kind = ev.Mark.Kind
		forks = kind == mark.KindRunPaused && ev.Mark.Decode(&p) == nil && p.Session != ""
	}
	switch {
	case c.stands || forks || kind == mark.KindRunTaken || kind == mark.KindRunResumed && !c.taken:
		c.idle += at.Sub(c.worked)
		c.worked = at
	case kind != mark.KindAnswered: // that may be in the log without a driver
		c.worked = at
	}
	switch kind {
	case mark.KindRunPaused, mark.KindRunEnded:
		c.stands = true
	case mark.KindRunTaken, mark.KindRunResumed:
		c.stands, c.taken = false, kind == mark.KindRunTaken
	}
	now := at.Sub(c.began) - c.idle
	if forks {
		c.forked = now
	}
	return now
}
