// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// MetadataInterrupted is a key of the CustomMetadata of the event with a step's tool answers. Its value
// lists the IDs of the calls that have no answer, because the step's context ended first. The
// IDs are those of the calls in the log.
const MetadataInterrupted = "refrain:cut"

// InterruptedCalls returns the IDs of the calls that an event lists under [MetadataInterrupted], or nil.
func InterruptedCalls(ev *session.Event) []string {
	list, _ := ev.CustomMetadata[MetadataInterrupted].([]any)
	var ids []string
	for _, id := range list {
		if s, ok := id.(string); ok {
			ids = append(ids, s)
		}
	}
	return ids
}

// uncertainCalls holds the calls under a step that have begun and must not be made twice.
type uncertainCalls struct {
	step        *Step
	open        map[session.Address][]agent.Doubt
	interrupted []agent.Doubt
}

// trackCalls starts to track the calls below a step that runs several steps at the same time. It returns nil for any
// other step. Call it before the run of the step begins.
func (s *Step) trackCalls() *uncertainCalls {
	if !tracksCalls(s.cfg.Agent) || s.inv.tree == nil {
		return nil
	}
	d := &uncertainCalls{step: s}
	yield := s.current.yield
	s.current.yield = func(ev *session.Event) bool {
		d.observe(ev)
		return yield(ev)
	}
	return d
}

// observe records the begin or the end of calls in an event that the step passes on.
func (d *uncertainCalls) observe(ev *session.Event) {
	inv, at := d.step.inv, ev.Address
	switch {
	case ev.Partial || at == inv.address:
	case ev.Mark == nil && d.open[at] != nil: // the results of the calls
		cut := InterruptedCalls(ev)
		left := slices.DeleteFunc(d.open[at], func(c agent.Doubt) bool { return !slices.Contains(cut, c.Call) })
		if d.open[at] = left; len(left) == 0 {
			delete(d.open, at)
		}
	case ev.Mark == nil:
	case ev.Mark.Kind == mark.KindStepStarted:
		if TraitsOf(inv.tree.Find(at.Agent()), true).Effect == agent.AtMostOnce && ev.CustomMetadata[mark.MetadataNotRun] != true {
			d.begin(agent.Doubt{Address: at, ID: callID(inv.Session().ID(), inv.run.ID, string(at))})
		}
	case ev.Mark.Kind == mark.KindDispatched:
		var calls mark.Dispatched
		if ev.Mark.Decode(&calls) != nil || len(calls.Calls) == 0 {
			return
		}
		delete(d.open, at)
		for _, id := range calls.Calls {
			d.begin(agent.Doubt{Address: at, ID: callID(inv.Session().ID(), inv.run.ID, string(at), id), Call: id})
		}
	case ev.Mark.Kind == mark.KindStepFinished && d.open[at] != nil:
		var fin mark.StepFinished
		// The mark of a step that another step cut off has the failure of the other step.
		if ev.Mark.Decode(&fin) == nil && fin.Error != "" && (fin.Canceled || !session.Address(fin.At).Under(at)) {
			d.interrupted = append(d.interrupted, d.open[at]...)
		}
		delete(d.open, at)
	case ev.Mark.Kind == mark.KindStepFinished && len(d.interrupted) > 0:
		if a := inv.tree.Find(at.Agent()); a != nil && tracksCalls(a) { // that agent has reported the calls itself
			d.interrupted = slices.DeleteFunc(d.interrupted, func(c agent.Doubt) bool { return c.Address.Under(at) })
		}
	}
}

// tracksCalls reports whether an agent runs several steps at the same time, or may do so.
func tracksCalls(a agent.Agent) bool { return !isSequential(a) && len(a.SubAgents()) > 0 }

func (d *uncertainCalls) begin(call agent.Doubt) {
	if d.open == nil {
		d.open = make(map[session.Address][]agent.Doubt)
	}
	d.open[call.Address] = append(d.open[call.Address], call)
}

