// SPDX-License-Identifier: Apache-2.0

package session

import "slices"

// Follower receives the events that are added to a view: see [View.Follow]. data is the event's canonical
// JSON. If the event has none, data is nil and err has the reason. A Follower must not keep or change
// data, or use the view.
type Follower func(ev *Event, data []byte, err error)

// follower is one that follows the events of a step and of those below it.
type follower struct {
	under Address // empty: all events
	told  Follower
}

// Follow calls told for each event that is added to the view from now on, one at a time in the order of the
// log, and for each event that is replayed: see [View.Retell]. It reports only events of the step at an
// address and of the steps below it; an empty address means all events. Each event is encoded once for all
// followers. Follow returns the present log, as [View.Log] does. In a rewound view to which nothing was
// appended yet, before holds the events up to the last reported one, without superseded ones; otherwise
// before is nil. end stops the following.
func (v *View) Follow(under Address, told Follower) (log, before Events, end func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := &follower{under, told}
	v.followers = append(v.followers, f)
	w := v.events
	if v.past != nil && v.past.told != 0 {
		before = &shown{window: v.events, gaps: v.gaps, to: v.past.told}
	}
	return &w, before, func() {
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

// Retell reports a replayed or skipped event of the log to the followers of a rewound view and of the view
// that it was rewound from. A caller that replays a log calls Retell for each event in the order of the
// log, and before the first new event for all that remain.
func (v *View) Retell(ev *Event) {
	if v.comes(ev) {
		ev = v.Whole(ev)
		v.mu.Lock()
		defer v.mu.Unlock()
		once := encoding{into: &v.encoding}
		once.tell(v.followers, ev)
		v.past.of.mu.Lock()
		defer v.past.of.mu.Unlock()
		once.tell(v.past.of.followers, ev)
	}
}

// comes notes that an event of the log comes again, and reports whether anybody wants to know.
func (v *View) comes(ev *Event) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.past
	if p == nil {
		return false
	}
	if p.told != 0 {
		p.told = max(p.told, ev.Seq)
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return wanted(v.followers, ev) || wanted(p.of.followers, ev)
}

// tell tells the view's followers of an event. v.mu is held.
func (v *View) tell(ev *Event) {
	once := encoding{into: &v.encoding}
	once.tell(v.followers, ev)
}

// encoding is the canonical JSON of an event, made when somebody wants it.
type encoding struct {
	into *[]byte
	made bool
	err  error
}

func (e *encoding) tell(all []*follower, ev *Event) {
	for _, f := range all {
		if !f.wants(ev) {
			continue
		}
		if !e.made {
			*e.into, e.err = ev.AppendCanonical((*e.into)[:0])
			e.made = true
		}
		f.told(ev, *e.into, e.err)
	}
}

func (f *follower) wants(ev *Event) bool { return f.under == "" || ev.Address.Under(f.under) }

func wanted(all []*follower, ev *Event) bool {
	return slices.ContainsFunc(all, func(f *follower) bool { return f.wants(ev) })
}
