// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"strings"
)

// delta is the state delta of an event. To find the first key of a map takes longer than what is
// done with it, and most deltas have one key: it is looked up once for all who ask.
type delta struct {
	all   map[string]any
	one   bool // there is one key, with this value
	key   string
	value any
}

// read makes d the delta m.
func (d *delta) read(m map[string]any) {
	d.all, d.one = m, len(m) == 1
	if d.one {
		for d.key, d.value = range m {
			break // to look for another one takes as long again
		}
	}
}

// normalize makes the delta of an event plain, as [EventActions.Normalize] does, and d that delta.
func (d *delta) normalize(ev *Event) error {
	if d.read(ev.Actions.StateDelta); len(d.all) == 0 || d.one && isPlain(d.value, 0) && isKey(d.key) {
		return nil
	}
	if err := ev.Actions.Normalize(); err != nil {
		return err
	}
	d.read(ev.Actions.StateDelta)
	return nil
}

// weight is [weightOfValue] of the delta.
func (d *delta) weight() int {
	if d.one {
		return leastWeight + len(d.key) + weightOfValue(d.value)
	}
	return weightOfValue(d.all)
}

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
