// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refrain-dev/refrain/session"
)

// Reconcile finds out what became of a call that must not be made twice
// ([AtMostOnce]), and that was cut off or has failed: by looking it up where it was to
// take place, usually by its ID. It only looks: it may be called again, if the process
// dies before its answer is in the log.
//
// Ctx is that of the step which makes the call; for a call of a tool it is a
// tool.Context. An error, or a panic, is an outcome that is not known: then a person is
// asked, as without a Reconcile.
type Reconcile func(ctx InvocationContext, call Doubt) (Outcome, error)

// Outcome is what a [Reconcile] has found out; the zero value is that it is not known.
type Outcome struct {
	kind   string // of session.Reconciled; "" is unknown
	result any
	why    string
}

// Happened says that the call took place, and what it came to: for a step its output,
// a text, or what has JSON; for a tool its answer, a map, or what is to be its result.
func Happened(result any) Outcome { return Outcome{kind: session.ReconciledHappened, result: result} }

// DidNotHappen says that the call did not take place, and never will by itself: it is
// made again, with the same ID.
func DidNotHappen() Outcome { return Outcome{kind: session.ReconciledNot} }

// Unknown says that it cannot be found out, and why: a person is asked, who is told.
func Unknown(why string) Outcome { return Outcome{why: why} }

// Happened reports whether the call took place, and what it came to: as it comes out
// of JSON.
func (o *Outcome) Happened() (result any, ok bool) {
	return o.result, o.kind == session.ReconciledHappened
}

// DidNotHappen reports whether the call did not take place.
func (o *Outcome) DidNotHappen() bool { return o.kind == session.ReconciledNot }

// Why says why the outcome is not known; empty if nobody has tried to find it out.
func (o *Outcome) Why() string { return o.why }

// FindOut asks find what became of a call of the step of ctx, and yields a mark with
// what it says: a [session.MarkReconciled]. If the log has that mark find is not asked,
// and the outcome is that of then. A find that is nil knows nothing, and leaves no
// mark. The agent has a method Continues() bool that returns true.
//
// It is for agents, between the mark of the call that was cut off and [AskPerson].
// More is false if the agent has to leave.
func FindOut(ctx InvocationContext, call Doubt, find Reconcile, yield func(*session.Event, error) bool) (o Outcome, more bool) {
	var data session.Reconciled
	known := Recorded(ctx)
	switch {
	case known != nil && (known.Mark == nil || known.Mark.Kind != session.MarkReconciled):
		return Outcome{}, true // nobody could find out then
	case known != nil:
		if err := known.Mark.Decode(&data); err != nil {
			return o, yield(nil, err)
		}
	case find == nil:
		return Outcome{}, true
	default:
		said, err := look(ctx, call, find)
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return o, false
		}
		if err != nil {
			said = Unknown(err.Error())
		}
		data = said.data(call.Call)
		m, err := session.NewMark(session.MarkReconciled, data)
		if err != nil {
			return o, yield(nil, err)
		}
		known = &session.Event{Mark: m}
	}
	if o = (Outcome{kind: data.Outcome, why: data.Why}); data.Result != nil {
		var err error
		if o.result, err = session.PlainJSON(data.Result); err != nil {
			return o, yield(nil, fmt.Errorf("what was found out about call %s: %w", call.ID, err))
		}
	}
	return o, yield(known, nil)
}

// look calls find.
func look(ctx InvocationContext, call Doubt, find Reconcile) (o Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = newPanicError(r)
		}
	}()
	return find(ctx, call)
}

// data is the outcome as the log has it. One that has no JSON is not known.
func (o Outcome) data(call string) session.Reconciled {
	d := session.Reconciled{Call: call, Outcome: o.kind, Why: o.why}
	if o.kind == "" {
		d.Outcome = session.ReconciledUnknown
	}
	if o.kind != session.ReconciledHappened || o.result == nil {
		return d
	}
	var err error
	if d.Result, err = json.Marshal(o.result); err != nil {
		return session.Reconciled{Call: call, Outcome: session.ReconciledUnknown, Why: fmt.Sprintf("it took place, and what it came to has no JSON: %v", err)}
	}
	return d
}

// Question asks a person about a call of which nothing could be found out. What says
// what happened, such as "pay was cut off".
func (o *Outcome) Question(what string) session.Question {
	if o.why != "" {
		what += " It could not be found out: " + o.why
	}
	return session.InDoubt(what)
}
