// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
)

// Saved files belong to the store whose run has saved them: a run of that ID in another store that uses the same folder does
// not take them away, in whatever order both are removed.
func TestRmLeavesTheSavedFilesOfARunInPostgres(t *testing.T) {
	dsn := crashPostgres(t)
	file, err := filepath.Abs("testdata/v1/completed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	other := dsn + "&application_name=other" // the same server, but not known to be the same store
	if !strings.Contains(dsn, "?") {
		other = dsn + " application_name=other"
	}
	e := &term.Env{Getenv: func(string) string { return "" }, Stderr: io.Discard}
	save := func(spec, id string) {
		t.Helper()
		s, err := runstore.MakeStock(t.Context(), e, spec, "")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = s.Files.Save(t.Context(), &artifact.SaveRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id,
			FileName: "report.md", Part: genai.NewPartFromText(spec)})
		if err == nil {
			var log io.Closer
			if log, err = runstore.OpenMessages(e, s, id); err == nil {
				err = log.Close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(id string) bool {
		files, err := disk.Open(filepath.Join(".refrain", "artifacts"))
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		_, err = files.Load(context.Background(), &artifact.LoadRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id, FileName: "report.md"})
		return err == nil
	}
	messages := func() int {
		all, _ := filepath.Glob(filepath.Join(".refrain", "messages", "*.txt"))
		return len(all)
	}
	for _, store := range []string{dsn, "sqlite:.refrain/refrain.db"} {
		cli(t, 0, "import", file, "--as", "r_1", "--store", store)
	}
	save(dsn, "r_1")
	_, said := cli(t, 0, "rm", "r_1", "--yes", "--store", "sqlite:.refrain/refrain.db")
	if !has("r_1") || messages() != 1 || !strings.Contains(said, "the saved files of r_1 also belong to the run of that ID in postgres:") {
		t.Errorf("the run in SQLite is removed with the files of the one in PostgreSQL; it said %q", said)
	}
	if _, said := cli(t, 0, "rm", "r_1", "--yes", "--store", dsn); has("r_1") || messages() != 0 || strings.Contains(said, "belong") {
		t.Errorf("the files stay when their run is removed; it said %q", said)
	}
	cli(t, 0, "import", file, "--as", "r_1", "--store", dsn)
	save(other, "r_1")
	if _, said := cli(t, 0, "rm", "r_1", "--yes", "--store", dsn); !has("r_1") || messages() != 1 {
		t.Errorf("a run is removed with the files of one in another database; it said %q", said)
	}
}
