// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

func standing(t testing.TB, sup *supervisor.Supervisor, id string) supervisor.Status {
	t.Helper()
	st, err := sup.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A process that ends gives a run back, and who continues it sees that nobody wanted the pause.
// A pause that a person asked for is told from it, even if both come at once.
func TestHandOver(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld("plan")
			one, two := process(t, store, w.nested(t), named("one")), process(t, store, w.nested(t), named("two"))
			run := start(t, one)
			<-w.seen
			run.HandOver(ended())
			before := standing(t, two, run.ID())
			if before.Run.Status != mark.RunIsPaused || !before.Run.HandOver || before.Seq == 0 {
				t.Errorf("a run that was handed over stands as %+v", before)
			}

			run = resume(t, two, run.ID())
			<-w.seen
			if err := one.Pause(t.Context(), run.ID(), "lunch"); err != nil {
				t.Fatal(err)
			}
			run.HandOver(ended())
			if p, ok := errors.AsType[*supervisor.PausedError](wait(t, run).Err); !ok || p.By != "one" || p.HandOver {
				t.Errorf("the pause of a person became %v", wait(t, run).Err)
			}
			after := standing(t, two, run.ID())
			if after.Run.HandOver {
				t.Error("a pause of a person is a hand-over")
			}

			// What a person wanted since the last event that is known stands.
			_, err := two.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{After: before.Seq})
			if !errors.Is(err, supervisor.ErrChanged) {
				t.Errorf("a run that was paused meanwhile is continued: %v", err)
			}
			w.ungate("plan")
			run, err = two.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{After: after.Seq})
			if err != nil {
				t.Fatal(err)
			}
			completed(t, run)
		})
	}
}

// A person who pauses a run while it is being handed over has it paused.
func TestPauseDuringHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := session.InMemoryService()
		w := newWorld("plan")
		one := process(t, store, w.nested(t), named("one"))
		run := start(t, one)
		<-w.seen
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan struct{})
		go func() { run.HandOver(ctx); close(given) }()
		synctest.Wait()
		if err := one.Pause(t.Context(), run.ID(), "lunch"); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-given
		if p, ok := errors.AsType[*supervisor.PausedError](wait(t, run).Err); !ok || p.Reason != "lunch" {
			t.Errorf("got %v", wait(t, run).Err)
		}
		if standing(t, one, run.ID()).Run.HandOver {
			t.Error("the pause of a person is a hand-over")
		}
	})
}

// A run that was handed over can be paused by a person, who is the last to have a say.
func TestPauseAfterHandOver(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("plan")
	one := process(t, store, w.nested(t), named("one"))
	run := start(t, one)
	<-w.seen
	run.HandOver(ended())
	if err := one.Pause(t.Context(), run.ID(), "lunch"); err != nil {
		t.Fatal(err)
	}
	if standing(t, one, run.ID()).Run.HandOver {
		t.Error("the pause of a person is a hand-over")
	}
	if err := one.Pause(t.Context(), run.ID(), "lunch"); !errors.Is(err, supervisor.ErrPaused) {
		t.Errorf("a second pause: %v", err)
	}
	if again, err := one.Recover(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("a run that a person has paused is recovered: %v, %v", again, err)
	}
}

// A lease that is renewed shows that its owner is alive; who sees none renewed takes the run over, in
// the name of an owner of its own.
func TestTakeOver(t *testing.T) { synctest.Test(t, takeOver) }

