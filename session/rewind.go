// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// notes are what a view knows by the keys of the log's own.
type notes struct {
	noted      bool
	run        string // mark.KeyRun
	superseded mark.Spans
	gaps       gaps
}

// adopt moves the log's own keys out of the state that a store has read.
func (v *View) adopt() {
	for _, key := range [...]string{mark.KeyNoted, mark.KeySuperseded, mark.KeyRun} {
		if val, ok := v.state[key]; ok {
			delete(v.state, key)
			v.note(key, val)
		}
	}
}

// note takes in one of the log's own keys.
func (v *View) note(key string, val any) {
	switch text, _ := val.(string); key {
	case mark.KeyNoted:
		v.noted = true
	case mark.KeyRun:
		v.run = text
	case mark.KeySuperseded:
		var s mark.Spans
		if s.UnmarshalText([]byte(text)) != nil {
			return // somebody else's: to show too much is the lesser evil
		}
		v.superseded, v.gaps = s, newGaps(s)
		if !v.events.whole() { // somebody else's session, which has left some out
			v.leaveOut()
		}
	}
}

// leaveOut makes the log anew, without what is superseded.
func (v *View) leaveOut() {
	var log eventLog
	for ev := range v.events.All() {
		if !v.superseded.Has(ev.Seq) {
			log.append(ev)
		}
	}
	v.events, v.gaps, v.shared = window{log: log}, nil, false
}

// Superseded returns the sequence numbers of the events that Events leaves out.
func (v *View) Superseded() mark.Spans {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.superseded
}

// Noted reports whether the session's state can be read from the log alone; see
// [mark.KeyNoted].
func (v *View) Noted() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.noted
}

// Log returns all events, including superseded ones and those that a rewound view does not show yet.
func (v *View) Log() Events {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.events
	return &w
}

// past is what a rewound view knows of the keys that events have written.
type past struct {
	of     *View // that was rewound
	to     int64 // the last event that is shown; 0: all are, -1: none
	told   int64 // the last event that its followers know; 0: all are known, -1: none
	writes map[scopedKey]written
}

type scopedKey struct {
	owner Address
	key   string
}

type written struct {
	seq   int64
	value any
}

// Rewind returns a second view of the session, as it was after the event with the sequence number to. The
// caller passes the state of that time and must not use the map again; app: and user: keys, which other
// sessions share, keep their present values. Later events stay in the view's log, and appending continues
// after them; [View.Replay] shows them again. temp: keys are lost.
func (v *View) Rewind(to int64, state map[string]any) *View {
	v.mu.Lock()
	defer v.mu.Unlock()
	if state == nil {
		state = make(map[string]any)
	}
	for k, val := range v.state {
		if shared(k) {
			state[k] = val
		}
	}
	back := &View{
		appName: v.appName, userID: v.userID, id: v.id, events: v.events, shared: true, notes: v.notes, held: v.held,
		state: state, updated: v.updated, past: &past{of: v, to: to, writes: make(map[scopedKey]written)},
	}
	if to < 1 {
		back.past.to = -1
	}
	back.past.told = back.past.to
	back.seq.Store(v.seq.Load())
	return back
}

// Replay applies an event of a rewound view's log again. Events of parallel branches may come in another
// order than before: if several wrote a key, the one with the highest Seq counts. Replay does nothing in a
// view that was not rewound. It does not call followers; [View.Retell] does, in the order of the log.
func (v *View) Replay(ev *Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.past
	if p == nil {
		return
	}
	if p.to != 0 && ev.Seq > p.to {
		p.to = ev.Seq
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRunResumed {
		return // it undoes what is not replayed
	}
	for k, val := range ev.Actions.StateDelta {
		if shared(k) || strings.HasPrefix(k, mark.KeyPrefix) {
			continue
		}
		v.set(k, p.last(k, val, ev), ev.Address)
	}
}

// last is the value that a key has after an event wrote it, be it the event's or
// that of a later one which was here before.
func (p *past) last(key string, val any, ev *Event) any {
	sk := scopedKey{key: key}
	if strings.HasPrefix(key, KeyPrefixIteration) {
		sk.owner = ev.Address.loop()
	}
	if w, ok := p.writes[sk]; ok && w.seq > ev.Seq {
		return w.value
	}
	p.writes[sk] = written{ev.Seq, val}
	return val
}

// appended notes an event that was appended while others may still be replayed.
func (p *past) appended(ev *Event) {
	p.to, p.told = 0, 0
	for k, val := range ev.Actions.StateDelta {
		p.last(k, val, ev)
	}
}

// shared reports whether other sessions have the key too.
func shared(key string) bool {
	return strings.HasPrefix(key, KeyPrefixApp) || strings.HasPrefix(key, KeyPrefixUser)
}