// wrapError returns the error of the step, with the calls that were cut off.
func (d *uncertainCalls) wrapError(err error) error {
	if d == nil || err == nil || d.step.inv.Context.Err() != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(d.open)) { // calls that a resumed run has not reached
		d.interrupted = append(d.interrupted, d.open[at]...)
	}
	if len(d.interrupted) == 0 {
		return err
	}
	return &agent.InDoubtError{Err: err, Calls: d.interrupted}
}

// Dispatch yields a [mark.KindDispatched]. After it the step makes the given calls, or with none its own call. known
// reports that the log has the mark already, so that the calls may have taken place. If more is false the agent must
// return. The agent must continue: see [Traits].
func (p Place) Dispatch(calls []string, yield func(*session.Event, error) bool) (known, more bool) {
	ev := p.Recorded()
	known = ev != nil
	if !known {
		m, err := mark.New(mark.KindDispatched, mark.Dispatched{Calls: calls})
		if err != nil {
			yield(nil, err)
			return false, false
		}
		ev = &session.Event{Mark: m}
	}
	return known, yield(ev, nil)
}

// Reconcile calls find to find out whether a call of the step took place, and yields a
// [mark.KindReconciled] with the result. If the log has that mark it returns the recorded
// result, and does not call find. If find is nil the result is unknown, and there is no mark.
// The agent must continue: see [Traits].
//
// Call it between the mark of the call that was cut off and [Place.Ask]. If more is false the
// agent must return.
func (p Place) Reconcile(call agent.Doubt, find agent.Reconcile,
	yield func(*session.Event, error) bool) (o agent.Reconciliation, more bool) {
	var data mark.Reconciled
	known := p.Recorded()
	switch {
	case known != nil && (known.Mark == nil || known.Mark.Kind != mark.KindReconciled):
		return agent.Reconciliation{}, true // the earlier part of the run had no find
	case known != nil:
		if err := known.Mark.Decode(&data); err != nil {
			return o, yield(nil, err)
		}
	case find == nil:
		return agent.Reconciliation{}, true
	default:
		outcome, err := callFind(p.ctx, call, find)
		if p.ctx.Err() != nil {
			yield(nil, context.Cause(p.ctx))
			return o, false
		}
		if err != nil {
			outcome = agent.Unknown(err.Error())
		}
		data = loggedOutcome(outcome, call.Call)
		m, err := mark.New(mark.KindReconciled, data)
		if err != nil {
			return o, yield(nil, err)
		}
		known = &session.Event{Mark: m}
	}
	switch data.Outcome {
	case mark.ReconciledHappened:
		var result any
		if data.Result != nil {
			var err error
			if result, err = session.PlainJSON(data.Result); err != nil {
				return o, yield(nil, fmt.Errorf("read the recorded result of call %s: %w", call.ID, err))
			}
		}
		o = agent.Happened(result)
	case mark.ReconciledNot:
		o = agent.DidNotHappen()
	default:
		o = agent.Unknown(data.Why)
	}
	return o, yield(known, nil)
}

// callFind calls find, and returns a panic in it as an error.
func callFind(ctx agent.InvocationContext, call agent.Doubt, find agent.Reconcile) (o agent.Reconciliation, err error) {
	defer agent.Recover(&err)
	return find(ctx, call)
}

// loggedOutcome returns an outcome as the log records it. An outcome without a JSON form is unknown.
func loggedOutcome(o agent.Reconciliation, call string) mark.Reconciled {
	result, happened := o.Happened()
	d := mark.Reconciled{Call: call, Outcome: mark.ReconciledUnknown, Why: o.Why()}
	switch {
	case o.DidNotHappen():
		d.Outcome = mark.ReconciledNot
	case happened:
		d.Outcome = mark.ReconciledHappened
		if result == nil {
			return d
		}
		var err error
		if d.Result, err = json.Marshal(result); err != nil {
			return mark.Reconciled{Call: call, Outcome: mark.ReconciledUnknown,
				Why: fmt.Sprintf("it took place, but its result cannot be written as JSON: %v", err)}
		}
	}
	return d
}
