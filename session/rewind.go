// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// logKeys is what a view has read from the log's own keys. These are state keys with the prefix [mark.KeyPrefix] that
// the state does not show.
type logKeys struct {
	complete   bool         // mark.KeyNoted is set
	run        string       // mark.KeyRun
	superseded mark.Spans   // mark.KeySuperseded
	gaps       hiddenRanges // the same as superseded; nil if the log itself omits these events
}

// adoptLogKeys moves the log's own keys from the state, as a store has read it, to v.logKeys.
func (v *View) adoptLogKeys() {
	for _, key := range [...]string{mark.KeyNoted, mark.KeySuperseded, mark.KeyRun} {
		if val, ok := v.state.values[key]; ok {
			delete(v.state.values, key)
			v.setLogKey(key, val)
		}
	}
}

// setLogKey sets one of the log's own keys.
func (v *View) setLogKey(key string, val any) {
	switch text, _ := val.(string); key {
	case mark.KeyNoted:
		v.complete = true
	case mark.KeyRun:
		v.run = text
	case mark.KeySuperseded:
		var s mark.Spans
		if s.UnmarshalText([]byte(text)) != nil {
			return // another program wrote the key; to show superseded events is better than to hide others
		}
		v.superseded, v.gaps = s, newHiddenRanges(s)
		if !v.log.window.isContiguous() { // a store outside this project has left out events
			v.hideSuperseded()
		}
	}
}

// hideSuperseded replaces the log of the view by a copy without superseded events.
func (v *View) hideSuperseded() {
	var log eventLog
	for ev := range v.log.window.All() {
		if !v.superseded.Has(ev.Seq) {
			log.append(ev)
		}
	}
	v.log.window, v.gaps, v.log.isSnapshot = window{log: log}, nil, false
}

// HasStateInLog reports whether the session's state can be read from the log alone; see
// [mark.KeyNoted].
func (v *View) HasStateInLog() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.complete
}

// rewindState is the progress of the replay in a rewound view.
type rewindState struct {
	visible int64                  // the Seq of the last event that is shown; 0: all are shown, -1: none
	writes  map[scopedKey]keyWrite // for each key, the write with the highest Seq so far
}

// scopedKey is a state key. For an iteration: key, owner is the loop iteration that it lives in.
type scopedKey struct {
	owner Address
	key   string
}

type keyWrite struct {
	seq   int64
	value any
}

// Rewound is a view of a session as it was at an earlier time, and the replay of the later events in it. It is for runners.
type Rewound struct{ *View }

// Rewind returns a second view of the session, as it was after the event with the sequence number to. The
// caller passes the state of that time and must not use the map again; app: and user: keys, which other
// sessions share, keep their present values. Later events stay in the view's log, and appending continues
// after them; [Rewound.Replay] shows them again. temp: keys are lost.
func (v *View) Rewind(to int64, state map[string]any) Rewound {
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
		logKeys: v.logKeys, logOnly: v.logOnly, state: viewState{values: state}, updated: v.updated, chain: v.sharedChain(),
		rewind: &rewindState{visible: to, writes: make(map[scopedKey]keyWrite)},
	}
	if to < 1 {
		back.rewind.visible = -1
	}
	back.seq.Store(v.seq.Load())
	return Rewound{back}
}

// Replay applies an event of the view's log again. Events of parallel branches may come in another
// order than before. If several events wrote a key, the one with the highest Seq counts.
func (r Rewound) Replay(ev *Event) {
	v := r.View
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.rewind
	if p.visible != 0 && ev.Seq > p.visible {
		p.visible = ev.Seq
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRunResumed {
		return // its delta resets what superseded events wrote, and those are not replayed
	}
	for k, val := range ev.Actions.StateDelta {
		if isShared(k) || strings.HasPrefix(k, mark.KeyPrefix) {
			continue
		}
		v.setValue(k, p.latestValue(k, val, ev), ev.Address)
	}
}

// latestValue returns the value of a key after ev wrote it. That is val, or the value of an event with a higher Seq
// that was replayed before.
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

// afterAppend records the writes of a new event, because older events may still be replayed after it.
func (p *rewindState) afterAppend(ev *Event) {
	p.visible = 0
	for k, val := range ev.Actions.StateDelta {
		p.latestValue(k, val, ev)
	}
}

// isShared reports whether sessions share the key: it begins with app: or user:.
func isShared(key string) bool {
	return strings.HasPrefix(key, KeyPrefixApp) || strings.HasPrefix(key, KeyPrefixUser)
}
