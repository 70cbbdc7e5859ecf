// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"strings"
)

// Kept is the event as stores keep it: without temp: keys, which end with the
// invocation. It is the event itself if it has none, and else a copy.
func Kept(ev *Event) *Event {
	for key := range ev.Actions.StateDelta {
		if !temporary(key, nil) {
			continue
		}
		kept := *ev
		kept.Actions.StateDelta = maps.Clone(ev.Actions.StateDelta)
		maps.DeleteFunc(kept.Actions.StateDelta, temporary)
		return &kept
	}
	return ev
}

func temporary(key string, _ any) bool { return strings.HasPrefix(key, KeyPrefixTemp) }
