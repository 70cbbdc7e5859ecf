// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"sync/atomic"
)

// windowsWeight is how many bytes of events the views of all active runs together keep in memory, as
// [Event.Weight] counts them. Older events are only in the store. Each view may keep an equal share, and at least
// minWindow bytes.
const (
	windowsWeight = 8 << 20
	minWindow     = 8 << 10
)

// windowCount is how many views share windowsWeight.
var windowCount atomic.Int64

// Share makes the view of an active run share the memory for events with the views of all other runs, until
// end is called. The more views there are, the sooner each one drops events, which it then reads from its
// store.
func (Pending) Share() (end func()) {
	windowCount.Add(1)
	return func() { windowCount.Add(-1) }
}

// windowShare returns how many bytes of events one view may keep in memory.
func windowShare() int {
	return max(minWindow, windowsWeight/max(1, int(windowCount.Load())))
}

// Pending holds the events of an active run that the run's view shows and its store does not have yet. It is for runners.
type Pending struct{ view *View }

// Pending returns the events of the view that its store does not have yet.
func (v *View) Pending() Pending { return Pending{v} }

// Apply applies an event, as [View.Apply] does, before the store has it. The view keeps the event in memory until
// the caller calls Commit.
func (p Pending) Apply(ev *Event) {
	p.view.mu.Lock()
	p.view.log.pendingFrom = cmp.Or(p.view.log.pendingFrom, ev.Seq)
	p.view.mu.Unlock()
	p.view.Apply(ev)
}

// Commit tells the view that the store now has the events passed to Apply.
func (p Pending) Commit() {
	p.view.mu.Lock()
	defer p.view.mu.Unlock()
	p.view.log.pendingFrom = 0
}

// addWeight adds the weight of the log's last event. If the log has become too heavy, it drops the oldest events from
// memory, but none that the store does not have yet.
func (l *viewLog) addWeight() {
	w, bound := &l.window, windowShare()
	if l.weight += w.log.at(w.log.n - 1).Weight(); l.weight <= bound {
		return
	}
	l.weight = 0
	k := w.log.n // the first event that stays
	for ; k > 0; k-- {
		ev := w.log.at(k - 1)
		n := ev.Weight()
		if k < w.log.n && l.weight+n > bound/2 && (l.pendingFrom == 0 || ev.Seq < l.pendingFrom) {
			break
		}
		l.weight += n
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
