// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/heaptest"
	"github.com/refrain-dev/refrain/session"
)

// sharing makes room for n views until the test ends.
func sharedWindows(t *testing.T, n int) {
	v := session.NewView(session.ViewConfig{})
	for range n {
		t.Cleanup(v.Pending().Share())
	}
}

// A view holds less the more of them there are. Events of 2 kB, 4 MB a view.
func TestViewsShareTheirMemory(t *testing.T) {
	const n, size = 1000, 2000
	view := func() any { return longView(n, size) }
	alone := heaptest.Held(view)
	sharedWindows(t, 500)
	among := heaptest.Held(view)
	if most := alone / 20; among > most {
		t.Errorf("a view holds %d bytes, and %d among 500: want %d at most", alone, among, most)
	}
	v := view().(*session.View)
	seq := int64(0)
	for ev := range v.Events().All() {
		if seq++; ev.Seq != seq || !strings.HasPrefix(ev.Text(), fmt.Sprint(seq, " ")) {
			t.Fatalf("event %d of the log is event %d", seq, ev.Seq)
		}
	}
	if seq != n || v.Err() != nil {
		t.Errorf("the view has %d events and the error %v, want %d", seq, v.Err(), n)
	}
}

// What a view was given before its store is not read from there.
func TestViewKeepsWhatIsNotStored(t *testing.T) {
	sharedWindows(t, 5000)
	stored := int64(0)
	v := session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1",
		Load: func(first, last int64) (evs []*session.Event, err error) {
			if last > stored {
				return nil, errors.New("not stored")
			}
			for seq := first; seq <= last; seq++ {
				evs = append(evs, longEvent(seq, 1000))
			}
			return evs, nil
		},
	})
	look := func() {
		t.Helper()
		seq := int64(0)
		for ev := range v.Events().All() {
			if seq++; ev.Seq != seq || ev.ErrorCode != "" {
				t.Fatalf("event %d of the log is event %d, error %q", seq, ev.Seq, ev.ErrorMessage)
			}
		}
		if seq != v.LastSeq() {
			t.Fatalf("the log has %d events, want %d", seq, v.LastSeq())
		}
	}
	for range 3 {
		for range 100 {
			v.Apply(longEvent(v.LastSeq()+1, 1000))
			stored = v.LastSeq()
		}
		for range 100 {
			v.Pending().Apply(longEvent(v.LastSeq()+1, 1000))
		}
		look()
		stored = v.LastSeq()
		v.Pending().Commit()
		look()
	}
}
