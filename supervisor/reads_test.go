// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/supervisor"
)

// A run that is resumed is read once, however long it is: what it was started with, its replay and
// its seal come from one view. A view that the caller has is read no second time, unless somebody has
// appended since. The steps' texts are short enough for an outline. Whole are read only the pages in
// which the loop begins and the log ends.
func TestResumeReadsTheLogOnce(t *testing.T) {
	const around = 3 * 64
	for _, iterations := range []uint{10, longtest.N[uint](100, 500)} {
		svc := sessiontest.Count(session.InMemoryService())
		w := newWorld()
		root := loop(t, "refine", iterations, w.step(t, "writer"), w.step(t, "critic"))
		first := process(t, svc, root)
		run, err := first.Start(t.Context(), supervisor.Request{SessionID: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name    string
			view    bool // the caller's
			stale   bool // somebody appends to the session
			fetched int
		}{
			{name: "by its ID", fetched: 1},
			{name: "with a view", view: true, fetched: 0},
			{name: "with a view that is out of date", view: true, stale: true, fetched: 1},
		} {
			id, err := first.Fork(t.Context(), "r1", supervisor.Checkpoint{})
			if err != nil {
				t.Fatal(err)
			}
			var opts supervisor.ResumeOptions
			view := viewOf(t, svc, id)
			n := view.LastSeq()
			if tt.view {
				opts.View = view
			}
			if tt.stale {
				ev := &session.Event{InvocationID: "e-other", Author: "somebody"}
				if err := svc.AppendEvent(t.Context(), viewOf(t, svc, id), ev); err != nil {
					t.Fatal(err)
				}
				n++
			}
			made := w.total()
			svc.Reset()
			run, err := process(t, svc, root).Resume(t.Context(), id, opts)
			if err != nil {
				t.Fatal(err)
			}
			end, err := run.Wait(t.Context())
			if err != nil || end.Run.Status != mark.RunCompleted {
				t.Fatalf("%s: got %+v, %v", tt.name, end, err)
			}
			if svc.Gets() != tt.fetched || svc.Outlined() != int(n) || svc.Loaded() > around {
				t.Errorf("%s, %d events: %d sessions fetched, %d events read in outline and %d whole, want %d, each event "+
					"once, and at most %d", tt.name, n, svc.Gets(), svc.Outlined(), svc.Loaded(), tt.fetched, around)
			}
			if w.total() != made {
				t.Errorf("%s: %d steps were made again", tt.name, w.total()-made)
			}
		}
	}
}

func viewOf(t *testing.T, svc session.Service, id string) *session.View {
	t.Helper()
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return session.ViewOf(got.Session)
}
