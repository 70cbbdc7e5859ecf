// SPDX-License-Identifier: Apache-2.0

package mark

import "encoding/json"

// Reconciled is the data of [KindReconciled].
type Reconciled struct {
	// Call is the ID of a function call; empty if the step itself is the call.
	Call string `json:"call,omitempty"`
	// Outcome is [ReconciledHappened], [ReconciledNot] or [ReconciledUnknown].
	Outcome string `json:"outcome"`
	// Result is the call's result, if it took place.
	Result json.RawMessage `json:"result,omitempty"`
	// Why says why the outcome is unknown.
	Why string `json:"why,omitempty"`
}

// The outcomes of a [Reconciled].
const (
	ReconciledHappened = "happened"       // the call took place, with this Result
	ReconciledNot      = "did_not_happen" // the step makes the call again
	ReconciledUnknown  = "unknown"        // the run asks a person
)
