// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// startedIn is what a run was started with in a folder, with a definition.
func startedIn(t testing.TB, dir, definition string) mark.RunStarted {
	t.Helper()
	text, err := json.Marshal(&program.Program{File: "story.yaml", Path: "story.yaml", Files: map[string]string{"story.yaml": definition}, Dir: dir, Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	return mark.RunStarted{Name: "story", Program: text}
}

// LOOP 30: refrain resume is named only where it works, and with what it needs.
func TestHowToResume(t *testing.T) {
	here := t.TempDir()
	gone := filepath.Join(here, "gone")
	const story = "name: story\ntext: hello\n"
	for _, tc := range []struct {
		name    string
		started mark.RunStarted
		want    string
	}{
		{"started by refrain run", startedIn(t, here, story), "Resume with: refrain resume r_1"},
		{"started by another program", mark.RunStarted{Name: "story"}, "refrain cannot resume run r_1: its log has no definition, because it was not started by refrain run"},
		{"without its definition", startedIn(t, here, ""), "Resume with: refrain resume r_1 --definition FILE (its own definition cannot be read here)"},
		{"in another folder", startedIn(t, gone, story), "Resume with: refrain resume r_1 --dir FOLDER (its folder " + gone + " is not here)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := session.InMemoryService()
			made, err := store.Create(t.Context(), &session.CreateRequest{AppName: AppName, UserID: UserName, SessionID: "r_1"})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := HowToResumeIn(t.Context(), store, "r_1"), "refrain cannot resume run r_1: it was not started by refrain run"; got != want {
				t.Errorf("of an empty log: got %q, want %q", got, want)
			}
			begin(t, store, made.Session, tc.started)
			if got := HowToResumeIn(t.Context(), store, "r_1"); got != tc.want {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
}

// LOOP 30: refrain resume is not named where nothing can be written.
func TestHowToResumeReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: AppName, UserID: UserName, SessionID: "r_1"})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, store, made.Session, startedIn(t, t.TempDir(), "name: story\ntext: hello\n"))
	if got, want := HowToResumeIn(t.Context(), store, "r_1"), "Resume with: refrain resume r_1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, err = sqlite.Open(t.Context(), path, sqlite.Config{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const want = "refrain cannot resume run r_1: its store is read-only here; copy the database to a folder that you can write, and name the copy with --store"
	if got := HowToResumeIn(t.Context(), store, "r_1"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// begin writes that a run has begun.
func begin(t *testing.T, store session.Service, s session.Session, started mark.RunStarted) {
	t.Helper()
	ev, err := session.NewRunEvent(mark.Run{ID: "i", Name: "story", Status: mark.RunRunning}, "refrain", mark.KindRunStarted, started)
	if err == nil {
		err = store.AppendEvent(t.Context(), s, ev)
	}
	if err != nil {
		t.Fatal(err)
	}
}
