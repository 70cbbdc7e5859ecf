// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// log is a view with what was added to it.
type log struct {
	*session.View
	t *testing.T
}

func newLog(t *testing.T) log { return log{session.NewView(session.ViewConfig{}), t} }

// add adds an event of a step in the run e-1; kind is that of its mark, empty for words.
func (l log) add(at session.Address, kind mark.Kind, data any) *session.Event {
	l.t.Helper()
	ev := digested(fmt.Sprint("event ", l.LastSeq()+1))
	ev.Seq, ev.InvocationID, ev.Address = l.LastSeq()+1, "e-1", at
	if kind != "" {
		m, err := mark.New(kind, data)
		if err != nil {
			l.t.Fatal(err)
		}
		ev.Mark = m
		ev.Content = nil
	}
	l.Apply(ev)
	return ev
}

// sealed is the seal that a stop record gets, made of a hash and by reading the log.
func (l log) sealed(at session.Address, d *seal.Hash) (got, want string) {
	l.t.Helper()
	rec := loop.StopRecord{Reason: loop.ReasonMaxIterations, Events: d.Len()}
	m, err := mark.New(mark.KindLoopStopped, rec)
	if err != nil {
		l.t.Fatal(err)
	}
	stop := &session.Event{Seq: l.LastSeq() + 1, InvocationID: "e-1", Address: at, Mark: m}
	want, n, err := seal.OfLoop(l.Events().All(), stop)
	if err != nil {
		l.t.Fatal(err)
	}
	if n != d.Len() {
		l.t.Errorf("%s: %d events, want %d", at, d.Len(), n)
	}
	if err := d.AddValue(m.Data); err != nil {
		l.t.Fatal(err)
	}
	return d.String(), want
}

func (l log) check(f *seal.Following, at session.Address) {
	l.t.Helper()
	d, err := f.Hash()
	if d == nil || err != nil {
		l.t.Fatalf("%s: hash %v, %v", at, d, err)
	}
	if got, want := l.sealed(at, d); got != want {
		l.t.Errorf("%s: seal %s, want %s", at, got, want)
	}
}

// The hash of a loop that was followed is the one that reading the log gives, also where
// loops are nested, where other branches speak in between, and for a second attempt.
func TestFollowingLoops(t *testing.T) {
	l := newLog(t)
	l.add("p", mark.KindStepStarted, nil)
	l.add("p/outer", mark.KindStepStarted, nil)
	l.add("p/beside", mark.KindStepStarted, nil) // a parallel branch
	outer := seal.FollowLoop(l.View, "p/outer", "e-1")
	l.add("p/outer", mark.KindLoopStarted, nil)
	for i := range 3 {
		at := session.Address(fmt.Sprintf("p/outer[%d]/inner", i+1))
		l.add(at, mark.KindStepStarted, nil)
		l.add("p/beside", "", nil)
		l.add(at, mark.KindLoopStarted, nil) // before anybody follows
		inner := seal.FollowLoop(l.View, at, "e-1")
		l.add(at+"[1]/critic", "", nil)
		l.add("p/outer2", "", nil)
		l.check(inner, at)
		inner.End()
		l.add(at, mark.KindStepStarted, nil) // once more
		inner = seal.FollowLoop(l.View, at, "e-1")
		other := digested("another run's")
		other.Seq, other.InvocationID, other.Address = l.LastSeq()+1, "e-2", at
		l.Apply(other)
		l.add(at+"[1]/critic", "", nil)
		l.check(inner, at)
		inner.End()
		before, _ := inner.Hash()
		l.add(at, "", nil)
		if after, _ := inner.Hash(); after.String() != before.String() {
			t.Error("the hash has changed after the end")
		}
	}
	l.check(outer, "p/outer")
}

