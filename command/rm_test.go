// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"path/filepath"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// G9: a run is removed with its files and its mailbox; what other runs share, and
// other runs, stay.
func TestRmRemovesAllThatIsTheRuns(t *testing.T) {
	dir := t.TempDir()
	spec := "sqlite:" + filepath.Join(dir, "runs.db")
	for _, id := range []string{"r_1", "r_2"} {
		cli(t, 0, "import", "testdata/v1/completed.jsonl", "--as", id, "--store", spec)
	}
	files, err := disk.Open(runstore.ArtifactsDir(&term.Env{Getenv: func(string) string { return "" }}, spec))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	save := func(id, name string) {
		_, err := files.Save(t.Context(), &artifact.SaveRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id,
			FileName: name, Part: genai.NewPartFromText(name)})
		if err != nil {
			t.Fatal(err)
		}
	}
	save("r_1", "report.md")
	save("r_1", "user:shared.md")
	save("r_2", "report.md")
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "runs.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	mail := &session.CreateRequest{AppName: runstore.MailApp, UserID: runstore.UserName, SessionID: "r_1"}
	if _, err := store.Create(t.Context(), mail); err != nil {
		t.Fatal(err)
	}

	cli(t, 0, "rm", "r_1", "--yes", "--store", spec)

	if _, err := store.Create(t.Context(), mail); err != nil {
		t.Errorf("the mailbox is there still: %v", err)
	}
	for _, tt := range []struct {
		id, name string
		there    bool
	}{{"r_1", "report.md", false}, {"r_1", "user:shared.md", true}, {"r_2", "report.md", true}} {
		_, err := files.Load(t.Context(), &artifact.LoadRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: tt.id, FileName: tt.name})
		if there := !errors.Is(err, artifact.ErrNotFound); there != tt.there {
			t.Errorf("file %s of %s: %v", tt.name, tt.id, err)
		}
	}
	cli(t, 2, "show", "r_1", "--store", spec)
	cli(t, 0, "show", "r_2", "--store", spec)
}
