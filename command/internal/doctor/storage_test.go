// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
)

func TestCopiesOfRunsThatExistAreNotDeleted(t *testing.T) {
	top, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(top, link); err != nil {
		t.Skip(err)
	}
	for _, run := range []string{"r_1", "r_2"} { // the store of r_2 is not there
		room, place := filepath.Join(top, run, ".refrain", "files", "runs", run), filepath.Join(top, "trees", "project", run)
		for name, text := range map[string]string{filepath.Join(room, "place"): place, filepath.Join(place, "of"): room} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(top, "r_2")); err != nil {
		t.Fatal(err)
	}
	d := &doctor{Env: &term.Env{Getenv: func(name string) string {
		return map[string]string{trust.CopiesVariable: filepath.Join(link, "trees")}[name]
	}}}
	d.copies()
	if len(d.checks) != 1 || d.checks[0].Fix != "" || !strings.Contains(d.checks[0].Detail, "of 2 runs, ") ||
		!strings.Contains(d.checks[0].Detail, "; the stores of 1 cannot be found: ") {
		t.Errorf("the checks are %+v", d.checks)
	}
}
