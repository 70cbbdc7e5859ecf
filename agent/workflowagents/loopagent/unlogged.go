// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"maps"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
)

// unloggedKeys has the state keys that the loop's decisions depend on and that a run's log cannot
// restore: app: and user: keys, which other sessions change, and temp: keys, which are not stored.
// Their values are recorded with each outcome, so that a resumed run makes the same decisions.
type unloggedKeys struct {
	keys []string
	all  bool // any key may be read
}

func (a *Agent) unloggedReads() *unloggedKeys {
	b := &unloggedKeys{all: a.readsAll}
	for _, k := range a.reads {
		if isUnlogged(k) {
			b.keys = append(b.keys, k)
		}
	}
	if !b.all && b.keys == nil {
		return nil
	}
	return b
}

// isUnlogged reports whether the log of a run does not tell a key.
func isUnlogged(key string) bool { return !statekey.Own(key) && !statekey.OfIteration(key) }

// valuesIn are the keys as a state has them; nil for one that it has not.
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
			if isUnlogged(k) {
				kept[k] = v
			}
		}
	}
	return kept
}

// restoredState is a state with the keys as they were recorded; nil says that nothing
// was, as in the logs of earlier versions.
func (b *unloggedKeys) restoredState(state, kept map[string]any) map[string]any {
	if b == nil || kept == nil {
		return state
	}
	state = maps.Clone(state) // others may have it, too
	if b.all {
		maps.DeleteFunc(state, func(k string, _ any) bool { return isUnlogged(k) })
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
