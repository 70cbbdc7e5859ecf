// SPDX-License-Identifier: Apache-2.0

package statekey

import (
	"iter"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Leftovers finds the state keys, among those given, that have an old value. A value is old if
// an agent wrote it in an earlier run, or if the step at this address wrote it in an earlier
// iteration of a loop around it. left lists these keys, and rest the keys that no event has
// written. app: and user: keys are in neither, because sessions share them on purpose.
//
// Leftovers reads the events, newest first, as far as it needs, and stops at the event
// with the sequence number after.
func Leftovers(newest iter.Seq[*session.Event], keys []string, at session.Address, invocation string,
	after int64) (left, rest []string) {
	pending := make(map[string]bool, len(keys))
	for _, k := range keys {
		if !Shared(k) {
			pending[k] = true
		}
	}
	place := at.Place()
	for ev := range newest {
		if len(pending) == 0 || ev.Seq != 0 && ev.Seq <= after {
			break
		}
		if len(ev.Actions.StateDelta) == 0 || restores(ev) {
			continue
		}
		mine := ev.InvocationID == invocation
		if mine && ev.Address != "" && at != ev.Address && at.Under(ev.Address) {
			continue // an agent around it puts back what it was
		}
		for k := range ev.Actions.StateDelta {
			if !pending[k] {
				continue
			}
			delete(pending, k)
			byAgent := ev.Address != "" && ev.Author != "user"
			if byAgent && (!mine || ev.Address.Place().Under(place)) {
				left = append(left, k)
			}
		}
	}
	for k := range pending {
		rest = append(rest, k)
	}
	return left, rest
}

// restores reports whether an event writes what the state was before, and nothing of
// its own.
func restores(ev *session.Event) bool {
	if ev.Actions.StateDelta[mark.KeyNoted] != nil {
		return true
	}
	if ev.Mark == nil {
		return false
	}
	switch ev.Mark.Kind {
	case mark.KindRolledBack, mark.KindLegStarted, mark.KindRunResumed:
		return true
	}
	return false
}