func takeOver(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("plan")
	frequent := func(c *supervisor.Config) { c.LeaseTTL, c.LeaseRenew = 30*time.Second, 2*time.Second }
	one := process(t, store, w.nested(t), named("one"), frequent)
	two := process(t, store, w.nested(t), named("two"), frequent)
	run := start(t, one)
	<-w.seen
	var seen []time.Time
	opts := supervisor.ResumeOptions{Owner: "attempt 2 by two", TakeOver: func(held *lease.HeldError) bool {
		if held.Owner != "one" {
			t.Errorf("the run is held by %s", held.Owner)
		}
		seen = append(seen, held.Until)
		return len(seen) == 2
	}}
	if _, err := two.Resume(t.Context(), run.ID(), opts); err == nil {
		t.Fatal("the run was taken over at once")
	}
	time.Sleep(5 * time.Second)
	w.ungate("plan")
	again, err := two.Resume(t.Context(), run.ID(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if d := seen[1].Sub(seen[0]); d != 4*time.Second {
		t.Errorf("in 5 s the lease got longer by %s, want 4 s", d)
	}
	completed(t, again)
	if out := wait(t, run); !errors.Is(out.Err, lease.ErrLost) {
		t.Errorf("the one that lost the run ends with %v", out.Err)
	}
	for ev := range view(t, store, run.ID()).Log().OutlineByKind(mark.KindRunTaken) {
		var taken mark.RunTaken
		if err := ev.Mark.Decode(&taken); err != nil || taken.By != "attempt 2 by two" {
			t.Errorf("taken by %q, %v", taken.By, err)
		}
	}
}

// A run that is submitted for a driver is left to it by everybody else, until it is handed to another.
func TestDriver(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			cluster := func(c *supervisor.Config) { c.Driver = "cluster" }
			plain, worker := process(t, store, w.nested(t), named("plain")), process(t, store, w.nested(t), named("worker"), cluster)
			req := request()
			req.Driver = "cluster"
			if _, err := plain.Start(t.Context(), req); !errors.Is(err, supervisor.ErrDriver) {
				t.Errorf("a run of a cluster is driven elsewhere: %v", err)
			}
			id, err := plain.Submit(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if st := standing(t, plain, id); st.Run.Driver != "cluster" || st.Run.Status != mark.RunRunning {
				t.Errorf("it stands as %+v", st)
			}
			if _, err := plain.Resume(t.Context(), id, supervisor.ResumeOptions{}); !errors.Is(err, supervisor.ErrDriver) {
				t.Errorf("got %v, want that the run has another driver", err)
			}
			if runs, err := plain.Recover(t.Context()); err != nil || len(runs) != 0 {
				t.Errorf("a run of another driver is recovered: %v, %v", runs, err)
			}
			if err := plain.Pause(t.Context(), id, "lunch"); err != nil {
				t.Error(err)
			}
			if err := plain.HandTo(t.Context(), id, ""); err != nil {
				t.Error(err)
			}
			if st := standing(t, plain, id); st.Run.Driver != "" || !st.Run.HandOver {
				t.Errorf("it stands as %+v", st)
			}
			if _, err := worker.Resume(t.Context(), id, supervisor.ResumeOptions{}); !errors.Is(err, supervisor.ErrDriver) {
				t.Errorf("got %v, want that the run has another driver", err)
			}
			if err := plain.HandTo(t.Context(), id, "cluster"); err != nil {
				t.Error(err)
			}
			completed(t, resume(t, worker, id))
			if st := standing(t, plain, id); st.Run.Driver != "cluster" || st.Run.HandOver {
				t.Errorf("it stands as %+v", st)
			}
			if err := plain.HandTo(t.Context(), id, ""); !errors.Is(err, supervisor.ErrOver) {
				t.Errorf("a run that has ended is handed over: %v", err)
			}
		})
	}
}

// Who looks at a waiting run sees what it asks; with the answers anybody may continue it.
func TestStandingOfAWaitingRun(t *testing.T) {
	store := session.InMemoryService()
	one := process(t, store, asks(t, "well", 0))
	run := start(t, one)
	wait(t, run)
	st := standing(t, one, run.ID())
	if st.Run.Status != mark.RunWaiting || len(st.Open) != 1 || st.Run.HandOver {
		t.Fatalf("it stands as %+v", st)
	}
	if err := one.HandTo(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	if st := standing(t, one, run.ID()); st.Run.Status != mark.RunWaiting || len(st.Open) != 1 {
		t.Errorf("after it was handed over it stands as %+v", st)
	}
	if _, err := one.Answer(t.Context(), run.ID(), mark.Answer{ID: st.Open[0], Value: []byte(`"yes"`)}); err != nil {
		t.Fatal(err)
	}
	answered := standing(t, one, run.ID())
	if answered.Run.Status != mark.RunIsPaused || !answered.Run.HandOver || len(answered.Open) != 0 {
		t.Errorf("with its answer it stands as %+v", answered)
	}
	run, err := one.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{After: st.Seq})
	if err != nil {
		t.Fatal(err)
	}
	completed(t, run)
}
