// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// faulty puts a git into PATH that runs lines of shell in place of one command, where "$git" is the real one. at(n) chooses
// the nth command from now on. reached reports whether that command has come.
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
	for name, lines := range map[string]string{
		"at once": "exit 3", "afterwards": `"$git" "$@" >/dev/null; exit 3`,
		"in the middle": `test -z "$GIT_INDEX_FILE" || echo half >"$GIT_INDEX_FILE.lock"; kill -9 $$`,
	} {
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

// A process that is killed before or after any of its first commands of git, in which it opens the tree, restores it and
// stores it, loses nothing: every hash that it has printed has its files, and so has the start. The short form draws a few.
func TestKilledAtEachCommandOfGit(t *testing.T) {
	for name, lines := range map[string]string{"before": "kill -9 $PPID; exit 1", "after": `"$git" "$@"; kill -9 $PPID; exit 1`} {
		t.Run(name, func(t *testing.T) {
			at, reached := faulty(t, lines)
			from := repository(t)
			content := make(map[workspace.Hash]map[string]string)
			var last workspace.Hash
			for n := 1 + rand.IntN(longtest.N(9, 3)); n <= 45; n += longtest.N(9, 3) {
				cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
				cmd.Env = append(os.Environ(), "KILLED_FROM="+from, "KILLED_HASH="+string(last))
				at(n)
				out, err := cmd.Output()
				if !reached() || err == nil {
					t.Fatalf("command %d: it was not killed: %v\n%s", n, err, out)
				}
				at(0)
				tree := open(t, workspace.Config{From: from, Store: from + "-files", Run: "r"})
				printed := []workspace.Hash{tree.Start()}
				for line := range strings.Lines(string(out)) {
					if h := workspace.Hash(strings.TrimSpace(line)); h.Valid() {
						printed, last = append(printed, h), h
					}
				}
				if last != "" {
					printed = append(printed, last)
				}
				for _, h := range printed {
					if _, err := tree.Restore(t.Context(), h); err != nil {
						t.Fatalf("command %d: %v", n, err)
					}
					if got := snapshot(t, tree); got != h {
						t.Fatalf("command %d: restored %s is %s", n, h, got)
					}
					now := files(t, tree.Dir(), ".git")
					if content[h] == nil {
						content[h] = now
					}
					same(t, fmt.Sprintf("command %d", n), content[h], now)
				}
				tree.Close()
			}
			if last == "" {
				t.Error("no child came as far as a snapshot")
			}
		})
	}
}
