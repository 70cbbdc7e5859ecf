// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/json"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// runMarked calls execute between two marks.
func (s *Step) runMarked() {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	before, doubts := s.spent.Used(), s.watch()
	if s.inv.record != nil && agent.TypeOf(s.cfg.Agent) != agent.TypeLoop { // it calls BookEarlier itself
		s.inv.bookEarlier(s.inv.budget)
	}
	if s.mark(mark.KindStepStarted, nil, s.began) {
		s.execute()
	}
	if s.res.Left || s.res.Abandoned || s.inv.run.Replay.Err() != nil {
		return
	}
	if s.inv.record != nil { // if nobody has
		s.inv.bookEarlier(s.inv.budget)
	}
	if rec := s.inv.record; rec != nil && !s.rest(rec) {
		return
	}
	s.res.Err = doubts.with(s.res.Err)
	s.res.Ended = time.Now()
	fin := mark.StepFinished{Seconds: s.res.Ended.Sub(s.began).Seconds(), Canceled: s.parent.own.Err() != nil}
	if s.res.Err != nil {
		note(&fin, s.res.Err)
	}
	if used := s.spent.Used().Sub(before); used != (budget.Usage{}) {
		fin.Usage, _ = json.Marshal(used) // numbers: there is no error
	}
	if s.fin != nil {
		*s.fin = fin
		s.mark(mark.KindStepFinished, nil, s.res.Ended)
		return
	}
	s.mark(mark.KindStepFinished, fin, s.res.Ended)
}

// mark yields a mark of the step. It is stored at once, so that its time need not be read again.
func (s *Step) mark(kind mark.Kind, data any, at time.Time) bool {
	m := new(marked)
	m.Timestamp = at
	if m.Mark = (mark.Mark{Kind: kind}); data != nil {
		full, err := mark.New(kind, data)
		if err != nil {
			s.fail(err)
			return false
		}
		m.Mark = *full
	}
	m.Mark.Joins = s.joins.end || s.joins.start && kind == mark.KindStepStarted
	m.Mark.Asks = s.joins.asks && m.Mark.Joins
	m.Event.Mark = &m.Mark
	ev := s.told(&m.Event)
	return ev != nil && s.pass(ev)
}

// marked is an event with its mark: there are two for each step, and one allocation for each.
type marked struct {
	session.Event
	Mark mark.Mark
}

// meter is a budget below b in which the step's calls count, and nobody else's.
func (s *Step) meter(b *budget.Meter) *budget.Meter {
	if s.spent == nil {
		s.spent = b.Child(budget.Limits{})
	}
	return s.spent
}

// joining says which marks of a step can be stored together with the event after them: see
// [mark.Mark.Joins].
type joining struct {
	// through: the agent hands on what its steps say, and does nothing else in between. Any
	// other agent can have done something by the time that its next event comes, so a mark
	// that passes through it is stored at once.
	through bool
	// start: what follows the start of the step is another mark.
	start bool
	// asks: what follows the start of the step is the mark of a request, and then its answer.
	asks bool
	// end: nothing that the step does has an effect before its next event.
	end bool
}

func (s *Step) joining() joining {
	switch agent.TypeOf(s.cfg.Agent) {
	case agent.TypeLoop, agent.TypeSequential, agent.TypeParallel:
		return joining{through: true, start: s.base.self != nil && len(s.base.cfg.BeforeAgentCallbacks) == 0}
	}
	if q, ok := s.cfg.Agent.(Requester); ok && s.base.self != nil && s.base.bare() && s.parent.run.Callbacks == nil && q.Requests() {
		return joining{start: true, asks: true}
	}
	b, ok := s.cfg.Agent.(Brief)
	brief := ok && s.base.self != nil && s.base.bare() && b.Brief() // its callbacks may not be
	return joining{start: brief, end: brief}
}
