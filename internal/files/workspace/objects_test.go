// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// amended makes a repository of two commits. The script lose then amends a file away, and git gc deletes what only the
// amended commit had.
func amended(t *testing.T) (from string) {
	from = filepath.Join(t.TempDir(), "project")
	needGit(t)
	write(t, from, "a.go", "package a\n")
	sh(t, from, "git init -q -b main; git add -A; git commit -qm first")
	write(t, from, "sub/old.txt", "old\n")
	write(t, from, "new.txt", "new\n")
	sh(t, from, "git add -A; git commit -qm second")
	return from
}

const lose = `git rm -q sub/old.txt; git commit -q --amend -m "second, amended"; git reflog expire --expire=now --all; git gc -q --prune=now`

func worksOn(t *testing.T, tree *workspace.Tree, text string) workspace.Hash {
	t.Helper()
	if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
		t.Fatal(err)
	}
	write(t, tree.Dir(), "a.go", text)
	h := snapshot(t, tree)
	var patch bytes.Buffer
	if err := tree.Diff(t.Context(), tree.Start(), h, &patch); err != nil || !strings.Contains(patch.String(), strings.TrimSpace(text)) {
		t.Fatalf("the difference is %q: %v", patch.String(), err)
	}
	return h
}

// git gc in the user's repository takes nothing from a run, whenever it comes.
func TestTheUserCollectsGarbage(t *testing.T) {
	for _, tt := range []struct {
		name string
		when int
		base workspace.Base
	}{
		{"before the first step", 0, workspace.Dirty}, {"between two steps", 1, workspace.Head},
		{"before another process takes the run on", 2, workspace.Dirty},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := amended(t)
			lost := strings.TrimSpace(sh(t, from, "git rev-parse HEAD"))
			cfg := workspace.Config{From: from, Store: t.TempDir(), Base: tt.base}
			tree := open(t, cfg)
			for i := range 3 {
				if i == tt.when {
					sh(t, from, lose+"; ! git cat-file -e "+lost)
				}
				if i == 2 {
					tree.Close()
					tree = open(t, cfg)
				}
				worksOn(t, tree, "package a // "+tt.name+"\n")
			}
			h := worksOn(t, tree, "package b\n")
			if got := sh(t, tree.Dir(), "git log --format=%s; git diff --stat HEAD; git fsck --strict"); !strings.Contains(got, "second\nfirst\n") {
				t.Errorf("the repository of the tree has %s", got)
			}
			if err := os.RemoveAll(filepath.Join(tree.Dir(), "sub")); err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Restore(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Branch(t.Context(), h, "result", "Result"); err != nil {
				t.Fatal(err)
			}
			got := sh(t, from, "git fsck --full --strict; git log --format=%s result; git show result:sub/old.txt result:a.go; git clone -q --no-local . ../clone")
			if got != "Result\nsecond\nfirst\nold\npackage b\n" {
				t.Errorf("the user has %s", got)
			}
		})
	}
}

