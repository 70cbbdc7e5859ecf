// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// needGit skips a test where there is no git.
func needGit(t testing.TB) {
	t.Helper()
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
}

// sh runs a shell script in a folder.
func sh(t testing.TB, dir, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{
		"GIT_CONFIG_GLOBAL=" + filepath.Join(filepath.Dir(dir), "gitconfig"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=ana", "GIT_AUTHOR_EMAIL=ana@example.com", "GIT_COMMITTER_NAME=ana", "GIT_COMMITTER_EMAIL=ana@example.com",
	}, env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// repository makes a repository with uncommitted changes.
func repository(t testing.TB) string {
	t.Helper()
	needGit(t)
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, `git init -q -b main
printf 'package a\n' > a.go; printf 'package a // test\n' > a_test.go
mkdir -p sub/deep; printf 'crlf\r\nline\r\n' > sub/deep/win.txt; printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
ln -s a.go link; printf '.env\nbuild/\nforced.log\n' > .gitignore; echo kept > forced.log
git add -A; git add -f forced.log; git commit -qm first
echo secret > .env; mkdir build; echo o > build/o; echo new > new.txt; echo changed >> a.go; rm run.sh; echo staged > staged; git add staged`)
	return dir
}

func open(t testing.TB, cfg workspace.Config) *workspace.Tree {
	t.Helper()
	if cfg.Store == "" {
		cfg.Store = filepath.Join(cfg.From, ".refrain", "files")
	}
	if cfg.Run == "" {
		cfg.Run = "r_1"
	}
	tree, err := workspace.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func snapshot(t testing.TB, tree *workspace.Tree) workspace.Hash {
	t.Helper()
	h, err := tree.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files describes all files below a folder, except those of skip.
func files(t testing.TB, dir string, skip ...string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		for _, s := range skip {
			if name == s {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			all[name] = "link " + target
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[name] = fmt.Sprintf("%v %x", info.Mode().Perm()&0o100 != 0, sha256.Sum256(text))
		default:
			all[name] = info.Mode().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

func TestATreeBeginsWithTheFilesAsTheyAre(t *testing.T) {
	from := repository(t)
	write(t, from, ".worktreeinclude", "build/\n")
	tree := open(t, workspace.Config{From: from, Copy: []string{".env"}})
	same(t, "the tree", files(t, from, ".git", ".refrain"), files(t, tree.Dir(), ".git"))
	if h := snapshot(t, tree); h != tree.Start() {
		t.Errorf("an untouched tree has the hash %s, and it began with %s", h, tree.Start())
	}
	head := open(t, workspace.Config{From: from, Run: "r/2", Base: workspace.Head})
	if got := files(t, head.Dir(), ".git"); got["new.txt"] != "" || got["run.sh"] == "" || got["forced.log"] == "" {
		t.Errorf("the last commit has the files %v", got)
	}
}

func TestAPlainFolderAndAPartOfARepository(t *testing.T) {
	needGit(t)
	plain := filepath.Join(t.TempDir(), "plain")
	write(t, plain, "a", "1")
	write(t, plain, "b/c", "2")
	tree := open(t, workspace.Config{From: plain})
	same(t, "the tree", files(t, plain, ".refrain"), files(t, tree.Dir(), ".git"))
	write(t, tree.Dir(), "a", "3")
	if _, err := tree.Branch(t.Context(), snapshot(t, tree), "x", "x"); !isA[*workspace.RefusedError](err) {
		t.Errorf("a branch of a plain folder: %v", err)
	}
	from := repository(t)
	part := open(t, workspace.Config{From: filepath.Join(from, "sub")})
	write(t, part.Work(), "deep/more", "text\n")
	if _, err := part.Branch(t.Context(), snapshot(t, part), "refrain/part", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git diff --name-only refrain/part~ refrain/part"); got != "sub/deep/more\n" {
		t.Errorf("the branch changes %q", got)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestRestoreIsExactAndLosesNothing(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from, Copy: []string{".env"}})
	good := files(t, tree.Dir(), ".git")
	sh(t, tree.Dir(), `rm -r sub a_test.go; printf x > sub; chmod +x a.go; rm link; mkdir link; echo y > link/y
rm new.txt; ln -s /etc/passwd new.txt; echo '*.txt' >> .gitignore; echo hidden > hidden.txt; rm -rf .git; rm forced.log`)
	bad := files(t, tree.Dir(), ".git")
	salvaged, err := tree.Restore(t.Context(), tree.Start())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "restored", good, files(t, tree.Dir(), ".git"))
	if _, err := tree.Restore(t.Context(), salvaged); err != nil {
		t.Fatal(err)
	}
	delete(bad, "hidden.txt") // ignored
	same(t, "salvaged", bad, files(t, tree.Dir(), ".git"))
	if _, err := tree.Restore(t.Context(), "0123456789012345678901234567890123456789"); !errors.Is(err, workspace.ErrUnknownTree) {
		t.Errorf("an unknown hash: %v", err)
	}
	if _, err := tree.Restore(t.Context(), "HEAD"); !errors.Is(err, workspace.ErrUnknownTree) {
		t.Errorf("no hash: %v", err)
	}
}

// hostile are things that an agent may do in its tree.
var hostile = map[string]string{
	"git":     `git reset -q --hard; echo x > x; git stash -q -u; git clean -qfdx; git commit -q --allow-empty -m x; git checkout -q --orphan y`,
	"no git":  `rm -rf .git; git reset --hard || true; git stash || true; git clean -fdx || true; git commit -am x || true`,
	"hooks":   `mkdir -p .git/hooks; printf '#!/bin/sh\ntouch %s\n' "$PWNED" > .git/hooks/post-index-change; chmod +x .git/hooks/*; echo 1 > n`,
	"filter":  `echo '* filter=evil diff=evil merge=evil ident eol=crlf text working-tree-encoding=UTF-16' > .gitattributes; git config filter.evil.clean "touch $PWNED"; git config core.fsmonitor "touch $PWNED"; echo '$Id$' > id`,
	"crlf":    `printf 'a\r\nb\n' > mixed.txt; git config core.autocrlf true`,
	"link":    `ln -s / root; ln -s ../../../../.. up; rm -rf sub; ln -s "$FROM/sub" sub`,
	"modes":   `chmod 755 a.go; chmod 600 new.txt`,
	"many":    `mkdir many; for i in $(seq 1 ` + longtest.N("300", "10000") + `); do echo $i > many/$i; done`,
	"inner":   `mkdir -p sub/.git; cd sub; rm -rf .git; git init -q; git add -A; git commit -qm x; echo more > more`,
	"names":   "printf x > \"$(printf 'new\\nline')\"; printf y > '-rf'; printf z > '*'; printf u > 'ü \"q\"'; mkdir ':(top)'; printf v > ':(top)/f'",
	"lfs":     `printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n' > big.bin; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes`,
	"replace": `rm -rf a.go; mkdir a.go; echo x > a.go/x`,
	"gone":    `rm -rf * .git* .env`,
	"worktree": `git worktree add -q ../other 2>/dev/null || true; git config core.worktree "$FROM" || true
echo x > y; git add -A || true`,
	"gitlink": `rm -rf .git; ln -s "$FROM/.git" .git`,
}

func TestAHostileAgentLeavesTheRepositoryAsItWas(t *testing.T) {
	from := repository(t)
	pwned := filepath.Join(t.TempDir(), "pwned")
	before := files(t, from, ".refrain")
	tree := open(t, workspace.Config{From: from})
	good := files(t, tree.Dir(), ".git")
	env := append(tree.Environ(), "PWNED="+pwned, "FROM="+from)
	for range longtest.N(1, 7) { // 100 iterations, in the long form
		for name, script := range hostile {
			if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sh(t, tree.Dir(), script, env...)
			os.Remove(pwned) // by its own git
			bad := files(t, tree.Dir(), ".git", filepath.Join("sub", ".git"))
			h, err := tree.Snapshot(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := tree.Restore(t.Context(), tree.Start()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			same(t, name+": restored", good, files(t, tree.Dir(), ".git"))
			if _, err := tree.Restore(t.Context(), h); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			same(t, name+": snapshot", bad, files(t, tree.Dir(), ".git"))
			same(t, name+": the user's folder", before, files(t, from, ".refrain"))
			if _, err := os.Stat(pwned); err == nil {
				t.Errorf("%s: code of the agent ran in the git of the store", name)
			}
			sh(t, tree.Dir(), "rm -rf .git")
		}
	}
}

func TestASnapshotThatFailsIsAnError(t *testing.T) {
	from := repository(t)
	for name, script := range map[string]string{
		"a pipe":       `rm a.go; mkfifo a.go`,
		"a large file": `head -c 3000 /dev/zero > in`,
	} {
		tree := open(t, workspace.Config{From: from, Run: strings.ReplaceAll(name, " ", "-"), Limits: workspace.Limits{FileSize: 2000}})
		sh(t, tree.Dir(), "echo y > y; "+script)
		h, err := tree.Snapshot(t.Context())
		if err == nil {
			t.Errorf("%s: the snapshot is %s, and it began with %s", name, h, tree.Start())
		}
		if name == "a pipe" {
			continue
		}
		if !isA[*workspace.LimitError](err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, files(t, from, ".git", ".env", "build", ".refrain"), files(t, tree.Dir(), ".git"))
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(tree.Dir()), "salvage", "*", "in")); len(found) != 1 {
			t.Errorf("%s: it is not in the salvage", name)
		}
	}
}

// Repositories that a program makes in the tree are left out, and the other files are stored.
func TestRepositoriesInsideTheTreeAreLeftOut(t *testing.T) {
	from := repository(t)
	for name, c := range map[string]struct{ script, left string }{
		"with commits":    {`mkdir in; cd in; git init -q; echo x > x; git add x; git commit -qm x`, "in"},
		"without commits": {`mkdir in; cd in; git init -q; echo x > x`, "in"},
		"of a clone":      {`git clone -q . in`, "in"},
		"of a worktree":   {`git worktree add -q in`, "in"},
		"in capitals":     {`mkdir -p in/.GIT; echo x > in/.GIT/config`, "in/.GIT"},
		"as a file":       {`mkdir in; echo x > in/.Git`, "in/.Git"},
		"at the top":      {`mkdir .GIT; echo x > .GIT/x`, ".GIT"},
		"around files":    {`cd sub; git init -q; echo x > deep/x`, ""},
	} {
		tree := open(t, workspace.Config{From: from, Run: strings.ReplaceAll(name, " ", "-")})
		if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
			t.Fatal(err)
		}
		sh(t, tree.Dir(), "echo y > y; rm staged; "+c.script)
		h, err := tree.Snapshot(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		changes, err := tree.Files(t.Context(), tree.Start(), h)
		if err != nil || len(changes) < 2 || len(changes) > 3 {
			t.Errorf("%s: the changes are %v, %v", name, changes, err)
		}
		if got := strings.Join(tree.LeftOut(), " "); got != c.left {
			t.Errorf("%s: %q is left out", name, got)
		}
		if again, err := tree.Snapshot(t.Context()); err != nil || again != h {
			t.Errorf("%s: the next snapshot is %s, %v", name, again, err)
		}
		if _, err := tree.Restore(t.Context(), tree.Start()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, files(t, from, ".git", ".env", "build", ".refrain"), files(t, tree.Dir(), ".git"))
	}
}

func TestLimits(t *testing.T) {
	from := repository(t)
	var limit *workspace.LimitError
	tree := open(t, workspace.Config{From: from, Limits: workspace.Limits{Files: 2, Lines: 5}})
	write(t, tree.Dir(), "1", "a\nb\nc\n")
	snapshot(t, tree)
	write(t, tree.Dir(), "2", "a\nb\nc\n")
	if _, err := tree.Snapshot(t.Context()); !errors.As(err, &limit) || limit.Limit != "lines" || limit.Is != 6 {
		t.Errorf("six lines: %v", err)
	}
	write(t, tree.Dir(), "1", "")
	write(t, tree.Dir(), "2", "")
	write(t, tree.Dir(), "3", "")
	if _, err := tree.Snapshot(t.Context()); !errors.As(err, &limit) || limit.Limit != "files" {
		t.Errorf("three files: %v", err)
	}
	_, err := workspace.Open(t.Context(), workspace.Config{From: from, Store: t.TempDir(), Run: "r", Limits: workspace.Limits{FileSize: 5}})
	if !errors.As(err, &limit) || limit.Limit != "file_size" {
		t.Errorf("a large file of the user: %v", err)
	}
	small := open(t, workspace.Config{From: from, Run: "r", Store: t.TempDir(), Limits: workspace.Limits{Store: 1}})
	write(t, small.Dir(), "1", "a")
	if _, err := small.Snapshot(t.Context()); !errors.As(err, &limit) || limit.Limit != "store" {
		t.Errorf("a full store: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	large := repository(t)
	if file := filepath.Join(large, "large"); os.WriteFile(file, nil, 0o600) == nil && os.Truncate(file, 1<<43) == nil { // a hole
		_, err := workspace.Open(t.Context(), workspace.Config{From: large, Store: t.TempDir(), Run: "r", Limits: workspace.Limits{FileSize: 1 << 44}})
		if limit, ok := errors.AsType[*workspace.LimitError](err); !ok || limit.Limit != "disk" {
			t.Errorf("more than the disk has: %v", err)
		}
	}
	from := repository(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	sh(t, from, "mkdir inner; cd inner; git init -q; echo x > x; git add x; git commit -qm x")
	for _, folder := range []string{"/", home, filepath.Dir(home), from, filepath.Join(from, ".git"), filepath.Join(from, "none")} {
		_, err := workspace.Open(t.Context(), workspace.Config{From: folder, Store: t.TempDir(), Run: "r"})
		if err == nil || folder != filepath.Join(from, "none") && !isA[*workspace.RefusedError](err) {
			t.Errorf("from %s: %v", folder, err)
		}
	}
}

func TestTheLastCommitHasToBeThere(t *testing.T) {
	needGit(t)
	from := t.TempDir()
	sh(t, from, "git init -q; mkdir sub; echo x > sub/x; echo y > y")
	refused := func(folder, want string) {
		t.Helper()
		_, err := workspace.Open(t.Context(), workspace.Config{From: folder, Store: t.TempDir(), Run: "r", Base: workspace.Head})
		if !isA[*workspace.RefusedError](err) || !strings.Contains(err.Error(), want) {
			t.Errorf("from %s: %v", folder, err)
		}
	}
	refused(from, "no commit yet, which the base head begins with: commit the files, or use the base dirty")
	refused(filepath.Join(from, "sub"), "no commit yet")
	sh(t, from, "git add y; git commit -qm y")
	refused(filepath.Join(from, "sub"), "does not have this folder: commit it, or use the base dirty")
}

func TestATreeThatWasLeftIsAsItWas(t *testing.T) {
	from := repository(t)
	cfg := workspace.Config{From: from, Setup: func(_ context.Context, dir string, env []string) error {
		return os.WriteFile(filepath.Join(dir, "installed"), []byte(strings.Join(env, "\n")), 0o644)
	}}
	tree := open(t, cfg)
	write(t, tree.Dir(), "mine", "1")
	h := snapshot(t, tree)
	tree.Close()
	cfg.Setup = func(context.Context, string, []string) error { return errors.New("again") }
	tree = open(t, cfg)
	if salvaged, err := tree.Ensure(t.Context(), h); err != nil || salvaged != "" {
		t.Fatalf("an untouched tree was restored from %q: %v", salvaged, err)
	}
	tree.Close()
	write(t, tree.Dir(), "mine", "half done") // by a program that was killed after Ensure
	tree = open(t, cfg)
	salvaged, err := tree.Ensure(t.Context(), h)
	if err != nil || salvaged == "" {
		t.Fatalf("a changed tree was taken for the same: %v", err)
	}
	if changes, err := tree.Files(t.Context(), h, salvaged); err != nil || len(changes) != 1 || changes[0].Path != "mine" {
		t.Errorf("the salvage differs in %v, %v", changes, err)
	}
	snapshot(t, tree)
	tree.Close()
	write(t, tree.Dir(), "mine", "a stranger's")
	tree = open(t, cfg)
	var edited workspace.Hash
	for range 2 {
		_, err := tree.Ensure(t.Context(), h)
		var stranger *workspace.StrangerError
		if !errors.As(err, &stranger) || len(stranger.Paths) != 1 || stranger.Paths[0] != "mine" {
			t.Fatalf("the edit of a stranger: %v", err)
		}
		edited = stranger.Tree
	}
	if was, err := tree.Ensure(t.Context(), edited); err != nil || was != "" {
		t.Fatalf("the files that somebody has decided to keep: %q, %v", was, err)
	}
	if got := snapshot(t, tree); got != edited {
		t.Fatalf("the files are those of %s, want %s", got, edited)
	}
	sh(t, tree.Dir(), "echo again > mine")
	tree.Close()
	if err := os.RemoveAll(tree.Dir()); err != nil { // as the error says
		t.Fatal(err)
	}
	cfg.Setup = func(_ context.Context, dir string, _ []string) error { // a new folder needs it
		return os.WriteFile(filepath.Join(dir, "installed"), []byte("again"), 0o644)
	}
	tree = open(t, cfg)
	if again, err := os.ReadFile(filepath.Join(tree.Dir(), "installed")); err != nil || string(again) != "again" {
		t.Errorf("the setup of the new folder has left %q, %v", again, err)
	}
	if _, err := tree.Ensure(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := snapshot(t, tree); got != h {
		t.Errorf("the files are those of %s", got)
	}
}

func TestProtect(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	sh(t, tree.Dir(), "echo cheat > a_test.go; echo x > b_test.go; echo good > a.go; rm -r sub; echo file > sub")
	now := snapshot(t, tree)
	touched, err := tree.Protected(t.Context(), tree.Start(), now, []string{"**/*_test.go", "sub/deep"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := tree.PutBack(t.Context(), now, touched)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range touched {
		names = append(names, c.Status+" "+c.Path)
	}
	if diff := cmp.Diff([]string{"M a_test.go", "A b_test.go", "D sub/deep/win.txt"}, names); diff != "" {
		t.Error(diff)
	}
	if snapshot(t, tree) != h {
		t.Error("the files are not those of the hash")
	}
	want := files(t, from, ".git", ".env", "build", ".refrain")
	got := files(t, tree.Dir(), ".git")
	want["a.go"] = got["a.go"]
	same(t, "protected", want, got)
	if touched, err := tree.Protected(t.Context(), tree.Start(), h, []string{"**/*_test.go"}); err != nil || touched != nil {
		t.Errorf("nothing to put back: %v, %v", touched, err)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"**/*_test.go", "a_test.go", true}, {"**/*_test.go", "x/y/a_test.go", true}, {"**/*_test.go", "a.go", false},
		{"go.mod", "go.mod", true}, {"go.mod", "x/go.mod", false}, {"x", "x/y/z", true}, {"x/**", "x/y", true}, {"x/**", "x", false},
		{"**", "x", true}, {"x/*/z", "x/y/z", true}, {"x/*/z", "x/z", false}, {"a**/b", "aa/b", true},
	} {
		if got := workspace.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
	for _, bad := range []string{"", "/x", "../x", "a//b", "[", `a\b`} {
		if workspace.CheckPattern(bad) == nil {
			t.Errorf("the pattern %q is taken", bad)
		}
	}
}

// The command that a branch is taken with works, whatever the user has not committed.
func TestTaking(t *testing.T) {
	for _, tt := range []struct {
		dirty string
		want  workspace.Taking
	}{
		{"true", workspace.Merge},
		{"echo of init >fix-tests.yaml; echo more >>notes", workspace.CherryPick},
		{"echo of init >fix-tests.yaml; echo more >>a", workspace.ApplyDiff},
		{"echo of mine >new", workspace.ApplyDiff},
		{"echo staged >other; git add other", workspace.ApplyDiff},
	} {
		from := repository(t)
		sh(t, from, "echo a >a; echo a >notes; git add -A; git commit -qm second; echo .refrain >>.git/info/exclude; "+tt.dirty)
		tree := open(t, workspace.Config{From: from})
		sh(t, tree.Dir(), "sed s/a/A/ a >b; mv b a; echo the result >>new")
		h := snapshot(t, tree)
		if _, err := tree.Branch(t.Context(), h, "fix", "Result"); err != nil {
			t.Fatal(err)
		}
		got, err := tree.Taking(t.Context(), h)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.dirty, got, err, tt.want)
		}
		take := "git " + string(got) + " fix"
		if got == workspace.ApplyDiff {
			take = "git diff --binary fix~ fix | git apply"
		}
		sh(t, from, take)
		same(t, tt.dirty, files(t, tree.Dir(), ".git"), files(t, from, ".refrain", ".git", ".env", "build"))
	}
}

func TestTheResultGoesBack(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	sh(t, tree.Dir(), `printf 'package a\nvar X int\n' > a.go; rm link; printf '\0\1' > bin; chmod +x bin; rm -r sub; echo f > sub; mkdir d; ln -s x d/l`)
	h := snapshot(t, tree)
	before := files(t, from, ".refrain")

	check := func(branch, message string) error {
		return workspace.CheckBranch(t.Context(), workspace.Config{From: from, Store: t.TempDir(), Run: "other"}, branch, message)
	}
	if err := check("refrain/r_1", "Result of r_1"); err != nil {
		t.Error(err)
	}
	commit, err := tree.Branch(t.Context(), h, "refrain/r_1", "Result of r_1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := tree.Branch(t.Context(), h, "refrain/r_1", "Result of r_1"); err != nil || again != commit {
		t.Errorf("the branch again: %s, %v", again, err)
	}
	if _, err := tree.Branch(t.Context(), h, "main", "Result"); !errors.Is(err, workspace.ErrBranchExists) {
		t.Errorf("a branch that has other files: %v", err)
	}
	room := filepath.Dir(tree.Dir())
	own := workspace.Config{From: from, Store: filepath.Dir(filepath.Dir(room)), Run: filepath.Base(room)}
	if err := workspace.CheckBranch(t.Context(), own, "refrain/r_1", "Result of r_1"); err != nil {
		t.Errorf("the check of a branch that is the result: %v", err)
	}
	if err := check("refrain/r_1", "Result of r_2"); !errors.Is(err, workspace.ErrBranchExists) {
		t.Errorf("the check of a branch that exists: %v", err)
	}
	if err := check("a..b", ""); err == nil || errors.Is(err, workspace.ErrBranchExists) {
		t.Errorf("the check of a bad name: %v", err)
	}
	if _, err := tree.Branch(t.Context(), h, "--force", "Result"); err == nil {
		t.Error("a bad name of a branch is taken")
	}
	same(t, "the files beside the branch", keep(before, ".git/"), keep(files(t, from, ".refrain"), ".git/"))
	out := filepath.Join(filepath.Dir(from), "out")
	sh(t, from, "git worktree add -q ../out refrain/r_1; git worktree prune")
	want := files(t, tree.Dir(), ".git")
	same(t, "the branch", want, files(t, out, ".git"))
	if log := sh(t, from, "git log --format=%s refrain/r_1"); log != "Result of r_1\nThe files that were not committed when the run began\nfirst\n" {
		t.Errorf("the history is %q", log)
	}
	sh(t, from, "git worktree remove --force ../out; git branch -qD refrain/r_1")

	var patch bytes.Buffer
	if err := tree.Patch(t.Context(), h, &patch); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(filepath.Dir(from), "copied")
	sh(t, from, "cp -a . ../copied")
	write(t, filepath.Dir(from), "p", patch.String())
	sh(t, copied, "rm -rf .git .refrain .env build; GIT_CEILING_DIRECTORIES=$(dirname $PWD) git apply ../p")
	same(t, "the patch", want, files(t, copied))

	write(t, from, "new.txt", "still the user's\n")
	if err := tree.Apply(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	want["new.txt"] = files(t, from)["new.txt"]
	same(t, "applied", want, files(t, from, ".git", ".env", "build", ".refrain"))
	write(t, from, "a.go", "the user has gone on\n")
	now := files(t, from, ".refrain")
	if err := tree.Apply(t.Context(), h); !isA[*workspace.ConflictError](err) {
		t.Errorf("a conflict: %v", err)
	}
	same(t, "after a conflict", now, files(t, from, ".refrain"))
}

// A file that only its owner may read stays so.
func TestAppliedFilesKeepTheirPermissions(t *testing.T) {
	from := repository(t)
	sh(t, from, "echo s > secret; chmod 600 secret; echo x > shared; chmod 664 shared; echo r > run; chmod 700 run; echo n > no; chmod 640 no")
	tree := open(t, workspace.Config{From: from})
	sh(t, tree.Dir(), "for f in secret shared run no; do echo more >> $f; done; chmod +x no; chmod -x run; echo new > fresh; chmod +x fresh")
	if err := tree.Apply(t.Context(), snapshot(t, tree)); err != nil {
		t.Fatal(err)
	}
	got := sh(t, from, "umask 022; stat -c '%n %a' secret shared run no fresh")
	if want := "secret 600\nshared 664\nrun 600\nno 750\nfresh 755\n"; got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
}

// keep returns the entries without a prefix.
func keep(all map[string]string, without string) map[string]string {
	some := make(map[string]string)
	for name, v := range all {
		if !strings.HasPrefix(name, without) {
			some[name] = v
		}
	}
	return some
}

// The contents of a branch pass the user's line end conversion, and those of the tree do not.
// The run goes on after its branch was made: the new result takes its place, unless somebody has touched the branch.
func TestABranchIsMadeAgain(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	result := func(content string) (string, error) {
		sh(t, tree.Dir(), "echo "+content+" > a.go")
		return tree.Branch(t.Context(), snapshot(t, tree), "fix", "Result of r_1")
	}
	first, err := result("1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := result("2")
	if err != nil || second == first || sh(t, from, "git show fix:a.go") != "2\n" {
		t.Fatalf("the second result: %s after %s, %v", second, first, err)
	}
	sh(t, from, "git branch -q fix2 fix; git worktree add -q ../checked fix")
	if _, err := result("3"); !errors.Is(err, workspace.ErrBranchExists) {
		t.Errorf("a branch that is checked out: %v", err)
	}
	sh(t, from, "git worktree remove --force ../checked; git commit-tree -p fix -m 'Result of r_1' fix^{tree} | xargs git branch -qf fix")
	if _, err := result("3"); !errors.Is(err, workspace.ErrBranchExists) {
		t.Errorf("a branch with a commit of somebody else: %v", err)
	}
	if got := sh(t, from, "git show fix:a.go"); got != "2\n" {
		t.Errorf("the branch has %q", got)
	}
}

func TestABranchHasTheLineEndsOfTheRepository(t *testing.T) {
	needGit(t)
	from := filepath.Join(t.TempDir(), "project")
	write(t, from, "a.txt", "one\r\n")
	sh(t, from, "git init -q -b main; git config core.autocrlf true; git add -A 2>/dev/null; git commit -qm first")
	tree := open(t, workspace.Config{From: from})
	write(t, tree.Dir(), "a.txt", "one\r\ntwo\r\n")
	if _, err := tree.Branch(t.Context(), snapshot(t, tree), "refrain/x", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git cat-file blob refrain/x:a.txt; git log --format=%s refrain/x"); got != "one\ntwo\nResult\nfirst\n" {
		t.Errorf("the branch has %q", got)
	}
}

func TestTwoProcessesDoNotShareATree(t *testing.T) {
	from := repository(t)
	open(t, workspace.Config{From: from})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := workspace.Open(ctx, workspace.Config{From: from, Store: filepath.Join(from, ".refrain", "files"), Run: "r_1"})
	if err == nil {
		t.Error("a second one opened the tree")
	}
}

func TestRemove(t *testing.T) {
	from := repository(t)
	store := t.TempDir()
	one := open(t, workspace.Config{From: from, Store: store, Run: "one"})
	two := open(t, workspace.Config{From: from, Store: store, Run: "two"})
	write(t, one.Dir(), "x", "1")
	h := snapshot(t, one)
	if _, err := two.Restore(t.Context(), h); err != nil {
		t.Fatal(err) // a fork
	}
	sh(t, one.Dir(), "mkdir -p ro/x; chmod 500 ro")
	one.Close()
	for range 2 {
		if err := workspace.Remove(t.Context(), store, "one"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(one.Dir()); err == nil {
		t.Error("the tree is still there")
	}
	if _, err := two.Restore(t.Context(), two.Start()); err != nil {
		t.Error(err)
	}
	if _, err := two.Restore(t.Context(), h); err != nil {
		t.Error(err)
	}
}
