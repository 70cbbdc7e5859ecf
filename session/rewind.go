// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// logKeys are what a view knows by the keys of the log's own.
type logKeys struct {
	complete   bool
	run        string // mark.KeyRun
	superseded mark.Spans
	gaps       hiddenRanges
}

// adoptLogKeys moves the log's own keys out of the state that a store has read.
func (v *View) adoptLogKeys() {
	for _, key := range [...]string{mark.KeyNoted, mark.KeySuperseded, mark.KeyRun} {
		if val, ok := v.state.values[key]; ok {
			delete(v.state.values, key)
			v.setLogKey(key, val)
		}
	}
}

// setLogKey takes in one of the log's own keys.
func (v *View) setLogKey(key string, val any) {
	switch text, _ := val.(string); key {
	case mark.KeyNoted:
		v.complete = true
	case mark.KeyRun:
		v.run = text
	case mark.KeySuperseded:
		var s mark.Spans
		if s.UnmarshalText([]byte(text)) != nil {
			return // somebody else's: to show too much is the lesser evil
		}
		v.superseded, v.gaps = s, newHiddenRanges(s)
		if !v.log.window.isContiguous() { // somebody else's session, which has left some out
			v.hideSuperseded()
		}
	}
}

// hideSuperseded makes the log anew, without what is superseded.
func (v *View) hideSuperseded() {
	var log eventLog
	for ev := range v.log.window.All() {
		if !v.superseded.Has(ev.Seq) {
			log.append(ev)
		}
	}
	v.log.window, v.gaps, v.log.isSnapshot = window{log: log}, nil, false
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
	return v.complete
}

// Log returns all events, including superseded ones and those that a rewound view does not show yet.
func (v *View) Log() Events {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.log.window
	return &w
}

// rewindState is what a rewound view knows of the keys that events have written.
type rewindState struct {
	original *View // that was rewound
	visible  int64 // the last event that is shown; 0: all are, -1: none
	notified int64 // the last event that its followers know; 0: all are known, -1: none
	writes   map[scopedKey]keyWrite
}

type scopedKey struct {
	owner Address
	key   string
}

type keyWrite struct {
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
	for k, val := range v.state.values {
		if isShared(k) {
			state[k] = val
		}
	}
	back := &View{
		appName: v.appName, userID: v.userID, id: v.id, log: viewLog{window: v.log.window, isSnapshot: true},
		logKeys: v.logKeys, logOnly: v.logOnly, state: viewState{values: state}, updated: v.updated,
		rewind: &rewindState{original: v, visible: to, writes: make(map[scopedKey]keyWrite)},
	}
	if to < 1 {
		back.rewind.visible = -1
	}
	back.rewind.notified = back.rewind.visible
	back.seq.Store(v.seq.Load())
	return back
}

// Replay applies an event of a rewound view's log again. Events of parallel branches may come in another
// order than before: if several wrote a key, the one with the highest Seq counts. Replay does nothing in a
// view that was not rewound. It does not call followers; [View.NotifyReplayed] does, in the order of the log.
func (v *View) Replay(ev *Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.rewind
	if p == nil {
		return
	}
	if p.visible != 0 && ev.Seq > p.visible {
		p.visible = ev.Seq
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRunResumed {
		return // it undoes what is not replayed
	}
	for k, val := range ev.Actions.StateDelta {
		if isShared(k) || strings.HasPrefix(k, mark.KeyPrefix) {
			continue
		}
		v.setValue(k, p.latestValue(k, val, ev), ev.Address)
	}
}

// latestValue is the value that a key has after an event wrote it, be it the event's or
// that of a later one which was here before.
func (p *rewindState) latestValue(key string, val any, ev *Event) any {
	sk := scopedKey{key: key}
	if strings.HasPrefix(key, KeyPrefixIteration) {
		sk.owner = ev.Address.loop()
	}
	if w, ok := p.writes[sk]; ok && w.seq > ev.Seq {
		return w.value
	}
	p.writes[sk] = keyWrite{ev.Seq, val}
	return val
}

// afterAppend notes an event that was appended while others may still be replayed.
func (p *rewindState) afterAppend(ev *Event) {
	p.visible, p.notified = 0, 0
	for k, val := range ev.Actions.StateDelta {
		p.latestValue(k, val, ev)
	}
}

// isShared reports whether other sessions have the key too.
func isShared(key string) bool {
	return strings.HasPrefix(key, KeyPrefixApp) || strings.HasPrefix(key, KeyPrefixUser)
}
