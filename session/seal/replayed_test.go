// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/seal"
)

// A loop of a resumed run is followed as its events come again: its hash is the one that reading the
// log gives. If they come in another order than in the log, or are not whole, it has none.
func TestFollowingALoopThatComesAgain(t *testing.T) {
	l := newLog(t)
	began := l.add("p/l", mark.KindStepStarted, nil)
	for i := range 100 {
		l.add("p/l[1]/a", "", nil)
		if i%3 == 0 {
			l.add("p/beside", "", nil)
		}
	}
	events := slices.Collect(l.Events().All())
	for _, tt := range []struct {
		name   string
		change func([]*session.Event)
		ok     bool
	}{
		{"in order", func([]*session.Event) {}, true},
		{"another branch earlier", func(evs []*session.Event) { // event 2 is the loop's, 3 the branch's
			evs[1], evs[2] = evs[2], evs[1]
		}, true},
		{"the loop's own out of order", func(evs []*session.Event) { evs[3], evs[4] = evs[4], evs[3] }, false},
		{"an outline", func(evs []*session.Event) {
			short := *evs[3]
			short.Omitted = 1000
			evs[3] = &short
		}, false},
	} {
		again := slices.Clone(events)
		tt.change(again)
		back := log{l.Rewind(began.Seq, nil), t}
		f := seal.FollowLoop(back.View, "p/l", "e-1")
		for _, ev := range again[1:] {
			back.Replay(ev)
		}
		if !tt.ok {
			if d, err := f.Hash(); d != nil || err != nil {
				t.Errorf("%s: hash %v, %v", tt.name, d, err)
			}
			f.End()
			continue
		}
		back.check(f, "p/l")
		back.add("p/l[2]/a", "", nil) // it goes on
		back.check(f, "p/l")
		f.End()
	}
}

// Of a short log all is known when the loop begins again: what is replayed is not counted twice.
func TestFollowingAShortLoopThatComesAgain(t *testing.T) {
	l := newLog(t)
	began := l.add("l", mark.KindStepStarted, nil)
	l.add("l[1]/a", "", nil)
	l.add("l[1]/b", "", nil)
	back := log{l.Rewind(began.Seq, nil), t}
	f := seal.FollowLoop(back.View, "l", "e-1")
	defer f.End()
	for ev := range l.Events().All() {
		back.Replay(ev)
	}
	back.check(f, "l")
	back.add("l[2]/a", "", nil)
	back.check(f, "l")
}
