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
// of the log, one at a time, and of each event that comes again: see [View.Retell]. Events are those
// of the step at an address and of all steps below it; an empty address means all. However many
// follow, an event is encoded once. Follow returns the log as it is now, as [View.Log] does, and how
// much of it came before: in a rewound view to which nothing was appended yet, the events up to the
// one that was told last, without superseded ones; else nil. end ends it.
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

// Retell tells the followers of a rewound view, and those of the view that it was made from, of an
// event of the log that is replayed, or passed over. Whoever replays a log calls it for each event
// of it, in the order of the log, and for all that are left before the first new one.
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
