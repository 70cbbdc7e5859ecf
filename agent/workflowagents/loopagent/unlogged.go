// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"maps"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
)

// unloggedKeys has the state keys that the loop's decisions depend on and that a run's log cannot
// restore. These are app: and user: keys, which other sessions change, and temp: keys, which are not stored.
// The loop records their values with each outcome, so that a resumed run makes the same decisions.
type unloggedKeys struct {
	keys []string
	all  bool // the decisions may depend on any key
}

// unloggedReads returns the unlogged keys that the loop's decisions depend on; nil if there are none.
func (a *Agent) unloggedReads() *unloggedKeys {
	b := &unloggedKeys{all: a.readsAll}
	for _, k := range a.reads {
		if isUnloggedKey(k) {
			b.keys = append(b.keys, k)
		}
	}
	if !b.all && b.keys == nil {
		return nil
	}
	return b
}

// isUnloggedKey reports whether the value of a key cannot be restored from the log of a run.
func isUnloggedKey(key string) bool { return !statekey.Own(key) && !statekey.OfIteration(key) }

// valuesIn returns the keys with their values in a state. The value of a key that is not in the state is nil.
func (b *unloggedKeys) valuesIn(state map[string]any) map[string]any {
	if b == nil || state == nil {
		return nil
	}
	kept := make(map[string]any, len(b.keys))
	for _, k := range b.keys {
		kept[k] = state[k]
	}
	if b.all {
		for k, v := range state {
			if isUnloggedKey(k) {
				kept[k] = v
			}
		}
	}
	return kept
}

// restoredState returns a state with the recorded values (kept) of the keys. kept is nil if no values were
// recorded, as in the logs of earlier versions; then the state does not change.
func (b *unloggedKeys) restoredState(state, kept map[string]any) map[string]any {
	if b == nil || kept == nil {
		return state
	}
	state = maps.Clone(state) // a copy, because the map may be shared
	if b.all {
		maps.DeleteFunc(state, func(k string, _ any) bool { return isUnloggedKey(k) })
	}
	for k, v := range kept {
		if v == nil {
			delete(state, k)
		} else {
			state[k] = v
		}
	}
	return state
}
