// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// E4, G9: a run that an earlier version left in its database, killed twice in a loop in a loop, is
// resumed and comes to what a whole run comes to. Its seals hold before and after, and so do those
// that are made now over its earlier events.
func TestStoredDatabaseResumes(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/v1/nested.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "runs.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	refrain := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "refrain", append(args, "--store", "sqlite:runs.db")...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	sealed := func() (seals []string) {
		for line := range strings.Lines(refrain("verify", "last")) {
			if strings.HasPrefix(line, "ok ") {
				seals = append(seals, line)
			}
		}
		return seals
	}
	const loops, later = 9, 10 // that had stopped when the run was killed, and that stop now
	before := sealed()
	if len(before) != loops {
		t.Fatalf("seals %q, want those of %d loops", before, loops)
	}
	if text := refrain("resume", "last", "--dir", dir, "--progress", "quiet"); strings.TrimSpace(text) != "30 12 18" {
		t.Errorf("the resumed run says %q, want that each step ran once: 30 12 18", text)
	}
	after := sealed()
	if len(after) != loops+later+1 || !strings.HasPrefix(strings.Join(after, ""), strings.Join(before, "")) {
		t.Errorf("seals %q, want those of %d loops, of %d more, and of the run\nbefore %q", after, loops, later, before)
	}
}
