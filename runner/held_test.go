// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// LOOP 33: a run that another process drives is not resumed, nor another run begun in its session: the error names the
// process, the step runs once, and the first goes on. When it has ended, its session is free.
func TestRunOfAnotherProcessIsNotTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	open := func() *sqlite.Service { // as another process does
		svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = svc.Close() })
		return svc
	}
	one, two := open(), open()
	steps := 0
	held := func(err error) {
		t.Helper()
		by, ok := errors.AsType[*lease.HeldError](err)
		if !ok || by.Owner != lease.Process() || !strings.Contains(err.Error(), lease.Process()) {
			t.Errorf("got error %v", err)
		}
	}
	var other *runner.Runner
	root := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		if steps++; steps > 1 {
			return
		}
		for _, err := range other.Resume(t.Context(), ctx.Session().UserID(), ctx.Session().ID(), "", agent.RunConfig{}) {
			held(err)
		}
		_, err := collect(t, ask(t.Context(), other, "me too"))
		held(err)
		yield(says("one"), nil)
	})
	cfg := durable(root, two)
	cfg.AutoCreateSession = true
	other = newRunner(t, cfg)
	cfg.SessionService = one
	first := newRunner(t, cfg)
	said, err := collect(t, ask(t.Context(), first, "Hello"))
	if err != nil || steps != 1 {
		t.Errorf("the first run: %q, %v, after %d steps", said, err, steps)
	}
	if _, err := collect(t, ask(t.Context(), other, "now")); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// LOOP 33: so do runners that are not durable: without a lease the second would be in the log, and the first would fail.
func TestRunThatIsNotDurableHoldsItsSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	open := func() *sqlite.Service {
		svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = svc.Close() })
		return svc
	}
	other := newRunner(t, runner.Config{SessionService: open(), AutoCreateSession: true, Agent: speaker(t, "b", "mine")})
	root := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
		if !yield(says("one"), nil) {
			return
		}
		said, err := collect(t, ask(t.Context(), other, "me too"))
		if by, ok := errors.AsType[*lease.HeldError](err); !ok || by.Owner != lease.Process() || len(said) > 0 {
			t.Errorf("the second run: %q, %v", said, err)
		}
		yield(says("two"), nil)
	})
	first := newRunner(t, runner.Config{SessionService: open(), AutoCreateSession: true, Agent: root})
	said, err := collect(t, ask(t.Context(), first, "Hello"))
	if diff := cmp.Diff([]string{"a: one", "a: two"}, said); diff != "" || err != nil {
		t.Errorf("the first run: %v, %s", err, diff)
	}
	if _, err := collect(t, ask(t.Context(), other, "now")); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// A process that died in another container holds its session until its lease ends: the error names it and that time,
// and from then on the run can be resumed.
func TestResumeAfterTheLeaseOfAnUnknownProcess(t *testing.T) {
	svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Close() })
	cfg := durable(speaker(t, "a", "one"), svc)
	cfg.AutoCreateSession = true
	r := newRunner(t, cfg)
	for range ask(t.Context(), r, "Hello") {
		break // a run that is cut off
	}
	const owner = "refrain 1 on a container (0123456789ab 5)"
	view := get(t, svc)
	if _, err := svc.Acquire(t.Context(), lease.KeyOf(view), owner, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	again := func() (err error) {
		for _, err = range r.Resume(t.Context(), view.UserID(), view.ID(), "", agent.RunConfig{}) {
		}
		return err
	}
	err = again()
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok || !strings.Contains(err.Error(), owner) || !strings.Contains(err.Error(), held.Until.Format(time.RFC3339)) {
		t.Fatalf("while the lease lasts: %v", err)
	}
	time.Sleep(time.Until(held.Until) + 50*time.Millisecond)
	if err := again(); err != nil {
		t.Errorf("after the end of the lease: %v", err)
	}
}