// A base whose whole history is deleted becomes a commit without parents, and its repository stays without a fault.
func TestTheUserLosesAllHistory(t *testing.T) {
	from := amended(t)
	tree := open(t, workspace.Config{From: from, Store: t.TempDir()})
	sh(t, from, `git checkout -q --orphan new; git commit -qm anew; git branch -qD main
git reflog expire --expire=now --all; git gc -q --prune=now`)
	h := worksOn(t, tree, "package b\n")
	if got := sh(t, tree.Dir(), "git log --format=%s; git fsck --strict --no-dangling"); got != "second\n" {
		t.Errorf("the repository of the tree has %s", got)
	}
	if _, err := tree.Branch(t.Context(), h, "result", "Result"); err != nil {
		t.Fatal(err)
	}
	way, err := tree.Taking(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	got := sh(t, from, "git fsck --full --strict; git cat-file commit result~ | grep -c parent || :; git "+string(way)+" result >/dev/null; cat a.go")
	if got != "0\npackage b\n" {
		t.Errorf("after git %s the user has %s", way, got)
	}
}

// What only the user's index or another branch has is stored, too, when a program writes the same contents.
func TestContentsThatTheUserHasAreStored(t *testing.T) {
	from := amended(t)
	sh(t, from, "git checkout -q -b other; echo elsewhere > b; git add b; git commit -qm other; git checkout -q main; echo staged > c; git add c")
	tree := open(t, workspace.Config{From: from, Store: t.TempDir()})
	worksOn(t, tree, "package b\n")
	write(t, tree.Dir(), "b", "elsewhere\n")
	h := snapshot(t, tree)
	sh(t, from, "git branch -qD other; git rm -qf c; "+lose)
	if _, err := tree.Restore(t.Context(), tree.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Restore(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, tree.Dir(), "cat b c sub/old.txt"); got != "elsewhere\nstaged\nold\n" {
		t.Errorf("the files are %q", got)
	}
}

// A worktree, a shallow clone with a submodule, and a repository that reads the objects of another one keep their files, too.
func TestOtherRepositoriesCollectGarbage(t *testing.T) {
	for name, script := range map[string]string{
		"worktree":          "git worktree add -q -b w ../copy",
		"shallow":           "git clone -q --depth 1 file://$PWD ../copy",
		"shared":            "git clone -q --shared . ../copy",
		"submodule":         "git clone -q . ../copy; cd ../copy; git -c protocol.file.allow=always submodule add -q $OLDPWD part; git commit -qm third",
		"path with a colon": "git clone -q . ../a:copy; ln -s a:copy ../copy",
	} {
		t.Run(name, func(t *testing.T) {
			from := amended(t)
			sh(t, from, script)
			from = filepath.Join(filepath.Dir(from), "copy")
			tree := open(t, workspace.Config{From: from, Store: t.TempDir()})
			sh(t, from, lose)
			h := worksOn(t, tree, "package b\n")
			sh(t, tree.Dir(), "git log")
			if _, err := tree.Branch(t.Context(), h, "result", "Result"); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, from, "git fsck --full; git show result:sub/old.txt result:a.go"); got != "old\npackage b\n" {
				t.Errorf("the user has %s", got)
			}
		})
	}
}

// A store of an older version reads the objects of the user's repository. It has them itself once a run is opened.
func TestAStoreOfAnOlderVersion(t *testing.T) {
	from, store := amended(t), t.TempDir()
	cfg := workspace.Config{From: from, Store: store}
	tree := open(t, cfg)
	tree.Close()
	sh(t, store, `rm runs/*/commit; git -C store update-ref -d refs/refrain-head/r_1; rm -r store/objects/pack/*
echo `+filepath.Join(from, ".git", "objects")+` > store/objects/info/alternates`)
	tree = open(t, cfg)
	sh(t, from, lose)
	h := worksOn(t, tree, "package b\n")
	if _, err := tree.Branch(t.Context(), h, "result", "Result"); err != nil {
		t.Fatal(err)
	}
	sh(t, from, "git fsck --full --strict")
}

// A second run that begins with the same commit stores nothing again, and the last one to be removed leaves nothing.
func TestRunsShareTheFilesOfACommit(t *testing.T) {
	from, store := amended(t), t.TempDir()
	packs := func() []string {
		names, _ := filepath.Glob(filepath.Join(store, "store", "objects", "pack", "*.pack"))
		return names
	}
	for _, run := range []string{"one", "two"} {
		open(t, workspace.Config{From: from, Store: store, Run: run}).Close()
	}
	if n := len(packs()); n != 1 {
		t.Errorf("the store has %d packs", n)
	}
	long := time.Now().Add(-2 * time.Hour)
	for _, name := range packs() {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"one", "two"} {
		if err := workspace.Remove(t.Context(), store, run); err != nil {
			t.Fatal(err)
		}
	}
	if got := sh(t, store, "find store/objects -type f -not -path '*/info/*'"); got != "" {
		t.Errorf("the store has still %s", got)
	}
}

// The tree of an older version without its commit opens if the user's repository has the commit no longer; another fault is reported.
func TestATreeOfAnOlderVersionReportsFaults(t *testing.T) {
	from, store := amended(t), t.TempDir()
	cfg := workspace.Config{From: from, Store: store}
	open(t, cfg).Close()
	sh(t, store, `rm runs/*/commit; git -C store update-ref -d refs/refrain-head/r_1
git -C store update-ref refs/refrain-head/r_1/x $(git -C store for-each-ref --count=1 --format='%(objectname)')`)
	if tree, err := workspace.Open(t.Context(), cfg); err == nil {
		tree.Close()
		t.Error("a fault of the store is not reported")
	}
	sh(t, from, lose)
	open(t, cfg)
}

// After the user has amended the commit with which the run began, a merge would bring the old one back.
func TestTakingAfterAnAmend(t *testing.T) {
	from := amended(t)
	tree := open(t, workspace.Config{From: from, Store: t.TempDir()})
	h := worksOn(t, tree, "package b\n")
	if way, err := tree.Taking(t.Context(), h); err != nil || way != workspace.Merge {
		t.Error(way, err)
	}
	sh(t, from, "echo more >>new.txt; git commit -qam third")
	if way, err := tree.Taking(t.Context(), h); err != nil || way != workspace.Merge {
		t.Error(way, err)
	}
	sh(t, from, "git reset -q --hard HEAD~; git commit -q --amend -m amended")
	if way, err := tree.Taking(t.Context(), h); err != nil || way != workspace.CherryPick {
		t.Error(way, err)
	}
}
