// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// swap exchanges each pair of paths, again and again, until stop is called.
func swap(t *testing.T, pairs map[string]string) (stop func()) {
	t.Helper()
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			for a, b := range pairs {
				if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
					t.Errorf("exchange %s and %s: %v", a, b, err)
					return
				}
			}
			select {
			case <-quit:
				return
			default:
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// A program that replaces files, or a folder, by links while they are copied gets no file from elsewhere into the tree.
func TestNoLinkIsFollowedWhileFilesAreCopied(t *testing.T) {
	needGit(t)
	temp := t.TempDir()
	from, outside, links := filepath.Join(temp, "project"), filepath.Join(temp, "outside"), filepath.Join(temp, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	pairs := make(map[string]string)
	for i := range 30 {
		name := fmt.Sprintf("f%02d", i)
		write(t, from, name, "plain")
		write(t, from, "sub/"+name, "plain")
		write(t, outside, name, "secret")
		pairs[filepath.Join(from, name)] = filepath.Join(links, name)
		if err := os.Symlink(filepath.Join(outside, name), filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(links, "sub")); err != nil {
		t.Fatal(err)
	}
	for what, pairs := range map[string]map[string]string{
		"files": pairs, "a folder": {filepath.Join(from, "sub"): filepath.Join(links, "sub")},
	} {
		stop := swap(t, pairs)
		through, regular := 0, 0
		for run := 0; run < 10 || run < 100 && regular < 50; run++ { // how many are copied is up to the machine
			tree, err := workspace.Open(t.Context(), workspace.Config{From: from, Store: t.TempDir(), Run: fmt.Sprintf("r_%d", run)})
			if err != nil {
				t.Log(err) // such as a file beside the link in its place
				continue
			}
			for name, is := range files(t, tree.Dir(), ".git") {
				if strings.HasPrefix(is, "link ") {
					continue // which is not followed
				}
				regular++
				if text, err := os.ReadFile(filepath.Join(tree.Dir(), name)); err != nil || string(text) != "plain" {
					through++
				}
			}
			tree.Close()
		}
		stop()
		if through > 0 || regular < 50 {
			t.Errorf("%s: of %d files, %d have the text of a file elsewhere", what, regular, through)
		}
	}
}

// A folder that became a link is not followed, neither when it is read nor when it is written.
func TestAFolderThatBecameALinkIsCopiedAsALink(t *testing.T) {
	from := repository(t)
	outside := t.TempDir()
	write(t, outside, "deep/win.txt", "secret")
	sh(t, from, `rm -r sub; ln -s "$OUTSIDE" sub`, "OUTSIDE="+outside)
	tree := open(t, workspace.Config{From: from})
	if target, err := os.Readlink(filepath.Join(tree.Dir(), "sub")); err != nil || target != outside {
		t.Errorf("sub is %q: %v", target, err)
	}
	if text, _ := os.ReadFile(filepath.Join(outside, "deep", "win.txt")); string(text) != "secret" {
		t.Errorf("the file outside has %q", text)
	}
}

// A file of patterns that is a link to a file without an end is not read.
func TestPatternsWithoutAnEnd(t *testing.T) {
	from := repository(t)
	sh(t, from, "ln -s /dev/zero .worktreeinclude; rm .git/info/exclude; ln -s /dev/zero .git/info/exclude; git config core.excludesFile /dev/zero")
	tree, err := workspace.Open(t.Context(), workspace.Config{From: from, Store: t.TempDir(), Run: "r_1"})
	if err == nil {
		tree.Close()
	}
}