// A loop in a run that was resumed has no hash if its beginning is far back, or if events of
// it are superseded later; then the log is to be read.
func TestFollowingLoopWithoutItsBeginning(t *testing.T) {
	l := newLog(t)
	l.add("l", mark.KindStepStarted, nil)
	for range 100 {
		l.add("l[1]/a", "", nil)
	}
	f := seal.FollowLoop(l.View, "l", "e-1")
	defer f.End()
	l.add("l[1]/a", "", nil)
	if d, err := f.Hash(); d != nil || err != nil {
		t.Errorf("hash %v, %v", d, err)
	}

	l = newLog(t)
	l.add("l", mark.KindStepStarted, nil)
	cut := l.add("l[1]/a", "", nil)
	f = seal.FollowLoop(l.View, "l", "e-1")
	l.check(f, "l")
	resumed := &session.Event{Seq: l.LastSeq() + 1, InvocationID: "e-1"}
	resumed.Actions.StateDelta = map[string]any{mark.KeySuperseded: mark.SpansOf(cut.Seq).String()}
	l.Apply(resumed)
	if d, err := f.Hash(); d != nil || err != nil {
		t.Errorf("hash %v, %v", d, err)
	}
	f.End()
	f = seal.FollowLoop(l.View, "l", "e-1") // what is superseded by now it leaves out
	l.add("l[1]/a", "", nil)
	l.check(f, "l")
}

// An event that has no JSON is in no hash, and the hash says so.
func TestFollowingAnEventWithoutJSON(t *testing.T) {
	l := newLog(t)
	l.add("l", mark.KindStepStarted, nil)
	f := seal.FollowLoop(l.View, "l", "e-1")
	ev := &session.Event{Seq: l.LastSeq() + 1, InvocationID: "e-1", Address: "l"}
	ev.CustomMetadata = map[string]any{"f": func() {}}
	l.Apply(ev)
	l.add("l", "", nil)
	if _, err := f.Hash(); err == nil || !strings.Contains(err.Error(), "event 2") {
		t.Errorf("error %v", err)
	}
}

// The seal of a run that was followed is the one that reading the log gives, also over events
// that were added to the log behind those that were followed. A run that was not followed from
// its beginning is read.
func TestFollowingRun(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		before, followed, behind int
		invocation               string
	}{
		{"all", 1, 5, 0, "e-1"}, {"some behind", 1, 5, 3, "e-1"}, {"much before", 100, 5, 2, "e-1"},
		{"behind another run", 3, 5, 2, "e-2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog(t)
			add := func(n int) {
				for range n {
					l.add("a", "", nil)
				}
			}
			add(tt.before)
			f := seal.FollowRun(l.View, tt.invocation)
			add(tt.followed)
			all := slices.Collect(l.Log().All())
			for i := range tt.behind {
				ev := digested("behind")
				ev.Seq = l.LastSeq() + int64(i) + 1
				all = append(all, ev)
			}
			whole := session.NewView(session.ViewConfig{Events: all, LastSeq: all[len(all)-1].Seq})
			end := func() *session.Event {
				ev, err := session.NewRunEvent(mark.Run{ID: "e-1"}, "refrain", mark.KindRunEnded, mark.RunEnded{Status: mark.RunCompleted})
				if err != nil {
					t.Fatal(err)
				}
				ev.Seq, ev.Timestamp = whole.LastSeq()+1, time.Unix(9, 0)
				return ev
			}
			want, got := end(), end()
			if err := seal.Run(whole.Log().All(), want); err != nil {
				t.Fatal(err)
			}
			if err := f.Run(whole.Log(), got); err != nil {
				t.Fatal(err)
			}
			if string(got.Mark.Data) != string(want.Mark.Data) {
				t.Errorf("end %s, want %s", got.Mark.Data, want.Mark.Data)
			}
			var nobody *seal.Following
			if err := nobody.Run(whole.Log(), got); err != nil || string(got.Mark.Data) != string(want.Mark.Data) {
				t.Errorf("end %s, want %s: %v", got.Mark.Data, want.Mark.Data, err)
			}
		})
	}
}
