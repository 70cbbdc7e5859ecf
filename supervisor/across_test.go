// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// LOOP 33: of two processes that resume a run one goes on, and the other says who
// does.
func TestOneDriverAtATime(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld("plan")
			one, two := process(t, store, w.nested(t), named("process 1 on laptop")), process(t, store, w.nested(t), named("process 2 on server"))
			run := start(t, one)
			<-w.seen
			_, err := two.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{})
			if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Owner != "process 1 on laptop" {
				t.Errorf("got %v", err)
			}
			if by, err := two.Driver(t.Context(), run.ID()); err != nil || by == nil || by.Owner != "process 1 on laptop" {
				t.Errorf("the driver is %v, %v", by, err)
			}
			close(w.gate["plan"])
			completed(t, run)
			if by, err := two.Driver(t.Context(), run.ID()); err != nil || by != nil {
				t.Errorf("after the end the driver is %v, %v", by, err)
			}
		})
	}
}

// What a process wants of a run, the one that drives it does.
func TestAskAnotherProcess(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld("plan")
			one, two := process(t, store, w.nested(t), named("one")), process(t, store, w.nested(t), named("two"))
			run := start(t, one)
			<-w.seen
			if err := two.Pause(t.Context(), run.ID(), "lunch"); err != nil {
				t.Fatal(err)
			}
			close(w.gate["plan"])
			state, err := two.Wait(t.Context(), run.ID())
			if err != nil || state.Status != mark.RunIsPaused {
				t.Fatalf("got %v, %v", state, err)
			}
			if p, ok := errors.AsType[*supervisor.PausedError](wait(t, run).Err); !ok || p.By != "two" || p.Reason != "lunch" {
				t.Errorf("got %v", wait(t, run).Err)
			}

			w.gate["plan"] = nil
			w.gate["check"] = make(chan struct{})
			run = resume(t, two, run.ID())
			<-w.seen
			if err := one.Cancel(t.Context(), run.ID(), "enough"); err != nil {
				t.Fatal(err)
			}
			if c, ok := errors.AsType[*supervisor.CanceledError](wait(t, run).Err); !ok || c.By != "one" {
				t.Errorf("got %v", wait(t, run).Err)
			}
		})
	}
}

