// SPDX-License-Identifier: Apache-2.0

package statekey

import (
	"iter"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Leftovers are those of some state keys whose values an agent has left there in an
// earlier run, or the step at an address in an earlier pass of the same run: it ran
// there before, in another iteration of a loop around it. Values that a user or the
// program has given are none, nor are those of app: and user: keys, which are shared
// on purpose.
//
// It reads the events, the newest first, back to that with the number after, and no
// further than it has to. rest are the keys that none of them has written.
func Leftovers(newest iter.Seq[*session.Event], keys []string, at session.Address, invocation string, after int64) (left, given, rest []string) {
	pending := make(map[string]bool, len(keys))
	for _, k := range keys {
		if !shared(k) {
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
			} else {
				given = append(given, k)
			}
		}
	}
	for k := range pending {
		rest = append(rest, k)
	}
	return left, given, rest
}

// restores reports whether an event writes what the state was before, and nothing of
// its own.
func restores(ev *session.Event) bool {
	if ev.Actions.StateDelta[mark.KeyNoted] != nil {
		return true
	}
	return ev.Mark != nil && (ev.Mark.Kind == mark.KindRolledBack || ev.Mark.Kind == mark.KindRunResumed)
}
