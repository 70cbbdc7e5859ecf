// SPDX-License-Identifier: Apache-2.0

package agent

import "github.com/refrain-dev/refrain/session/mark"

// Reconcile finds out what became of a call that must not be made twice
// ([AtMostOnce]), and that was cut off or has failed: by looking it up where it was to
// take place, usually by its ID. It only looks: it may be called again, if the process
// dies before its answer is in the log.
//
// Ctx is that of the step which makes the call; for a call of a tool it is a
// tool.Context. An error, or a panic, leaves the call unknown: then a person is
// asked, as without a Reconcile.
type Reconcile func(ctx InvocationContext, call Doubt) (Reconciliation, error)

// Reconciliation is what a [Reconcile] has found out. The zero value says that it is not
// known.
type Reconciliation struct {
	kind   string // of mark.Reconciled; "" is unknown
	result any
	why    string
}

// Happened says that the call took place, and what it came to: for a step its output,
// a text, or what has JSON; for a tool its answer, a map, or what is to be its result.
func Happened(result any) Reconciliation {
	return Reconciliation{kind: mark.ReconciledHappened, result: result}
}

// DidNotHappen says that the call did not take place, and never will by itself: it is
// made again, with the same ID.
func DidNotHappen() Reconciliation { return Reconciliation{kind: mark.ReconciledNot} }

// Unknown says that it cannot be found out, and why: a person is asked, who is told.
func Unknown(why string) Reconciliation { return Reconciliation{why: why} }

// Happened reports whether the call took place, and what it came to: as it comes out
// of JSON.
func (r *Reconciliation) Happened() (result any, ok bool) {
	return r.result, r.kind == mark.ReconciledHappened
}

// DidNotHappen reports whether the call did not take place.
func (r *Reconciliation) DidNotHappen() bool { return r.kind == mark.ReconciledNot }

// Why says why it is not known; empty if nobody has tried to find it out.
func (r *Reconciliation) Why() string { return r.why }

// Question asks a person about a call of which nothing could be found out. What says
// what happened, such as "pay was cut off".
func (r *Reconciliation) Question(what string) mark.Question {
	if r.why != "" {
		what += " It could not be found out: " + r.why
	}
	return mark.InDoubt(what)
}
