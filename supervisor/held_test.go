// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// overtaken is a store in which each append is a commit. Before the first append of two events it
// calls first: one of them was held.
type overtaken struct {
	session.Service
	lease.Leaser
	store.Watcher
	once  sync.Once
	ready func() bool // the run has come to its first step
	first func(to session.Session)
}

func (o *overtaken) Commits() bool { return true }

func (o *overtaken) AppendEvents(ctx context.Context, to session.Session, evs []*session.Event) error {
	if len(evs) == 2 && o.ready() {
		o.once.Do(func() { o.first(to) })
	}
	return o.Service.(store.BulkAppender).AppendEvents(ctx, to, evs)
}

// Somebody else writes into the session while the runner holds an event: that event never gets
// into the log. The seal of the run is over the log, not over what the runner held: the test
// verifies the seals when it ends.
func TestSealOfARunWithEventsThatWereNeverStored(t *testing.T) {
	svc := session.InMemoryService()
	var ctx context.Context // of the run
	root := loop(t, "loop", 3, custom(t, "silent", func(in agent.InvocationContext, _ yield) { ctx = in }),
		custom(t, "next", func(agent.InvocationContext, yield) {}))
	o := &overtaken{Service: svc, Leaser: svc.(lease.Leaser), Watcher: svc.(store.Watcher)}
	sup := process(t, o, root)
	o.ready = func() bool { return ctx != nil }
	var canceled sync.WaitGroup
	o.first = func(to session.Session) {
		other := &session.Event{InvocationID: "e-other", Author: "somebody"}
		if err := svc.AppendEvent(t.Context(), viewOf(t, svc, to.ID()), other); err != nil {
			t.Error(err)
		}
		canceled.Go(func() { _ = sup.Cancel(t.Context(), to.ID(), "enough") })
		<-ctx.Done()
	}
	run, err := sup.Start(t.Context(), supervisor.Request{SessionID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = run.Wait(t.Context())
	canceled.Wait()
}
