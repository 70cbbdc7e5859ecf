// SPDX-License-Identifier: Apache-2.0

package mark

import "encoding/json"

// Reconciled is the data of [KindReconciled].
type Reconciled struct {
	// Call is the ID of a function call; empty for the step itself.
	Call string `json:"call,omitempty"`
	// Outcome is [ReconciledHappened], [ReconciledNot] or [ReconciledUnknown].
	Outcome string `json:"outcome"`
	// Result is what the call came to, if it took place.
	Result json.RawMessage `json:"result,omitempty"`
	// Why says why it is unknown.
	Why string `json:"why,omitempty"`
}

// What a [Reconciled] can say.
const (
	ReconciledHappened = "happened"       // it took place, and came to Result
	ReconciledNot      = "did_not_happen" // it is made again
	ReconciledUnknown  = "unknown"        // a person is asked
)
