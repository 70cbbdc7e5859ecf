// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"

	"github.com/refrain-dev/refrain/session"
)

// delivery stores the events of a run, and yields those that are stored to the consumer.
type delivery struct {
	run          *run
	yield        func(*session.Event, error) bool
	fail         context.CancelCauseFunc // ends the run with an error
	err          error                   // why an event could not be stored, or how the run diverged from its log
	consumerLeft bool                    // the consumer has stopped ranging
}

// add stores an event of the agents and yields it, or holds it in the batch. An event that the log of a resumed run has
// already is neither stored nor yielded. add returns false if the agents must end.
func (d *delivery) add(ev *session.Event) bool {
	run := d.run
	switch {
	case d.consumerLeft:
		return false
	case d.err != nil: // still try to log how the run ended
		if ev.Mark != nil && run.replay.Err() == nil && !errors.Is(d.err, session.ErrConflict) && !run.matchLogged(ev) {
			_ = run.append(ev)
		}
		return false
	}
	if d.err = run.replay.Err(); d.err != nil {
		return false
	}
	if run.matchLogged(ev) {
		return true
	}
	if run.mayBatch(ev) {
		run.addToBatch(ev)
		return true
	}
	if d.err = run.append(ev); d.err != nil {
		d.fail(d.err)
		return false
	}
	return run.yieldCommitted(d.show) && d.show(ev)
}

// show yields a stored event. It returns false if the consumer has stopped ranging.
func (d *delivery) show(ev *session.Event) bool {
	d.consumerLeft = d.consumerLeft || !d.yield(ev, nil)
	return !d.consumerLeft
}

// finish stores and yields the held events after the last event of the agents. It returns why an event could not be stored,
// or a [*ResumeError] if the run has diverged from its log.
func (d *delivery) finish() error {
	if !d.consumerLeft && d.err == nil && d.run.replay.Err() == nil {
		if d.err = d.run.flush(); d.err == nil {
			d.run.yieldCommitted(d.show)
		}
	}
	if err := d.run.replay.Err(); err != nil {
		return &ResumeError{d.run.id, err}
	}
	return d.err
}
