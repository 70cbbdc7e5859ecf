// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Dispatch yields a [mark.KindDispatched], after which the step makes the given calls, or its own without any. known
// reports that the log has the mark already, so that the calls may have taken place. If more is false the agent must
// return. The agent must be a [Continuer].
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

// FindOut calls find to find out whether a call of the step took place, and yields a
// [mark.KindReconciled] with the result. If the log has that mark it returns the recorded
// result, and does not call find. If find is nil the result is unknown, and there is no mark.
// The agent must be a [Continuer].
//
// Call it between the mark of the call that was cut off and [Place.Ask]. If more is false the
// agent must return.
func (p Place) FindOut(call agent.Doubt, find agent.Reconcile,
	yield func(*session.Event, error) bool) (o agent.Reconciliation, more bool) {
	var data mark.Reconciled
	known := p.Recorded()
	switch {
	case known != nil && (known.Mark == nil || known.Mark.Kind != mark.KindReconciled):
		return agent.Reconciliation{}, true // nobody could find out then
	case known != nil:
		if err := known.Mark.Decode(&data); err != nil {
			return o, yield(nil, err)
		}
	case find == nil:
		return agent.Reconciliation{}, true
	default:
		said, err := look(p.ctx, call, find)
		if p.ctx.Err() != nil {
			yield(nil, context.Cause(p.ctx))
			return o, false
		}
		if err != nil {
			said = agent.Unknown(err.Error())
		}
		data = reconciled(said, call.Call)
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

// look calls find.
func look(ctx agent.InvocationContext, call agent.Doubt, find agent.Reconcile) (o agent.Reconciliation, err error) {
	defer agent.Recover(&err)
	return find(ctx, call)
}

// reconciled returns an outcome as the log records it. An outcome without a JSON form is unknown.
func reconciled(o agent.Reconciliation, call string) mark.Reconciled {
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
