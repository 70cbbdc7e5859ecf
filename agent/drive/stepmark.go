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

// runMarked runs the agent between the marks of its start and its end.
func (s *Step) runMarked() {
	if s.current.started.IsZero() {
		s.current.started = time.Now()
	}
	before, doubts := s.meter.Used(), s.trackCalls()
	if s.inv.logged != nil && agent.TypeOf(s.cfg.Agent) != agent.TypeLoop { // a loop calls ChargeReplayed itself
		s.inv.chargeReplayed(s.inv.budget)
	}
	if s.mark(mark.KindStepStarted, nil, s.current.started) {
		s.execute()
	}
	if s.current.result.ConsumerLeft || s.current.result.Abandoned || s.inv.run.Replay.Err() != nil {
		return
	}
	if s.inv.logged != nil { // unless the agent has called ChargeReplayed
		s.inv.chargeReplayed(s.inv.budget)
	}
	if rec := s.inv.logged; rec != nil && !s.passUnreplayed(rec) {
		return
	}
	s.current.result.Err = doubts.wrapError(s.current.result.Err)
	s.current.result.Ended = time.Now()
	fin := mark.StepFinished{Seconds: s.current.result.Ended.Sub(s.current.started).Seconds(), Canceled: s.parent.stepContext.Err() != nil}
	if s.current.result.Err != nil {
		encodeError(&fin, s.current.result.Err)
	}
	if used := s.meter.Used().Sub(before); used != (budget.Usage{}) {
		fin.Usage, _ = json.Marshal(used) // cannot fail, because all fields are numbers
	}
	if s.current.endData != nil {
		*s.current.endData = fin
		s.mark(mark.KindStepFinished, nil, s.current.result.Ended)
		return
	}
	s.mark(mark.KindStepFinished, fin, s.current.result.Ended)
}

// mark yields a mark of the step with the time at, so that the store need not read the clock. It returns false if the
// step must end.
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
	m.Mark.Batch = s.batching.afterEnd || s.batching.afterStart && kind == mark.KindStepStarted
	m.Mark.Asks = s.batching.beforeRequest && m.Mark.Batch
	m.Event.Mark = &m.Mark
	ev := s.resolveEvent(&m.Event)
	return ev != nil && s.deliver(ev)
}

// eventWithMark is an event together with its mark, so that both need only one allocation. Each step has two of them.
type eventWithMark struct {
	session.Event
	Mark mark.Mark
}

// batching says which marks of a step can be stored together with the event after them: see
// [mark.Mark.Batch].
type batching struct {
	// passThrough: the agent yields the events of its steps, and does nothing else in between. Any other agent can
	// have an effect before its next event, so a mark that passes through it is stored at once.
	passThrough bool
	// afterStart: the step has no effect between the mark of its start and its next event.
	afterStart bool
	// beforeRequest: the event after the mark of the step's start is the mark of a request.
	beforeRequest bool
	// afterEnd: the step has no effect between any of its marks and the next event.
	afterEnd bool
}

// marksToBatch returns which marks of the step can be stored together with the event after them.
func (s *Step) marksToBatch() batching {
	switch agent.TypeOf(s.cfg.Agent) {
	case agent.TypeLoop, agent.TypeSequential, agent.TypeParallel:
		return batching{passThrough: true, afterStart: s.base.self != nil && len(s.base.cfg.BeforeAgentCallbacks) == 0}
	}
	if s.base.self == nil || !s.base.hasNoCallbacks() { // a callback can have an effect
		return batching{}
	}
	traits := TraitsOf(s.cfg.Agent, true)
	if traits.RequestsFirst && s.parent.run.Callbacks == nil {
		return batching{afterStart: true, beforeRequest: true}
	}
	return batching{afterStart: traits.ComputesOnly, afterEnd: traits.ComputesOnly}
}
