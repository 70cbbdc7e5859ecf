// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"strings"
)

// Kept returns the event as stores keep it: without temp: keys, which end with the
// invocation. If the event has no temp: keys, Kept returns e itself, else a copy.
func (e *Event) Kept() *Event {
	for key := range e.Actions.StateDelta {
		if !temporary(key, nil) {
			continue
		}
		kept := *e
		kept.Actions.StateDelta = maps.Clone(e.Actions.StateDelta)
		maps.DeleteFunc(kept.Actions.StateDelta, temporary)
		return &kept
	}
	return e
}

func temporary(key string, _ any) bool { return strings.HasPrefix(key, KeyPrefixTemp) }
