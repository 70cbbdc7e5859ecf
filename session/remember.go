// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"maps"
)

// Remember makes the view keep the events that Outline reads from the store, until Forget: a second
// Outline of the view, or of a view that was rewound from it, reads nothing. Whoever takes up a run
// reads its log several times. A log that is kept takes about a kilobyte of memory an event.
func (v *View) Remember() {
	if o := v.stored(); o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.remember = true
	}
}

// Forget is the end of what Remember has begun.
func (v *View) Forget() {
	if o := v.stored(); o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.remember, o.outlines = false, nil
	}
}

// stored are the view's events that are in its store; nil if none are.
func (v *View) stored() *older {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.events.older
}

// Renew gives the view the state that sessions share, app: and user: keys, as a later view of the
// session has it. It returns false, and changes nothing, if one of the two has seen an event that the
// other has not: then the later one takes its place. It is for whoever keeps a view over a time in
// which others may have written.
func (v *View) Renew(later *View) bool {
	if v == later {
		return true
	}
	later.mu.Lock()
	same := later.appName == v.appName && later.userID == v.userID && later.id == v.id
	state, run := maps.Clone(later.state), later.run
	later.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !same || v.seq.Load() != later.seq.Load() || v.run != run {
		return false
	}
	own := func(k string, _ any) bool { return !shared(k) }
	maps.DeleteFunc(state, own)
	if v.state == nil {
		v.state = make(map[string]any)
	}
	maps.DeleteFunc(v.state, func(k string, _ any) bool { return shared(k) })
	maps.Copy(v.state, state)
	return true
}

// outlined yields the outlines of events that are in the store, from first to last: those that are
// remembered, and page by page the others.
func (o *older) outlined(first, last int64) iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for seq := first; seq <= last; {
			page := o.outlinePage(first, seq, last)
			if page == nil {
				page = []*Event{o.unread(seq)}
			}
			for _, ev := range page {
				if seq++; !yield(ev) {
					return
				}
			}
		}
	}
}

// outlinePage are the next outlines from seq on, of those from first to last; nil if they cannot be
// read.
func (o *older) outlinePage(first, seq, last int64) []*Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.outlines) > 0 {
		if from := o.outlines[0].Seq; seq >= from && seq < from+int64(len(o.outlines)) {
			known := o.outlines[seq-from:]
			return known[:min(int64(len(known)), last-seq+1)]
		}
	}
	evs := readEvents(o.outline, seq, min(seq+outlineSize-1, last), &o.err)
	if o.remember && evs != nil {
		if n := len(o.outlines); n == 0 && seq == first || n > 0 && o.outlines[n-1].Seq == seq-1 {
			o.outlines = append(o.outlines, evs...)
		}
	}
	return evs
}
