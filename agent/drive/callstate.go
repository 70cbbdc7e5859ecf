// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"maps"

	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/session"
)

// KeyPrefixConversation begins the state keys in which steps keep the conversation that they go on with. It is part of the
// state, but no output: two outputs are the same if only these keys differ. A definition cannot write them.
const KeyPrefixConversation = "conversation:"

// MetadataUsage is a key of the CustomMetadata of an event: what a coding agent has used, as a [budget.Usage]. Such an event
// may set a report of the call.
const MetadataUsage = "refrain:usage"

// Report returns a value that an event with MetadataUsage sets, without what a report says of the call and no two calls have in
// common. Two outputs are the same if only that differs.
func Report(v any) any {
	fields, ok := v.(map[string]any)
	if _, report := fields["outcome"]; !ok || !report {
		return v
	}
	fields = maps.Clone(fields)
	for _, of := range []string{"session", "continued", "turns", "input_tokens", "output_tokens", "cost", "stderr"} {
		delete(fields, of)
	}
	return fields
}

// State returns the session's state as the step sees it, with the iteration: keys of its own
// loops. In a callback or a tool call it includes what that call has set.
func (p Place) State() session.State {
	return driver.StateAt(p.ctx.Session(), p.Address())
}

// valueAt is what stateAt has for a key; it makes no state for that.
func valueAt(s session.Session, at session.Address, key string) (any, error) {
	switch s := s.(type) {
	case driver.Call:
		if val, changed, err := s.Changed(key); changed {
			return val, err
		}
		return valueAt(s.Unwrap(), at, key)
	case fencedSession:
		return valueAt(s.Session, at, key)
	}
	return driver.StateAt(s, at).Get(key)
}

// StateAt returns the session's state as a step at another address sees it.
func (p Place) StateAt(at session.Address) session.State { return driver.StateAt(p.ctx.Session(), at) }

// StateMap returns the given keys that StateAt has, or if all is true every key. The map may be
// shared, so do not change it.
func (p Place) StateMap(at session.Address, keys []string, all bool) map[string]any {
	s := p.StateAt(at)
	if all {
		return stateMap(s)
	}
	m := make(map[string]any, len(keys))
	for _, k := range keys {
		if v, err := s.Get(k); err == nil {
			m[k] = v
		}
	}
	return m
}

// StateSize returns the [session.StateSize] of StateAt.
func (p Place) StateSize(at session.Address) int64 { return stateSize(p.StateAt(at)) }

// measured is a state that caches its map and its size, as that of a [session.View] does.
type measured interface {
	Map() map[string]any
	Size() int64
}

func stateMap(s session.State) map[string]any {
	if m, ok := s.(measured); ok {
		return m.Map()
	}
	return maps.Collect(s.All())
}

func stateSize(s session.State) int64 {
	if m, ok := s.(measured); ok {
		return m.Size()
	}
	return session.StateSize(maps.Collect(s.All()))
}

// EndIteration removes the iteration: keys of the iterations at and below an address. It is for
// loops.
func (p Place) EndIteration(pass session.Address) { driver.EndIteration(p.ctx.Session(), pass) }
