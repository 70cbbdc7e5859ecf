// SPDX-License-Identifier: Apache-2.0

package session

import "slices"

// Follower receives the events that are added to a view: see [View.Follow]. data is the event's canonical
// JSON. If the event has none, data is nil and err has the reason. A Follower must not keep or change
// data, or use the view.
type Follower func(ev *Event, data []byte, err error)

// follower is a registered [Follower] with the address of the step whose events it receives.
type follower struct {
	under  Address // the step, with the steps below it; empty: all events
	notify Follower
}

// Follow calls told for each event that is added to the view from now on, one at a time in the order of the
// log, and for each event that is replayed: see [View.NotifyReplayed]. It reports only events of the step at an
// address and of the steps below it; an empty address means all events. Each event is encoded once for all
// followers. Follow returns the present log, as [View.Log] does. In a rewound view to which nothing was
// appended yet, before holds the events up to the last reported one, without superseded ones; otherwise
// before is nil. end unregisters the follower.
func (v *View) Follow(under Address, told Follower) (log, before Events, end func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := &follower{under, told}
	v.followers.list = append(v.followers.list, f)
	w := v.log.window
	if v.rewind != nil && v.rewind.notified != 0 {
		before = &visibleWindow{window: v.log.window, gaps: v.gaps, to: v.rewind.notified}
	}
	return &w, before, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if i := slices.Index(v.followers.list, f); i >= 0 {
			v.followers.list = slices.Delete(v.followers.list, i, i+1)
		}
		if len(v.followers.list) == 0 {
			v.followers.buffer = nil
		}
	}
}

// NotifyReplayed reports a replayed or skipped event of the log to the followers of a rewound view and of the view
// that it was rewound from. A caller that replays a log calls NotifyReplayed for each event in the order of the
// log. Before the first new event, it calls NotifyReplayed for all events that remain.
func (v *View) NotifyReplayed(ev *Event) {
	if v.needsReplay(ev) {
		ev = v.Log().Full(ev)
		v.mu.Lock()
		defer v.mu.Unlock()
		once := onceEncoded{buffer: &v.followers.buffer}
		once.notify(v.followers.list, ev)
		v.rewind.original.mu.Lock()
		defer v.rewind.original.mu.Unlock()
		once.notify(v.rewind.original.followers.list, ev)
	}
}

// needsReplay records that an event of the log is replayed or skipped, and reports whether a follower wants it.
func (v *View) needsReplay(ev *Event) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.rewind
	if p == nil {
		return false
	}
	if p.notified != 0 {
		p.notified = max(p.notified, ev.Seq)
	}
	p.original.mu.Lock()
	defer p.original.mu.Unlock()
	return anyWants(v.followers.list, ev) || anyWants(p.original.followers.list, ev)
}

// notify passes an event to the view's followers. v.mu is held.
func (v *View) notify(ev *Event) {
	once := onceEncoded{buffer: &v.followers.buffer}
	once.notify(v.followers.list, ev)
}

// onceEncoded is the canonical JSON of an event. It is encoded once, when the first follower needs it.
type onceEncoded struct {
	buffer *[]byte
	done   bool
	err    error // why the event has no canonical JSON
}

// notify passes an event to those followers that want it.
func (e *onceEncoded) notify(all []*follower, ev *Event) {
	for _, f := range all {
		if !f.wants(ev) {
			continue
		}
		if !e.done {
			*e.buffer, e.err = ev.AppendCanonical((*e.buffer)[:0])
			e.done = true
		}
		f.notify(ev, *e.buffer, e.err)
	}
}

func (f *follower) wants(ev *Event) bool { return f.under == "" || ev.Address.Under(f.under) }

func anyWants(all []*follower, ev *Event) bool {
	return slices.ContainsFunc(all, func(f *follower) bool { return f.wants(ev) })
}
