// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// crashed is a store that a process loses when it dies, with the lease that it holds.
type crashed struct {
	crashable
	dead atomic.Bool
}

type crashable interface {
	session.Service
	lease.Leaser
	store.Watcher
}

var errCrashed = errors.New("the process is dead")

func (c *crashed) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if c.dead.Load() {
		return errCrashed
	}
	return c.crashable.AppendEvent(ctx, s, ev)
}

func (c *crashed) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if c.dead.Load() {
		return nil, errCrashed
	}
	return c.crashable.Get(ctx, req)
}

func (c *crashed) Renew(ctx context.Context, l *lease.Lease, ttl time.Duration) (*lease.Lease, error) {
	if c.dead.Load() {
		return nil, errCrashed
	}
	return c.crashable.Renew(ctx, l, ttl)
}

func (c *crashed) Release(ctx context.Context, l *lease.Lease) error {
	if c.dead.Load() {
		return errCrashed
	}
	return c.crashable.Release(ctx, l)
}

// G8: server.New and Recover, as in the package's example, continue the run of a server that died a moment ago, of
// which nothing is known: when its lease has ended, within two looks.
func TestRecoverRightAfterACrash(t *testing.T) {
	const ttl = 1500 * time.Millisecond
	quick := func(c *server.Config) { c.LeaseTTL = ttl }
	g := newGate(t)
	all := session.InMemoryService()
	dying := &crashed{crashable: all.(crashable)}
	s := open(t, map[string]string{"gated.yaml": g.gated(2)}, private, quick, func(c *server.Config) {
		c.Service, c.Owner = dying, "refrain 1 on a container"
	})
	s.store = all
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	dying.dead.Store(true)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Shutdown(now) // ends the step, as the death of a process does
	s.start(private, quick, func(c *server.Config) { c.Owner = "refrain 1 on another container" })
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held, err := s.Supervisor().Driver(t.Context(), id); err != nil || held == nil || held.Owner != "refrain 1 on a container" {
		t.Fatalf("after Recover the driver is %v, %v", held, err)
	}
	began := time.Now()
	select {
	case <-g.came:
	case <-time.After(soon):
		t.Fatalf("nobody continues the run; the log of the server: %s", s.logs)
	}
	if took := time.Since(began); took > ttl+2*ttl/3+5*time.Second {
		t.Errorf("the run goes on after %s", took)
	}
	g.let <- struct{}{}
	g.let <- struct{}{}
	got := s.wait(id)
	noted := func() bool { return strings.Contains(s.logs.String(), "continue a run that was left unfinished") }
	for end := time.Now().Add(soon); !noted() && time.Now().Before(end); { // perhaps a moment after the run goes on
		time.Sleep(10 * time.Millisecond)
	}
	if got != "completed" || !noted() {
		t.Errorf("the run is %s; the log of the server: %s", got, s.logs)
	}
}
