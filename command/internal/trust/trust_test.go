// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/trust"
)

func TestCopiesAreNotInAFolderThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	file, closed := filepath.Join(dir, "file"), filepath.Join(dir, "closed")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ name, value, want string }{
		"a folder that can be made": {"XDG_STATE_HOME", filepath.Join(dir, "new"), filepath.Join(dir, "new", "refrain", "trees")},
		"below a file":              {"XDG_STATE_HOME", filepath.Join(file, "state"), ""},
		"a file as home":            {"HOME", file, ""},
		"a closed home":             {"HOME", closed, ""},
		"the user's own choice":     {trust.CopiesVariable, filepath.Join(file, "copies"), filepath.Join(file, "copies")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.value == closed {
				if probe, err := os.Create(filepath.Join(closed, "probe")); err == nil {
					probe.Close()
					t.Skip("this user may write everywhere")
				}
			}
			got := trust.Copies(func(variable string) string {
				if variable == test.name {
					return test.value
				}
				return ""
			})
			if got != test.want {
				t.Errorf("the copies are in %q, want %q", got, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("the folder was made before it was needed")
	}
}
