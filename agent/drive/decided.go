// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"maps"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// metadataCallback says of an event that it has what callbacks changed.
const metadataCallback = "refrain:callback"

// MetadataTemp is a key of the CustomMetadata of an event. Its value holds those temp: keys of
// the event's delta that a loop decides by: stores drop temp: keys, and a resumed run needs
// these.
const MetadataTemp = "refrain:temp"

// Decided is for an agent that has called callbacks. ev has what they changed, or is nil if
// they changed nothing. In a resumed run, where callbacks are called again, it returns the
// recorded event instead: their first changes count. Only temp: keys, which the log does not
// have, are taken from ev.
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
		ev.CustomMetadata = with(ev.CustomMetadata, metadataCallback, true)
	}
	return ev
}

// with is a copy of an event's metadata, which may be somebody else's, that has a
// key more.
func with(m map[string]any, key string, value any) map[string]any {
	if m = maps.Clone(m); m == nil {
		m = make(map[string]any, 1)
	}
	m[key] = value
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
