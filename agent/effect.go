// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
)

// Effect is what a step or a tool does to the outside world. It decides what a resumed run does
// about a call that was cut off. A call that has finished is never repeated, whatever its
// effect.
type Effect string

// The effects. A call that has finished is never repeated.
const (
	// A Pure call changes nothing. A resumed run repeats the call.
	Pure Effect = "pure"
	// An Idempotent call takes place once for each call ID, or does no harm if it takes place twice. A
	// resumed run repeats the call with the same ID. This is the default.
	Idempotent Effect = "idempotent"
	// An AtMostOnce call must not take place twice. The log records the intent before the call. If the
	// call was cut off, the resumed run waits for a person to say whether it took place, or fails if
	// it cannot wait.
	AtMostOnce Effect = "at_most_once"
	// A Transactional call only writes into the log, and the log counts it only if the step finishes.
	// A resumed run repeats the call.
	Transactional Effect = "transactional"
)

// Check returns an error if e is not one of the effects. An empty e means [Idempotent].
func (e Effect) Check() error {
	switch e {
	case "", Pure, Idempotent, AtMostOnce, Transactional:
		return nil
	}
	return fmt.Errorf("effect %q: use %s, %s, %s or %s", string(e), Pure, Idempotent, AtMostOnce, Transactional)
}
