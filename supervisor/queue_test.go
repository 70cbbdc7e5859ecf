// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// guests limits the runs with the name guest: so many at once, and so many that wait.
func guests(atOnce, queued int) func(*supervisor.Config) {
	return func(c *supervisor.Config) {
		c.Guest = func(s mark.RunStarted) bool { return s.Name == "guest" }
		c.MaxGuests, c.MaxQueued = atOnce, queued
	}
}

func guest() supervisor.Request {
	req := request()
	req.Started.Name = "guest"
	return req
}

// Runs of strangers' definitions wait for one another, only so many wait, and no other run waits for them.
func TestGuestsWait(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld("step")
			sup := process(t, store, w.step(t, "step"), guests(1, 2))
			var runs []*supervisor.Run
			for range 3 {
				run, err := sup.Start(t.Context(), guest())
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, run)
			}
			<-w.seen
			if runs[0].Queued() || !runs[1].Queued() || !runs[2].Queued() {
				t.Error("not one guest is driven")
			}
			refused := guest()
			refused.SessionID = "refused"
			if _, err := sup.Start(t.Context(), refused); !errors.Is(err, supervisor.ErrQueueFull) || !strings.Contains(err.Error(), "the limit is 2") {
				t.Errorf("the third guest that waits: %v", err)
			}
			if _, err := store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "refused"}); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("the refused run left %v", err)
			}
			own := start(t, sup)
			<-w.seen // it does not wait for guests

			if err := sup.Cancel(t.Context(), runs[1].ID(), ""); err != nil {
				t.Fatal(err)
			}
			wait(t, runs[1])
			if _, err := sup.Resume(t.Context(), runs[1].ID(), supervisor.ResumeOptions{Refusable: true}); err != nil {
				t.Errorf("a place is free: %v", err)
			}
			if _, err := sup.Start(t.Context(), guest()); !errors.Is(err, supervisor.ErrQueueFull) {
				t.Errorf("the resumed run does not count: %v", err)
			}
			paused, err := sup.Submit(t.Context(), guest())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sup.Resume(t.Context(), paused, supervisor.ResumeOptions{Refusable: true}); !errors.Is(err, supervisor.ErrQueueFull) {
				t.Errorf("a client resumes one more: %v", err)
			}
			if got := marks(t, store, paused); len(got) != 1 {
				t.Errorf("the refused resume wrote %v", got)
			}
			answered := resume(t, sup, paused) // as after a person's answer
			close(w.gate["step"])
			for _, run := range []*supervisor.Run{own, runs[0], runs[2], answered} {
				completed(t, run)
			}
		})
	}
}

// A run that waits for its turn keeps neither its state nor its agents in memory: both are read and made again.
func TestAQueuedRunHoldsNothing(t *testing.T) {
	longtest.WithoutRace(t)
	const runs, size = 12, 4 << 20
	store := database(t)
	w := newWorld("step")
	root := w.step(t, "step")
	before := process(t, store, root)
	ids := make([]string, runs)
	for i := range ids {
		req := request()
		req.State = map[string]any{"big": strings.Repeat("x", size)}
		run, err := before.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		<-w.seen
		if err := before.PauseNow(t.Context(), run.ID(), ""); err != nil {
			t.Fatal(err)
		}
		wait(t, run)
		ids[i] = run.ID()
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	had := heap()
	made, closed := atomic.Int64{}, atomic.Int64{}
	program := func() *supervisor.Program {
		made.Add(1)
		return &supervisor.Program{Agent: root, Close: func() { closed.Add(1) }}
	}
	sup := process(t, store, root, func(c *supervisor.Config) {
		c.MaxRuns = 1
		c.Build = func(context.Context, mark.RunStarted) (*supervisor.Program, error) { return program(), nil }
	})
	var all []*supervisor.Run
	for _, id := range ids {
		all = append(all, resume(t, sup, id))
	}
	<-w.seen
	if grown := heap() - had; grown > 5*size {
		t.Errorf("%d runs that wait for one hold %d MiB, and the state of each has %d", runs-1, grown>>20, size>>20)
	}
	req := request()
	req.Program = program()
	run, err := sup.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if open := made.Load() - closed.Load(); open != 1 {
		t.Errorf("there are agents for %d runs, and one is driven", open)
	}
	close(w.gate["step"])
	for _, run := range append(all, run) {
		completed(t, run)
	}
	for _, id := range ids {
		if big, err := view(t, store, id).State().Get("big"); err != nil || len(big.(string)) != size {
			t.Errorf("run %s has lost its state: %v", id, err)
		}
	}
}
