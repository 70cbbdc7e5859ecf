// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/workspace"
)

// faulty puts a git into PATH that runs lines of shell at its nth command from now on, where "$git" is the real one. at
// sets n, and reached reports whether there were so many commands.
func faulty(t *testing.T, lines string) (at func(n int), reached func() bool) {
	t.Helper()
	needGit(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ngit='" + git + "'; left=$(cat '" + dir + "/left')\n" +
		"test \"$left\" = 0 || echo $((left - 1)) >'" + dir + "/left'\ntest \"$left\" != 1 || { " + lines + "; }\nexec \"$git\" \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	at = func(n int) { write(t, dir, "left", fmt.Sprintln(n)) }
	at(0)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return at, func() bool {
		left, err := os.ReadFile(filepath.Join(dir, "left"))
		if err != nil {
			t.Fatal(err)
		}
		return string(left) == "0\n"
	}
}

// Whichever command of git fails, a snapshot is an error and never an old tree, and a restore is an error or right; the
// next ones are right again.
func TestEachFailingCommandOfGitIsAnError(t *testing.T) {
	for name, lines := range map[string]string{"at once": "exit 3", "afterwards": `"$git" "$@" >/dev/null; exit 3`} {
		t.Run(name, func(t *testing.T) {
			at, reached := faulty(t, lines)
			tree := open(t, workspace.Config{From: repository(t)})
			was := tree.Start()
			n := 1
			for ; ; n++ {
				write(t, tree.Dir(), "a.go", fmt.Sprintln(name, n))
				write(t, tree.Dir(), fmt.Sprintf("sub/%d", n), "new")
				want := files(t, tree.Dir(), ".git")
				at(n)
				h, err := tree.Snapshot(t.Context())
				ended := !reached()
				at(0)
				if ended == (err != nil) || err != nil && h != "" {
					t.Fatalf("command %d: the snapshot is %q: %v", n, h, err)
				}
				now := snapshot(t, tree)
				if err == nil && h != now || now == was {
					t.Errorf("command %d: the snapshots are %s and %s, and before %s", n, h, now, was)
				}
				if ended {
					break
				}
				at(n)
				_, err = tree.Restore(t.Context(), was)
				at(0)
				if err == nil && snapshot(t, tree) != was {
					t.Errorf("command %d: the restore has left other files", n)
				}
				if _, err := tree.Restore(t.Context(), now); err != nil {
					t.Fatal(errors.Join(fmt.Errorf("command %d", n), err))
				}
				same(t, fmt.Sprintf("command %d", n), want, files(t, tree.Dir(), ".git"))
				was = now
			}
			if n < 4 {
				t.Errorf("only %d commands could fail", n-1)
			}
		})
	}
}
