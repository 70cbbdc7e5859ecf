// SPDX-License-Identifier: Apache-2.0

package session

import "slices"

// Follower is told of the events that are added to a view: see [View.Follow]. data is the
// event's canonical JSON, which must not be kept or changed; or err says why there is none.
// A Follower must not use the view.
type Follower func(ev *Event, data []byte, err error)

// follower is one that follows the events of a step and of those below it.
type follower struct {
	under Address // empty: all events
	told  Follower
}

// Follow tells a Follower of each event that is added to the view from now on, in the order
// of the log, one at a time; in a rewound view also of each event that [View.Replay] shows again,
// in the order in which it does. Events are those of the step at an address and of all steps below
// it; an empty address means all. However many follow, an event is encoded once. Follow returns
// the log as it is now, as [View.Log] does; end ends it.
func (v *View) Follow(under Address, told Follower) (log Events, end func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := &follower{under, told}
	v.followers = append(v.followers, f)
	w := v.events
	return &w, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if i := slices.Index(v.followers, f); i >= 0 {
			v.followers = slices.Delete(v.followers, i, i+1)
		}
		if len(v.followers) == 0 {
			v.encoding = nil
		}
	}
}

// tell tells the view's followers of an event. v.mu is held.
func (v *View) tell(ev *Event) {
	encoded := false
	var err error
	for _, f := range v.followers {
		if f.under != "" && !ev.Address.Under(f.under) {
			continue
		}
		if !encoded {
			v.encoding, err = ev.AppendCanonical(v.encoding[:0])
			encoded = true
		}
		f.told(ev, v.encoding, err)
	}
}
