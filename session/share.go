// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"sync/atomic"
)

// How many bytes of events the views of runs under way hold in memory, as [Event.Weight] counts them;
// those before them are in the store. Each has its share, and leastWindow at least.
const (
	windowsWeight = 8 << 20
	leastWindow   = 8 << 10
)

// sharing is how many views share windowsWeight.
var sharing atomic.Int64

// Share makes the view of an active run share the memory for events with the views of all other runs, until
// end is called. The more views there are, the sooner each one drops events, which it then reads from its
// store. A runner calls it.
func (v *View) Share() (end func()) {
	sharing.Add(1)
	return func() { sharing.Add(-1) }
}

// share is what one view may hold.
func share() int {
	return max(leastWindow, windowsWeight/max(1, int(sharing.Load())))
}

// Hold applies an event, as Apply does, before the store has it. The view keeps the event in memory until
// the caller calls Stored.
func (v *View) Hold(ev *Event) {
	v.mu.Lock()
	v.unstored = cmp.Or(v.unstored, ev.Seq)
	v.mu.Unlock()
	v.Apply(ev)
}

// Stored tells the view that the store now has the events passed to Hold.
func (v *View) Stored() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unstored = 0
}

// appended takes in the weight of the log's last event, and lets the oldest ones go where the
// log has become too heavy. It keeps those from the sequence number unstored on.
func (w *window) appended(weight *int, unstored int64) {
	bound := share()
	if *weight += w.log.at(w.log.n - 1).Weight(); *weight <= bound {
		return
	}
	*weight = 0
	k := w.log.n // the first event that stays
	for ; k > 0; k-- {
		ev := w.log.at(k - 1)
		n := ev.Weight()
		if k < w.log.n && *weight+n > bound/2 && (unstored == 0 || ev.Seq < unstored) {
			break
		}
		*weight += n
	}
	if k == 0 {
		return
	}
	if w.before == 0 {
		w.first = w.log.at(0).Seq
	}
	w.before += k
	w.log.drop(k)
}
