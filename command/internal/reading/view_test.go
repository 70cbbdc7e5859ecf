// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// The run of a large file is not kept in memory, but in a folder that is removed at the end.
func TestViewKeepsLargeRunsOnTheDisk(t *testing.T) {
	small := largestInMemory
	t.Cleanup(func() { largestInMemory = small })
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	file := filepath.Join(t.TempDir(), "run.jsonl")
	text := `{"seq":1,"id":"1","invocationId":"i","author":"user","timestamp":"2026-01-01T00:00:00Z"}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, largestInMemory = range []int64{small, 0} {
		runs, remove, id, err := take(t.Context(), &term.Env{Stdin: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := runs.(*sqlite.Service); is != (largestInMemory == 0) {
			t.Errorf("with at most %d bytes in memory the store is %T", largestInMemory, runs)
		}
		run, err := runlog.Read(t.Context(), runs, runstore.KeyOf(id))
		if err != nil || run.Len() != 1 {
			t.Errorf("the store has not the run: %v", err)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
		if rest, err := os.ReadDir(dir); err != nil || len(rest) > 0 {
			t.Errorf("%v is left: %v", rest, err)
		}
	}
}
