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
	if s.current.started.IsZero() {
		s.current.started = time.Now()
	}
	before, doubts := s.meter.Used(), s.trackCalls()
	if s.inv.logged != nil && agent.TypeOf(s.cfg.Agent) != agent.TypeLoop { // it calls ChargeReplayed itself
		s.inv.chargeReplayed(s.inv.budget)
	}
	if s.mark(mark.KindStepStarted, nil, s.current.started) {
		s.execute()
	}
	if s.current.result.ConsumerLeft || s.current.result.Abandoned || s.inv.run.Replay.Err() != nil {
		return
	}
	if s.inv.logged != nil { // if nobody has
		s.inv.chargeReplayed(s.inv.budget)
	}
	if rec := s.inv.logged; rec != nil && !s.passUnreplayed(rec) {
		return
	}
	s.current.result.Err = doubts.wrapError(s.current.result.Err)
	s.current.result.Ended = time.Now()
	fin := mark.StepFinished{Seconds: s.current.result.Ended.Sub(s.current.started).Seconds(), Canceled: s.parent.stepContext.Err() != nil}
	if s.current.result.Err != nil {
		note(&fin, s.current.result.Err)
	}
	if used := s.meter.Used().Sub(before); used != (budget.Usage{}) {
		fin.Usage, _ = json.Marshal(used) // numbers: there is no error
	}
	if s.current.endData != nil {
		*s.current.endData = fin
		s.mark(mark.KindStepFinished, nil, s.current.result.Ended)
		return
	}
	s.mark(mark.KindStepFinished, fin, s.current.result.Ended)
}

// mark yields a mark of the step. It is stored at once, so that its time need not be read again.
func (s *Step) mark(kind mark.Kind, data any, at time.Time) bool {
	m := new(eventWithMark)
	m.Timestamp = at
	if m.Mark = (mark.Mark{Kind: kind}); data != nil {
		full, err := mark.New(kind, data)
		if err != nil {
			s.stopWith(err)
			return false
		}
		m.Mark = *full
	}
	m.Mark.Joins = s.batching.afterEnd || s.batching.afterStart && kind == mark.KindStepStarted
	m.Mark.Asks = s.batching.beforeRequest && m.Mark.Joins
	m.Event.Mark = &m.Mark
	ev := s.resolveEvent(&m.Event)
	return ev != nil && s.deliver(ev)
}

// eventWithMark is an event with its mark: there are two for each step, and one allocation for each.
type eventWithMark struct {
	session.Event
	Mark mark.Mark
}

// batching says which marks of a step can be stored together with the event after them: see
// [mark.Mark.Joins].
type batching struct {
	// passThrough: the agent hands on what its steps say, and does nothing else in between. Any
	// other agent can have done something by the time that its next event comes, so a mark
	// that passes through it is stored at once.
	passThrough bool
	// afterStart: what follows the start of the step is another mark.
	afterStart bool
	// beforeRequest: what follows the start of the step is the mark of a request, and then its answer.
	beforeRequest bool
	// afterEnd: nothing that the step does has an effect before its next event.
	afterEnd bool
}

func (s *Step) marksToBatch() batching {
	switch agent.TypeOf(s.cfg.Agent) {
	case agent.TypeLoop, agent.TypeSequential, agent.TypeParallel:
		return batching{passThrough: true, afterStart: s.base.self != nil && len(s.base.cfg.BeforeAgentCallbacks) == 0}
	}
	if q, ok := s.cfg.Agent.(Requester); ok && s.base.self != nil && s.base.hasNoCallbacks() && s.parent.run.Callbacks == nil && q.Requests() {
		return batching{afterStart: true, beforeRequest: true}
	}
	b, ok := s.cfg.Agent.(Brief)
	brief := ok && s.base.self != nil && s.base.hasNoCallbacks() && b.Brief() // its callbacks may not be
	return batching{afterStart: brief, afterEnd: brief}
}
