// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"maps"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// account counts a loop as the loop itself does: the outcomes of its steps, read from the log, are
// added to a tally by its plan. A nil account counts nothing.
type account struct {
	tally loop.Tally
	began *loop.Tally // when the iteration under way began; nil after the loop has stopped
	ended *loop.Tally // when the loop was canceled, which may go on; nil before

	cut   *loop.Outcome // of the step that was cut off; it is repeated if the run goes on
	reads []string      // the state keys that decide
	all   bool          // any key may
	state bool          // the state decides
	off   bool          // the log does not tell enough
}

func newAccount(p *loop.Plan) *account {
	a := new(account)
	a.follow(p)
	return a
}

// follow takes the plan by which the loop goes on.
func (a *account) follow(p *loop.Plan) {
	a.reads, a.all = p.Reads()
	a.reads = append(a.reads, p.Compares()...)
	a.state = len(a.reads) > 0 || a.all || p.Score != nil || p.StopWhen != nil
}

// begin takes down where an iteration begins.
func (a *account) begin() {
	if a == nil {
		return
	}
	if a.began == nil {
		a.began = new(loop.Tally)
	}
	*a.began = a.tally
}

// end takes down that the loop has stopped.
func (a *account) end(reason loop.StopReason) {
	if a == nil {
		return
	}
	if reason == loop.ReasonCanceled {
		a.ended = new(a.tally)
	} else {
		a.began = nil
	}
}

// whole reports whether the account has counted all that the loop has.
func (a *account) whole() bool { return a != nil && !a.off }

// now returns the tally of the loop.
func (a *account) now(l *Loop) *loop.Tally {
	if l.Stop == nil || a.ended == nil {
		return &a.tally
	}
	if a.cut != nil {
		l.Plan.Add(a.ended, *a.cut)
		a.cut = nil
	}
	return a.ended
}

// add counts the outcome of a step or of a rollback.
func (a *account) add(p *loop.Plan, o loop.Outcome) {
	if a != nil {
		p.Add(&a.tally, o)
		a.cut = nil
	}
}

// check holds the account against the record of an iteration, which decides.
func (a *account) check(rec *loop.IterationRecord) {
	if a == nil {
		return
	}
	got := &a.tally.Ended
	same := got.Score == rec.Score || got.Score != nil && rec.Score != nil && *got.Score == *rec.Score
	a.off = a.off || got.Number != rec.Number || !same || got.Complete != rec.Complete
}

// goOn takes a loop up again, with other limits than it had when it stopped.
func (l *Loop) goOn(p *loop.Plan) {
	l.Plan, l.Stop = p, nil
	if l.account == nil {
		return
	}
	l.account.follow(p)
	l.account.ended, l.account.tally.Bounds = nil, nil
	_ = p.Reopen(&l.account.tally) // the log says that it goes on
}

// outcome counts the outcome of a step of a loop.
func (l *Live) outcome(at session.Address, o *loop.Outcome, canceled bool) {
	s := l.steps[at.Parent()]
	if s == nil || s.Loop == nil || s.Loop.account == nil {
		return
	}
	a := s.Loop.account
	if a.state {
		o.State = l.stateOf(a, passOf(at), o.State)
	}
	if canceled {
		a.cut = o
		return
	}
	a.add(s.Loop.Plan, *o)
	if j, ok := s.Loop.Plan.Judged(&a.tally); ok {
		if it := s.Loop.Current(); it != nil && it.Record == nil {
			it.Provisional = &j.Score
		}
	}
}

// stateOf returns the keys of the state that the plan reads, with values that were recorded beside the log.
func (l *Live) stateOf(a *account, pass session.Address, recorded map[string]any) map[string]any {
	now := l.view.StateAt(pass)
	var state map[string]any
	if a.all {
		state = maps.Collect(now.All())
	} else {
		state = make(map[string]any, len(a.reads))
		for _, key := range a.reads {
			if val, err := now.Get(key); err == nil {
				state[key] = val
			}
		}
	}
	for key, val := range state {
		if seq, cut := writtenBy(val); cut {
			state[key] = l.wholeValue(key, seq)
		}
	}
	maps.Copy(state, recorded)
	maps.DeleteFunc(state, func(_ string, v any) bool { return v == nil })
	return state
}

// wholeValue reads a value that an outline has cut; nil if it cannot be read.
func (l *Live) wholeValue(key string, seq int64) any {
	if l.Whole == nil {
		return nil
	}
	return l.Whole(&session.Event{Seq: seq, Omitted: 1}).Actions.StateDelta[key]
}
