// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Waiting is not active time: a list of runs and what is told of one say the same, and a fork has a time of its own.
func TestActiveTimeIsThatOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := session.InMemoryService()
		work := custom(t, "work", func(agent.InvocationContext, yield) { time.Sleep(2 * time.Second) })
		sup := process(t, store, loop(t, "l", 2, work, asks(t, "question", 0)))
		active := func(id string, want time.Duration) { t.Helper(); activeFor(t, store, id, want) }
		answer := func(id string) {
			t.Helper()
			time.Sleep(time.Hour)
			open, err := sup.Questions(t.Context(), id)
			if err != nil || len(open) != 1 {
				t.Fatalf("%v, %v", open, err)
			}
			if _, err := sup.Answer(t.Context(), id, mark.Answer{ID: open[0].ID, Value: []byte(`"so"`)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		run := start(t, sup)
		wait(t, run)
		active(run.ID(), 2*time.Second)
		answer(run.ID())
		active(run.ID(), 2*time.Second)
		run = resume(t, sup, run.ID())
		time.Sleep(time.Second)
		if err := sup.Pause(t.Context(), run.ID(), "lunch"); err != nil {
			t.Fatal(err)
		}
		wait(t, run)
		time.Sleep(time.Hour)
		active(run.ID(), 4*time.Second)
		wait(t, resume(t, sup, run.ID()))
		active(run.ID(), 4*time.Second)
		answer(run.ID())
		completed(t, resume(t, sup, run.ID()))
		time.Sleep(time.Hour)
		active(run.ID(), 4*time.Second)

		fork, err := sup.Fork(t.Context(), run.ID(), supervisor.Checkpoint{Iteration: 1})
		if err != nil {
			t.Fatal(err)
		}
		active(fork, 0)
		time.Sleep(time.Hour)
		wait(t, resume(t, sup, fork))
		active(fork, 2*time.Second)
		time.Sleep(time.Hour)
		if err := sup.Cancel(t.Context(), fork, "enough"); err != nil {
			t.Fatal(err)
		}
		active(fork, 2*time.Second)
	})
}

// A run whose process has died was active until its last event, whoever cancels or pauses it later.
func TestActiveTimeEndsWithTheProcess(t *testing.T) {
	for what, stop := range map[string]func(*supervisor.Supervisor) error{
		"cancel": func(sup *supervisor.Supervisor) error { return sup.Cancel(t.Context(), "r_1", "enough") },
		"pause":  func(sup *supervisor.Supervisor) error { return sup.Pause(t.Context(), "r_1", "later") },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := session.InMemoryService()
			run := mark.Run{ID: "i", Name: "l", Status: mark.RunRunning, Started: time.Now()}
			began, err := session.NewRunEvent(run, "user", mark.KindRunStarted, mark.RunStarted{Name: "l"})
			if err != nil {
				t.Fatal(err)
			}
			made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "r_1"})
			if err != nil {
				t.Fatal(err)
			}
			step := &session.Event{InvocationID: "i", Author: "l", Address: "l", Mark: &mark.Mark{Kind: mark.KindStepStarted}}
			for _, ev := range []*session.Event{began, step} {
				if err := store.AppendEvent(t.Context(), made.Session, ev); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
			}
			time.Sleep(time.Hour)
			if err := stop(process(t, store, custom(t, "l", func(agent.InvocationContext, yield) {}))); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			activeFor(t, store, "r_1", 3*time.Second)
		})
	}
}

// activeFor checks what a list of runs and what is told of a run say of its active time.
func activeFor(t *testing.T, store session.Service, id string, want time.Duration) {
	t.Helper()
	row, err := runlog.RowOf(t.Context(), store, view(t, store, id), nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := runlog.Read(t.Context(), store, lease.Key{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	told, err := run.Report(t.Context(), runlog.ReportOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if row.Seconds != want.Seconds() || told.Seconds != want.Seconds() {
		t.Errorf("active for %vs in the list and %vs alone, want %v", row.Seconds, told.Seconds, want)
	}
}
