// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// A loop of a resumed run is followed as its events come again: its hash is the one that reading the
// log gives, also if they come as an outline. If they come in another order than in the log, it has
// none.
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
		}, true},
	} {
		again := slices.Clone(events)
		tt.change(again)
		back := log{l.Rewind(began.Seq, nil), t}
		f := seal.FollowLoop(back.View, "p/l", "e-1")
		for _, ev := range again[1:] {
			back.Replay(ev)
			back.NotifyReplayed(ev)
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
		back.NotifyReplayed(ev)
	}
	back.check(f, "l")
	back.add("l[2]/a", "", nil)
	back.check(f, "l")
}

// The seal of a run that was resumed is the one that reading the log gives, and the log is read
// only from the event on that did not come again.
func TestFollowingARunThatComesAgain(t *testing.T) {
	const before, length = 10, 300
	for _, tt := range []struct {
		name       string
		again, new int
		read       int64 // the first event that is read for the seal; 0: none
	}{
		{"all", length, 100, 0},
		{"a part", 120, 100, before + 121},
		{"nothing", 0, 100, 1},
		{"nothing new", length, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog(t)
			for i := range before + length {
				l.add("a", "", nil).InvocationID = []string{"e-1", "e-0"}[min(1, max(0, before-i))]
			}
			first := int64(0)
			stored := slices.Collect(l.Log().All())
			v := session.NewView(session.ViewConfig{LastSeq: l.LastSeq(), Older: len(stored),
				Load: func(from, to int64) ([]*session.Event, error) {
					if first == 0 {
						first = from
					}
					return stored[from-1 : to], nil
				}})
			f := seal.FollowAgain(v, "e-1")
			defer f.End()
			add := func(to ...*session.View) *session.Event {
				ev := l.add("a", "", nil)
				for _, v := range to {
					v.Apply(ev)
				}
				return ev
			}
			resumed := add(v)
			back := v.Rewind(0, nil)
			again := append(slices.Clone(stored[before:]), resumed)[:tt.again+min(1, tt.again/length)]
			for _, ev := range again {
				back.NotifyReplayed(ev)
			}
			for range tt.new {
				add(back, v)
			}
			end := func() *session.Event {
				ev, err := session.NewRunEvent(mark.Run{ID: "e-1"}, "refrain", mark.KindRunEnded, mark.RunEnded{})
				if err != nil {
					t.Fatal(err)
				}
				ev.Seq, ev.Timestamp = v.LastSeq()+1, time.Unix(9, 0)
				return ev
			}
			got, want := end(), end()
			if err := f.Run(v.Log(), got); err != nil {
				t.Fatal(err)
			}
			if page := (tt.read + 63) / 64; (first+63)/64 != page {
				t.Errorf("the log is read from event %d on, want page %d", first, page)
			}
			if err := seal.Run(l.Log().All(), want); err != nil {
				t.Fatal(err)
			}
			if string(got.Mark.Data) != string(want.Mark.Data) {
				t.Errorf("end %s, want %s", got.Mark.Data, want.Mark.Data)
			}
		})
	}
}
