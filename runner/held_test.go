// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

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

// LOOP 33: runners that are not durable take no lease, but two processes still do not write one session: the second is
// refused when it appends, its error says that somebody else has written, and the first goes on.
func TestTwoProcessesWithoutLeases(t *testing.T) {
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
		t.Logf("the second: %q, %v", said, err)
		yield(says("two"), nil)
	})
	first := newRunner(t, runner.Config{SessionService: open(), AutoCreateSession: true, Agent: root})
	said, err := collect(t, ask(t.Context(), first, "Hello"))
	t.Logf("the first: %q, %v", said, err)
}
