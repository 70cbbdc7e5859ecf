// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// LOOP 30, 12f: a session without an event, as a version before this one leaves it when it
// is killed, is no run that was interrupted: every command says that it never began, and how
// it begins.
func TestRunThatNeverBegan(t *testing.T) {
	store, path := notBegun(t)
	out, _ := cli(t, 0, "runs", "--store", path)
	if !strings.Contains(out, "not_begun") || !strings.Contains(out, "the run never began; begin it with: refrain run FILE --session r_1") ||
		strings.Contains(out, "resume") {
		t.Errorf("runs says\n%s", out)
	}
	if out, _ := cli(t, 0, "runs", "--store", path, "--status", "interrupted"); out != "" {
		t.Errorf("it counts as interrupted:\n%s", out)
	}
	never := "run r_1 never began, so it has no events; " +
		"begin it with refrain run FILE --store " + path + " --session r_1, or remove it with refrain rm r_1 --store " +
		path + " --yes"
	for _, verb := range []string{"show", "events", "watch", "verify", "export", "resume", "pause", "cancel", "answer", "fork"} {
		if _, errs := cli(t, 2, verb, "r_1", "--store", path); !strings.Contains(errs, never) {
			t.Errorf("%s says %q", verb, errs)
		}
	}
	// One that somebody is about to begin is left alone.
	if _, err := store.(lease.Leaser).Acquire(t.Context(), runstore.KeyOf("r_1"), "refrain 1 on another machine", time.Hour); err != nil {
		t.Fatal(err)
	}
	if out, _ := cli(t, 0, "runs", "--store", path); !strings.Contains(out, "running") || !strings.Contains(out, "by refrain 1 on another machine") {
		t.Errorf("runs says\n%s", out)
	}
	if _, errs := cli(t, 2, "resume", "r_1", "--store", path); !strings.Contains(errs, "run r_1 has no event yet") {
		t.Errorf("resume says %q", errs)
	}
}

// It begins under its own ID.
func TestRunThatNeverBeganBegins(t *testing.T) {
	_, path := notBegun(t)
	file := writeStory(t, t.TempDir())
	cli(t, 0, "run", file, "--session", "r_1", "--store", path, "--exit-zero-on-limit", "--progress", "quiet")
	if out, _ := cli(t, 0, "runs", "--store", path); !strings.Contains(out, "completed") {
		t.Errorf("runs says\n%s", out)
	}
	cli(t, 0, "verify", "r_1", "--store", path)
}

// notBegun is a store with an empty session r_1, and where it is.
func notBegun(t *testing.T) (session.Service, string) {
	t.Helper()
	path := "sqlite:" + filepath.Join(t.TempDir(), "runs.db")
	store, closeStore, err := runstore.MakeService(t.Context(), &term.Env{Getenv: func(string) string { return "" }}, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeStore() })
	if _, err := store.Create(t.Context(), &session.CreateRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: "r_1"}); err != nil {
		t.Fatal(err)
	}
	return store, path
}

// writeStory writes a definition whose loop makes three versions.
func writeStory(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "story.yaml")
	write(t, file, `name: story
max_iterations: 3
sub_agents:
  - {name: say, text: "version {{iteration}}", output_key: draft}
`)
	return file
}
