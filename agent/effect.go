// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
)

// Effect says what a step or a tool does to the world outside, and with it what a
// resumed run does about a call that was cut off.
type Effect string

// The effects. A call that came to its end is never made again, whatever it does.
const (
	// Pure: nothing, or nothing that anybody minds. It is made again.
	Pure Effect = "pure"
	// Idempotent: something that happens once for one call ID (drive.Place.CallID), or
	// that may happen twice. It is made again, with the same ID. The default.
	Idempotent Effect = "idempotent"
	// AtMostOnce: something that must not happen twice. The intent is in the log
	// before it happens. After a crash nobody knows whether it has: the run
	// waits for a person to say so, or fails where it cannot wait.
	AtMostOnce Effect = "at_most_once"
	// Transactional: it only writes what the log keeps, which counts if the step
	// came to its end. It is made again.
	Transactional Effect = "transactional"
)

// Check refuses what is none of the effects. Empty is the default.
func (e Effect) Check() error {
	switch e {
	case "", Pure, Idempotent, AtMostOnce, Transactional:
		return nil
	}
	return fmt.Errorf("effect %q: it is %s, %s, %s or %s", string(e), Pure, Idempotent, AtMostOnce, Transactional)
}
