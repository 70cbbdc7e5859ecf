// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// A process dies and is started again at once, while its lease lasts: Recover finds nothing to do. The supervisor looks
// again, and continues the run within two ticks after the end of the lease, in an order of its own and only once.
func TestRecoverLooksAgain(t *testing.T) { synctest.Test(t, recoverLooksAgain) }

func recoverLooksAgain(t *testing.T) {
	store := session.InMemoryService()
	dying := &mortal{service: store.(service)}
	w := newWorld("left")
	old := process(t, dying, w.nested(t), named("the old process, in another container"))
	run := start(t, old)
	<-w.seen
	w.ungate("left")
	dying.dead.Store(true)
	died := time.Now()
	if err := old.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, run)

	heard := make(chan []*supervisor.Run, 10)
	next := process(t, store, w.nested(t), named("the new process"), func(c *supervisor.Config) {
		c.OnRecovery = func(runs []*supervisor.Run, err error) {
			if err != nil {
				t.Error(err)
			}
			heard <- runs
		}
	})
	if runs, err := next.Recover(t.Context()); err != nil || len(runs) > 0 {
		t.Fatalf("while the lease lasts: %v, %v", runs, err)
	}
	runs := <-heard
	if took := time.Since(died); len(runs) != 1 || runs[0].ID() != run.ID() || took < 15*time.Second || took > 25*time.Second {
		t.Errorf("after %s: %v", took, runs)
	}
	completed(t, runs[0])
	time.Sleep(time.Hour)
	if len(heard) > 0 {
		t.Errorf("and then %v", <-heard)
	}
}

// Runs of others, and runs that a person has paused, stay as they are, however often a supervisor looks.
func TestRecoverLeavesOthersAlone(t *testing.T) { synctest.Test(t, recoverLeavesOthers) }

func recoverLeavesOthers(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("left")
	sup := process(t, store, w.nested(t))
	paused := start(t, sup)
	<-w.seen
	if err := sup.PauseNow(t.Context(), paused.ID(), "not now"); err != nil {
		t.Fatal(err)
	}
	wait(t, paused)
	dying := &mortal{service: store.(service)}
	old := process(t, dying, w.nested(t))
	foreign := start(t, old)
	<-w.seen
	dying.dead.Store(true)
	_ = old.PauseNow(t.Context(), foreign.ID(), "")
	wait(t, foreign)
	var asked atomic.Int64
	next := process(t, store, w.nested(t), func(c *supervisor.Config) {
		c.Recovers = func(mark.RunStarted) bool { asked.Add(1); return false }
		c.OnRecovery = func(runs []*supervisor.Run, err error) { t.Errorf("continued %v, %v", runs, err) }
	})
	if _, err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	if n := asked.Load(); n != 1 { // the log of a run that has not changed is not read again
		t.Errorf("asked %d times", n)
	}
}

// LOOP 33: two supervisors look 20 times a second over a hundred runs that are alive, and take over none.
func TestLookersTakeOverNothingAlive(t *testing.T) {
	const each, ttl = 50, 5 * time.Second // a machine under load renews late
	path := filepath.Join(t.TempDir(), "refrain.db")
	var drives atomic.Int64
	var steps [2 * each]atomic.Int64
	hold := make(chan struct{})
	var sups []*supervisor.Supervisor
	for i := range 2 {
		store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() }) // after the supervisor, which looks until it is closed
		root := custom(t, "charge", func(ctx agent.InvocationContext, yield yield) {
			var n int
			_, _ = fmt.Sscanf(ctx.Session().ID(), "r%d", &n)
			steps[n].Add(1)
			select {
			case <-hold:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
			}
		})
		sups = append(sups, process(t, store, root, named(fmt.Sprint("process ", i)), func(c *supervisor.Config) {
			c.LeaseTTL = ttl
			c.OnBeginning = func(string, mark.Run, bool) { drives.Add(1) }
			c.OnRecovery = func(runs []*supervisor.Run, err error) { t.Errorf("took over %v, %v", runs, err) }
		}))
	}
	var runs []*supervisor.Run
	for i, sup := range sups {
		if _, err := sup.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range each {
			run, err := sup.Start(t.Context(), supervisor.Request{SessionID: fmt.Sprintf("r%d", i*each+n)})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
	}
	for began := time.Now(); time.Since(began) < ttl+time.Second; { // besides the supervisors' own looks; each lease has been renewed
		for _, sup := range sups {
			if got, err := sup.Recover(t.Context()); err != nil || len(got) > 0 {
				t.Fatalf("took over %v, %v", got, err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(hold)
	for _, run := range runs {
		completed(t, run)
	}
	if n := drives.Load(); n != 2*each {
		t.Errorf("%d runs were driven %d times", 2*each, n)
	}
	for i := range steps {
		if n := steps[i].Load(); n != 1 {
			t.Errorf("the step of run %d ran %d times", i, n)
		}
	}
}
