// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// mortal is a store that a process loses when it dies.
type mortal struct {
	service
	dead  atomic.Bool
	after session.Address // it dies behind a mark of that step
	kind  mark.Kind
}

type service interface {
	session.Service
	lease.Leaser
	store.Watcher
}

var errDead = errors.New("the process is dead")

func (m *mortal) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if m.dead.Load() {
		return errDead
	}
	err := m.service.AppendEvent(ctx, s, ev)
	if ev.Mark != nil && ev.Mark.Kind == m.kind && ev.Address == m.after {
		m.dead.Store(true)
	}
	return err
}

func (m *mortal) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.service.Get(ctx, req)
}

func (m *mortal) Release(ctx context.Context, l *lease.Lease) error {
	if m.dead.Load() {
		return errDead
	}
	return m.service.Release(ctx, l)
}

// G8: after a restart the runs that a process has left behind go on.
func TestRecover(t *testing.T) { synctest.Test(t, recovers) }

func recovers(t *testing.T) {
	store := session.InMemoryService()
	dying := &mortal{service: store.(service)}
	w := newWorld("left")
	old := process(t, dying, w.nested(t))
	var runs []*supervisor.Run
	for range 3 {
		runs = append(runs, start(t, old))
		<-w.seen
		time.Sleep(time.Second) // they go on in the order in which they were started
	}
	w.ungate("left")
	done := start(t, process(t, store, w.nested(t)))
	completed(t, done)
	dying.dead.Store(true)
	for _, run := range runs {
		if err := old.PauseNow(t.Context(), run.ID(), ""); err != nil {
			t.Fatal(err)
		}
		if out := wait(t, run); !errors.Is(out.Err, errDead) {
			t.Errorf("got %+v", out)
		}
	}
	next := process(t, store, w.nested(t), named("the next one"))
	if got, err := next.Recover(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("as long as the lease lasts: %v, %v", got, err)
	}
	if _, err := next.Wait(t.Context(), runs[0].ID()); !errors.Is(err, supervisor.ErrInterrupted) {
		t.Errorf("got %v", err)
	}
	// One of them is not to go on: whoever cancels it ends its steps too.
	if err := next.Cancel(t.Context(), runs[2].ID(), "no need"); err != nil {
		t.Fatal(err)
	}
	if open := underWay(t, store, runs[2].ID()); len(open) > 0 {
		t.Errorf("under way are %v", open)
	}
	got, err := next.Recover(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	for i, run := range got {
		if run.ID() != runs[i].ID() {
			t.Errorf("number %d is %s", i, run.ID())
		}
		completed(t, run)
	}
	completed(t, resume(t, next, runs[2].ID())) // and yet
	for _, run := range runs {
		if diff := cmp.Diff(final(t, store, done.ID()), final(t, store, run.ID())); diff != "" {
			t.Errorf("the state of %s (-whole +recovered):\n%s", run.ID(), diff)
		}
	}
}

func final(t *testing.T, store session.Service, id string) map[string]any {
	t.Helper()
	return statekey.OwnState(view(t, store, id).State())
}

// A store that fails at random loses nothing: whatever it does to a run, resumed
// often enough it comes to the same.
func TestFaultyStore(t *testing.T) { synctest.Test(t, faultyStore) }

func faultyStore(t *testing.T) {
	calm := session.InMemoryService()
	whole := start(t, process(t, calm, newWorld().nested(t)))
	completed(t, whole)
	resumed := 0
	for seed := range uint64(20) {
		store := session.InMemoryService()
		w := newWorld()
		quick := func(c *supervisor.Config) {
			c.LeaseTTL = 50 * time.Millisecond
			c.Dead = func(string) bool { return true }
		}
		sup := process(t, sessiontest.Faulty(store, sessiontest.Faults{Seed: seed, Before: 0.02, After: 0.02}), w.nested(t), quick)
		run, err := sup.Start(t.Context(), request())
		id := ""
		switch {
		case err == nil:
			id = run.ID()
			wait(t, run)
		case !errors.Is(err, sessiontest.ErrFault):
			t.Fatal(err)
		default:
			if all, _ := store.List(t.Context(), &session.ListRequest{AppName: "app"}); len(all.Sessions) == 1 && session.RunOf(all.Sessions[0]) != nil {
				id = all.Sessions[0].ID()
			} else {
				continue // it never began
			}
		}
		for range 100 {
			if session.RunOf(view(t, store, id)).Status == mark.RunCompleted {
				break
			}
			again, err := sup.Resume(t.Context(), id, supervisor.ResumeOptions{})
			if err == nil {
				resumed++
				wait(t, again)
			}
		}
		if got := session.RunOf(view(t, store, id)); got.Status != mark.RunCompleted {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		if diff := cmp.Diff(final(t, calm, whole.ID()), final(t, store, id)); diff != "" {
			t.Errorf("seed %d (-calm +faulty):\n%s", seed, diff)
		}
	}
	t.Logf("resumed %d times", resumed)
}

// A process that dies behind a run's last step leaves it to the next one to say how
// the run has ended.
func TestDiedBeforeItCouldSaySo(t *testing.T) {
	diesBeforeItSaysSo(t, false, mark.KindStepFinished)
	diesBeforeItSaysSo(t, false, mark.KindLoopStopped)
	diesBeforeItSaysSo(t, true, mark.KindStepFinished)
}

func diesBeforeItSaysSo(t *testing.T, failed bool, last mark.Kind) {
	t.Helper()
	store := session.InMemoryService()
	dying := &mortal{service: store.(service), after: "outer", kind: last}
	w := newWorld()
	if failed {
		w.fail["outer[2]/check"] = errors.New("the disk is full")
	}
	run := start(t, process(t, dying, w.nested(t)))
	wait(t, run)
	if got := session.RunOf(view(t, store, run.ID())).Status; got != mark.RunRunning {
		t.Fatalf("the run is %s", got)
	}
	ran := w.total()
	next := process(t, store, w.nested(t), func(c *supervisor.Config) { c.Dead = func(string) bool { return true } })
	out := wait(t, resume(t, next, run.ID()))
	switch {
	case failed && (out.Run.Status != mark.RunFailed || out.Err == nil || !strings.Contains(out.Run.Error, "the disk is full")):
		t.Errorf("got %+v", out)
	case !failed && (out.Run.Status != mark.RunCompleted || out.Err != nil || out.Run.Stop != "max_iterations"):
		t.Errorf("got %+v", out)
	}
	if w.total() != ran {
		t.Errorf("%d steps ran again", w.total()-ran)
	}
}

// partly is a store in which the record of one more run is damaged.
type partly struct{ service }

var errDamaged = errors.New("one run cannot be read")

func (p *partly) ListOpen(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	got, err := p.List(ctx, req)
	return got, errors.Join(err, errDamaged)
}

// A run that cannot be read does not keep the others from going on.
func TestRecoverBesideDamagedRun(t *testing.T) { synctest.Test(t, recoversBesideDamaged) }

func recoversBesideDamaged(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("left")
	old := process(t, store, w.nested(t), named("the old one"))
	run := start(t, old)
	<-w.seen
	now, cancel := context.WithCancel(t.Context())
	cancel() // cuts off the step that waits at the gate
	if err := old.Close(now); err != nil {
		t.Fatal(err)
	}
	w.ungate("left")
	next := process(t, &partly{store.(service)}, w.nested(t), named("the next one"))
	got, err := next.Recover(t.Context())
	if len(got) != 1 || got[0].ID() != run.ID() || !errors.Is(err, errDamaged) {
		t.Fatalf("got %v and %v, want run %s and the error about the other", got, err, run.ID())
	}
	completed(t, got[0])
}

// G8: what Close has paused goes on after a restart; what a person has paused does not, nor what
// another kind of process has started.
func TestRecoverAfterClose(t *testing.T) { synctest.Test(t, recoversAfterClose) }

func recoversAfterClose(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("left")
	old := process(t, store, w.nested(t), named("the old one"))
	begin := func(name string) *supervisor.Run {
		req := request()
		req.Started.Name = name
		run, err := old.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		<-w.seen
		return run
	}
	mine, others, paused := begin("mine"), begin("another's"), begin("mine")
	if err := old.PauseNow(t.Context(), paused.ID(), "by hand"); err != nil {
		t.Fatal(err)
	}
	wait(t, paused)
	now, cancel := context.WithCancel(t.Context())
	cancel() // cuts off the steps that wait at the gate
	if err := old.Close(now); err != nil {
		t.Fatal(err)
	}
	w.ungate("left")
	next := process(t, store, w.nested(t), named("the next one"), func(c *supervisor.Config) {
		c.Recovers = func(started mark.RunStarted) bool { return started.Name == "mine" }
	})
	got, err := next.Recover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, run := range got {
		ids = append(ids, run.ID())
		completed(t, run)
	}
	want := []string{mine.ID()}
	if session.RunOf(view(t, store, mine.ID())).Status != mark.RunCompleted {
		t.Errorf("the run is %v", session.RunOf(view(t, store, mine.ID())))
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("recovered (-want +got):\n%s", diff)
	}
	if got := session.RunOf(view(t, store, others.ID())).Status; got != mark.RunIsPaused {
		t.Errorf("another's run is %s", got)
	}
}
