// SPDX-License-Identifier: Apache-2.0

package agent

import "github.com/refrain-dev/refrain/session/mark"

// Reconcile finds out whether an [AtMostOnce] call took place that was cut off or has failed.
// Usually it looks the call up by its ID in the service that was called. It must not change
// anything: it is called again if the process dies before its answer is in the log.
//
// ctx is the context of the step that makes the call. For the call of a tool it is a tool.Context.
// After an error or a panic the run asks a person, as it does without a Reconcile.
type Reconcile func(ctx InvocationContext, call Doubt) (Reconciliation, error)

// Reconciliation is the finding of a [Reconcile]. Its zero value means unknown.
type Reconciliation struct {
	kind   string // of mark.Reconciled; "" is unknown
	result any
	why    string
}

// Happened returns the finding that the call took place, with its result. The result of a step is
// its output: a text, or a value that has JSON. The result of a tool is its answer: a map, or the
// value of the key "result".
func Happened(result any) Reconciliation {
	return Reconciliation{kind: mark.ReconciledHappened, result: result}
}

// DidNotHappen returns the finding that the call did not take place and will not. The run makes the
// call again, with the same ID.
func DidNotHappen() Reconciliation { return Reconciliation{kind: mark.ReconciledNot} }

// Unknown returns the finding that it is unknown whether the call took place, and why. The run
// asks a person, who sees the reason.
func Unknown(why string) Reconciliation { return Reconciliation{why: why} }

// Happened reports whether the call took place, and returns its result as JSON decodes it.
func (r *Reconciliation) Happened() (result any, ok bool) {
	return r.result, r.kind == mark.ReconciledHappened
}

// DidNotHappen reports whether the call did not take place.
func (r *Reconciliation) DidNotHappen() bool { return r.kind == mark.ReconciledNot }

// Why returns why it is unknown whether the call took place. It is empty if there was no
// Reconcile.
func (r *Reconciliation) Why() string { return r.why }

// Question returns the question to a person about a call that may have taken place. The argument
// describes the failure, such as "pay was cut off".
func (r *Reconciliation) Question(what string) mark.Question {
	if r.why != "" {
		what += " It could not be found out: " + r.why
	}
	return mark.InDoubt(what)
}
