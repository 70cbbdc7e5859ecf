// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"time"
)

// finalPhase is what has happened since the loop has its reason to stop. Its zero value is a loop that goes on.
type finalPhase struct {
	// Finalized says that the finalizer has run, FinalizerFailure how it failed.
	Finalized        bool   `json:"finalized,omitzero"`
	FinalizerFailure string `json:"finalizer_failure,omitzero"`
	// FinalUsage and FinalActive are the usage and the time, by a rollback and by the finalizer. The limits of the
	// iterations do not count them. The cost is the known part of it.
	FinalUsage  Usage         `json:"final_usage,omitzero"`
	FinalActive time.Duration `json:"final_active_ns,omitzero"`
}

// finalize records the outcome of the finalizer.
func (f *finalPhase) finalize(o *addedOutcome) {
	f.Finalized = true
	switch {
	case o.Canceled != "":
		f.FinalizerFailure = truncate("canceled: " + o.Canceled)
	case o.Failure != nil:
		f.FinalizerFailure = truncate(o.Failure.Message)
		f.FinalizerFailure = cmp.Or(f.FinalizerFailure, Failed)
	}
}
