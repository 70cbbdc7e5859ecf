// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"maps"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// metadataCallback says of an event that it has what callbacks changed.
const metadataCallback = "refrain:callback"

// MetadataTemp is the key of an event's CustomMetadata that holds those temp: keys of
// its delta that a loop decides by. Stores keep no temp: keys, and a resumed run
// needs these.
const MetadataTemp = "refrain:temp"

// Decided is for an agent that has called callbacks at its own address. It returns
// the event with what they changed, or nil if they changed nothing: ev itself, and
// in a resumed run what the log has. Callbacks are called again there, and may find
// other app: and user: keys than they did; of what they say then only temp: keys
// count, which the log has not.
func (p Place) Decided(ev *session.Event) *session.Event {
	inv := p.inv
	if inv == nil || !inv.run.Marks {
		return ev
	}
	if inv.record != nil {
		next := inv.run.Replay.unread(inv.record)
		switch {
		case next == nil: // it goes on from here
		case next.Mark != nil || next.Address != inv.address:
			inv.keepTemp(ev)
			return nil
		case next.CustomMetadata[metadataCallback] == true:
			inv.keepTemp(ev)
			return next
		}
	}
	if ev != nil {
		ev.CustomMetadata = with(ev.CustomMetadata, metadataCallback)
	}
	return ev
}

// with is a copy of an event's metadata, which may be somebody else's, that has a
// key more.
func with(m map[string]any, key string) map[string]any {
	if m = maps.Clone(m); m == nil {
		m = make(map[string]any, 1)
	}
	m[key] = true
	return m
}

// keepTemp sets what no log has: keys that end with the invocation.
func (i *invocation) keepTemp(ev *session.Event) {
	if ev == nil {
		return
	}
	for k, v := range ev.Actions.StateDelta {
		if strings.HasPrefix(k, session.KeyPrefixTemp) {
			_ = i.Session().State().Set(k, v)
		}
	}
}