// A request of yesterday is nobody's.
func TestOldRequestsAreNotFollowed(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("plan", "check")
	one, two := process(t, store, w.nested(t), named("one")), process(t, store, w.nested(t), named("two"))
	run := start(t, one)
	<-w.seen
	if err := two.Pause(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	close(w.gate["plan"])
	wait(t, run)
	w.gate["plan"], w.gate["check"] = nil, nil
	completed(t, resume(t, one, run.ID()))
}

// D15: twenty runs at once on one file all finish.
func TestTwentyRunsOnOneFile(t *testing.T) {
	store := database(t)
	var worlds [20]*world
	var runs [20]*supervisor.Run
	one, two := newWorld(), newWorld()
	sups := []*supervisor.Supervisor{process(t, store, one.nested(t)), process(t, store, two.nested(t))}
	var wg sync.WaitGroup
	for i := range worlds {
		wg.Go(func() { runs[i] = start(t, sups[i%2]) })
	}
	wg.Wait()
	for _, run := range runs {
		completed(t, run)
	}
	if n := one.total() + two.total(); n != 20*28 {
		t.Errorf("%d steps ran, want %d", n, 20*28)
	}
}

// A process that has lost a run stops, and writes no more into it.
func TestLeaseLost(t *testing.T) { synctest.Test(t, leaseLost) }

func leaseLost(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("left")
	dead := func(string) bool { return true }
	one := process(t, store, w.nested(t), named("one"), func(c *supervisor.Config) { c.LeaseTTL = 60 * time.Millisecond })
	two := process(t, store, w.nested(t), named("two"), func(c *supervisor.Config) { c.Dead = dead })
	run := start(t, one)
	<-w.seen
	other := resume(t, two, run.ID()) // it thinks that one is dead
	out := wait(t, run)
	if !errors.Is(out.Err, lease.ErrLost) {
		t.Fatalf("got %+v", out)
	}
	<-w.seen
	w.ungate("left")
	if err := two.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, other)
	completed(t, resume(t, two, run.ID()))
	want := []mark.Kind{
		mark.KindRunStarted, mark.KindRunTaken, mark.KindRunResumed, mark.KindRunPaused,
		mark.KindRunTaken, mark.KindRunResumed, mark.KindRunEnded,
	}
	if diff := cmp.Diff(want, marks(t, store, run.ID())); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// Nor does one that has not noticed it: its appends are refused.
func TestLeaseLostUnnoticed(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("left")
	one := process(t, store, w.nested(t), named("one"), func(c *supervisor.Config) { c.LeaseTTL = time.Hour })
	run := start(t, one)
	<-w.seen
	key := lease.Key{AppName: "app", UserID: "ana", SessionID: run.ID()}
	leaser := store.(lease.Leaser)
	held, err := leaser.Holder(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaser.TakeOver(t.Context(), held, "two", time.Hour); err != nil {
		t.Fatal(err)
	}
	before := view(t, store, run.ID()).LastSeq()
	close(w.gate["left"])
	if out := wait(t, run); !errors.Is(out.Err, lease.ErrLost) {
		t.Errorf("got %+v", out)
	}
	if after := view(t, store, run.ID()).LastSeq(); after > before+3 { // what its other branch said meanwhile
		t.Errorf("it appended %d events", after-before)
	}
}

// MaxRuns are driven at once, the others in the order in which they came; they are
// in the log all the while, and can be paused and canceled there.
func TestQueue(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("plan")
	var mu sync.Mutex
	var order []string
	sup := process(t, store, w.nested(t), func(c *supervisor.Config) {
		c.MaxRuns = 2
		c.OnEvent = func(id string, ev *session.Event) {
			if ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && ev.Address == "outer" {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, id)
			}
		}
	})
	var ids []string
	var runs []*supervisor.Run
	for range 6 {
		run := start(t, sup)
		runs, ids = append(runs, run), append(ids, run.ID())
	}
	<-w.seen
	<-w.seen
	all, err := sup.List(t.Context())
	if err != nil || len(all) != 6 {
		t.Fatalf("got %v, %v", all, err)
	}
	queued := 0
	for _, info := range all {
		if info.Run.Status != mark.RunRunning || !info.Here {
			t.Errorf("got %+v", info)
		}
		if info.Queued {
			queued++
		}
	}
	if queued != 4 || !runs[2].Queued() || runs[0].Queued() {
		t.Errorf("%d wait for their turn", queued)
	}
	if err := sup.Pause(t.Context(), ids[2], ""); err != nil {
		t.Fatal(err)
	}
	if err := sup.Cancel(t.Context(), ids[3], ""); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]mark.RunStatus{2: mark.RunIsPaused, 3: mark.RunCanceled} {
		if out := wait(t, runs[i]); out.Run.Status != want {
			t.Errorf("run %d is %+v", i, out)
		}
	}
	close(w.gate["plan"])
	for _, i := range []int{0, 1, 4, 5} {
		completed(t, runs[i])
	}
	completed(t, resume(t, sup, ids[2]))
	for _, pair := range [][]string{order[:2], order[2:4], ids[:2], ids[4:]} { // those begin at the same time
		slices.Sort(pair)
	}
	if diff := cmp.Diff([]string{ids[0], ids[1], ids[4], ids[5], ids[2]}, order); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

func TestConfig(t *testing.T) {
	build := func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
		return &supervisor.Program{}, nil
	}
	good := supervisor.Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Build: build}
	for want, change := range map[string]func(*supervisor.Config){
		"needs a Service":                    func(c *supervisor.Config) { c.Service = nil },
		"a lease.Leaser and a store.Watcher": func(c *supervisor.Config) { c.Service = struct{ session.Service }{c.Service} },
		"needs an AppName":                   func(c *supervisor.Config) { c.UserID = "" },
		"needs a Build function":             func(c *supervisor.Config) { c.Build = nil },
		"must not be negative":               func(c *supervisor.Config) { c.MaxRuns = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := supervisor.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
