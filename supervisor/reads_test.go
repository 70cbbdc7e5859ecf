// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
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

// The agents that the caller of Resume has made are used, unless the run may have got another program since; they are closed in any case.
func TestResumeUsesTheAgentsThatTheCallerHasMade(t *testing.T) {
	svc := session.InMemoryService()
	root := loop(t, "refine", 1, newWorld().step(t, "writer"))
	built := 0
	sup := process(t, svc, root, func(cfg *supervisor.Config) {
		cfg.Build = func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			built++
			return &supervisor.Program{Agent: root}, nil
		}
	})
	first := start(t, sup)
	completed(t, first)
	for name, tt := range map[string]struct {
		change func(id string, o *supervisor.ResumeOptions)
		built  int
		fails  bool
	}{
		"with its view":        {change: func(id string, o *supervisor.ResumeOptions) { o.View = view(t, svc, id) }},
		"with another program": {change: func(_ string, o *supervisor.ResumeOptions) { o.Program = []byte("{}") }},
		"without a view":       {change: func(string, *supervisor.ResumeOptions) {}, built: 1},
		"of a log that has changed": {change: func(id string, o *supervisor.ResumeOptions) {
			o.View = view(t, svc, id)
			if err := svc.AppendEvent(t.Context(), view(t, svc, id), &session.Event{InvocationID: "e-other", Author: "somebody"}); err != nil {
				t.Fatal(err)
			}
		}, built: 1},
		"of a run that has changed": {change: func(_ string, o *supervisor.ResumeOptions) { o.After = 1 }, fails: true},
	} {
		id, err := sup.Fork(t.Context(), first.ID(), supervisor.Checkpoint{})
		if err != nil {
			t.Fatal(err)
		}
		closed := 0
		opts := supervisor.ResumeOptions{Agents: &supervisor.Program{Agent: root, Close: func() { closed++ }}}
		tt.change(id, &opts)
		built = 0
		run, err := sup.Resume(t.Context(), id, opts)
		if err == nil {
			_, err = run.Wait(t.Context())
		}
		if (err != nil) != tt.fails || built != tt.built || closed != 1 {
			t.Errorf("%s: %v, Build is called %d times and not %d, the agents are closed %d times", name, err, built, tt.built, closed)
		}
	}
}
