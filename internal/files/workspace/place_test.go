// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// runIn runs a command in a tree, and returns what it prints.
func runIn(t *testing.T, tree *workspace.Tree, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = tree.Work(), append(os.Environ(), append(tree.Environ(), "GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", name, cmd.Dir, err, out)
	}
	return string(out)
}

// monorepo makes a repository whose folders need each other: two modules in a workspace of Go, and one with a replace directive.
func monorepo(t *testing.T) string {
	t.Helper()
	needGit(t)
	dir := filepath.Join(t.TempDir(), "mono")
	for name, text := range map[string]string{
		"go.work":                 "go 1.24\n\nuse (\n\t./apps/a\n\t./lib\n)\n",
		"lib/go.mod":              "module example.com/lib\n\ngo 1.24\n",
		"lib/lib.go":              "package lib\n\nconst One = 1\n",
		"lib/lib_test.go":         "package lib\n",
		"apps/a/go.mod":           "module example.com/a\n\ngo 1.24\n",
		"apps/a/a.go":             "package a\n\nimport \"example.com/lib\"\n\nconst Two = lib.One + 1\n",
		"apps/a/a_test.go":        "package a\n",
		"apps/a/.gitignore":       ".env\n",
		"apps/a/.env":             "SECRET=1\n",
		"apps/a/.refrain/own":     "x",
		"apps/b/go.mod":           "module example.com/b\n\ngo 1.24\n\nrequire example.com/lib v0.0.0\n\nreplace example.com/lib => ../../lib\n",
		"apps/b/b.go":             "package b\n\nimport \"example.com/lib\"\n\nconst Three = lib.One + 2\n",
		"apps/a/.worktreeinclude": "/.env\n",
	} {
		write(t, dir, name, text)
	}
	sh(t, dir, "git init -q -b main; git add -A; git reset -q apps/a/.refrain; git commit -qm first")
	return dir
}

func TestAFolderOfAMonorepo(t *testing.T) {
	from := monorepo(t)
	a := filepath.Join(from, "apps", "a")
	tree := open(t, workspace.Config{From: a, Protect: []string{"a_test.go", "**/*_test.go"}, Exclude: []string{"hidden"}})
	if want := filepath.Join(tree.Dir(), "apps", "a"); tree.Work() != want || tree.Up() != "../.." {
		t.Fatalf("the work is done in %s, %s below the top; want %s", tree.Work(), tree.Up(), want)
	}
	same(t, "the tree", files(t, from, ".git", ".refrain", "apps/a/.refrain"), files(t, tree.Dir(), ".git"))
	runIn(t, tree, "go", "vet", "./...") // which go.work makes possible
	write(t, tree.Work(), "a.go", "package a\n")
	write(t, tree.Work(), "a_test.go", "package a // weaker\n")
	write(t, tree.Dir(), "lib/lib_test.go", "package lib // weaker\n")
	h := snapshot(t, tree)
	touched, err := tree.Protected(t.Context(), tree.Start(), h, []string{"a_test.go", "**/*_test.go"})
	if err != nil || len(touched) != 2 || tree.Seen(touched[1].Path) != "../../lib/lib_test.go" || tree.Seen(touched[0].Path) != "a_test.go" {
		t.Errorf("the protected files are %v, %v", touched, err)
	}
	if only, err := tree.Protected(t.Context(), tree.Start(), h, []string{"*_test.go"}); err != nil || len(only) != 1 {
		t.Errorf("a pattern of the folder matches %v, %v", only, err)
	}
	if _, err := tree.Branch(t.Context(), h, "refrain/a", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git diff --name-only main refrain/a"); got != "apps/a/a.go\napps/a/a_test.go\nlib/lib_test.go\n" {
		t.Errorf("the branch changes %q", got)
	}
	clean := ""
	if err := tree.Clean(t.Context(), tree.Start(), nil, "", func(dir string, _ []string) error {
		clean = dir
		return os.WriteFile(filepath.Join(dir, "gone"), nil, 0o600)
	}); err != nil || !strings.HasSuffix(clean, filepath.Join("tree", "apps", "a")) {
		t.Errorf("a clean checkout is in %s, %v", clean, err)
	}
	b := open(t, workspace.Config{From: filepath.Join(from, "apps", "b"), Store: filepath.Join(from, ".refrain", "files"), Run: "r_b"})
	cmd := exec.Command("go", "vet", "./...") // which the replace directive makes possible
	cmd.Dir, cmd.Env = b.Work(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet in %s: %v\n%s", cmd.Dir, err, out)
	}
}

func TestAFolderOfAMonorepoWhichIsReopenedAndForked(t *testing.T) {
	from := monorepo(t)
	cfg := workspace.Config{From: filepath.Join(from, "apps", "a"), Store: filepath.Join(from, "apps", "a", ".refrain", "files")}
	tree := open(t, cfg)
	work := tree.Work()
	tree.Close()
	if tree = open(t, cfg); tree.Work() != work {
		t.Errorf("the tree works in %s, and before in %s", tree.Work(), work)
	}
	cfg.Run, cfg.ForkOf = "r_2", "r_1"
	if fork := open(t, cfg); fork.Up() != "../.." || fork.Start() != tree.Start() {
		t.Errorf("the fork works in %s, and begins with %s", fork.Work(), fork.Start())
	}
	// A tree of an older version is a copy of the folder.
	old := filepath.Join(cfg.Store, "runs", "r_3")
	cfg.Run, cfg.ForkOf = "r_3", ""
	write(t, old, "from", cfg.From)
	write(t, old, "exclude", "")
	if tree := open(t, cfg); tree.Work() != tree.Dir() || tree.Up() != "" {
		t.Errorf("an older tree works in %s", tree.Work())
	}
}

func TestARepositoryOfTheHomeDirectoryIsNotCopied(t *testing.T) {
	from := monorepo(t)
	t.Setenv("HOME", filepath.Join(from, "lib"))
	tree := open(t, workspace.Config{From: filepath.Join(from, "apps", "a")})
	same(t, "the tree", files(t, filepath.Join(from, "apps", "a"), ".refrain", ".env"), files(t, tree.Dir(), ".git"))
}

func TestUntrackedFilesOutsideOfTheFolderAreNotCopied(t *testing.T) {
	from := repository(t)
	sh(t, from, "mkdir sub/other; cd sub/other; git init -q; echo x >x; git add x; git commit -qm x; cd ../..; echo mine >sub/deep/mine; "+
		"echo secret >deploy.key; mkdir big; head -c 6000 /dev/zero >big/model.bin")
	cfg := workspace.Config{From: filepath.Join(from, "sub", "deep"), Copy: []string{"new.txt", ".env"}}
	cfg.Limits.FileSize = 5000
	tree := open(t, cfg)
	for name, want := range map[string]bool{
		"staged": true, "sub/deep/mine": true, ".env": true,
		"new.txt": false, "run.sh": false, "deploy.key": false, "big": false, "sub/other": false,
	} {
		if _, err := os.Lstat(filepath.Join(tree.Dir(), filepath.FromSlash(name))); (err == nil) != want {
			t.Errorf("%s is in the copy: %v, %v; want %v", name, err == nil, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(tree.Dir(), "a.go")); err != nil || string(got) != "package a\nchanged\n" {
		t.Errorf("the changed file outside of the folder is %q, %v", got, err)
	}
	write(t, tree.Work(), "result", "result\n")
	if _, err := tree.Branch(t.Context(), snapshot(t, tree), "refrain/untracked", "Result"); err != nil {
		t.Fatal(err)
	}
	got := sh(t, from, "git diff --name-only main refrain/untracked~; git diff --name-only refrain/untracked~ refrain/untracked")
	if got != "a.go\nrun.sh\nstaged\nsub/deep/mine\nsub/deep/result\n" {
		t.Errorf("the branch changes %q", got)
	}
}

func TestSubmodulesAreCopied(t *testing.T) {
	from := repository(t)
	sh(t, from, "git -c protocol.file.allow=always submodule --quiet add ../project lib; git commit -qam lib; echo dirty >lib/a.go; "+
		"mkdir sub/mine; cd sub/mine; git init -q; echo x > x; git add x; git commit -qm x")
	tree := open(t, workspace.Config{From: filepath.Join(from, "sub", "deep")})
	if got, err := os.ReadFile(filepath.Join(tree.Dir(), "lib", "a.go")); err != nil || string(got) != "dirty\n" {
		t.Errorf("the file of the submodule is %q, %v", got, err)
	}
	if got := tree.Modules(); !slices.Equal(got, []string{"lib"}) {
		t.Errorf("the submodules are %q", got)
	}
	beside, err := tree.Beside(t.Context(), "branch")
	if err != nil {
		t.Fatal(err)
	}
	if err := beside.Clean(t.Context(), beside.Start(), nil, "", func(dir string, _ []string) error {
		_, err := os.Stat(filepath.Join(dir, "..", "..", "lib", "a.go"))
		return err
	}); err != nil {
		t.Errorf("the submodule in a clean checkout beside the tree: %v", err)
	}
	beside.Close()
	write(t, tree.Dir(), "lib/a.go", "changed\n")
	write(t, tree.Work(), "new", "new\n")
	if _, err := tree.Branch(t.Context(), snapshot(t, tree), "refrain/lib", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git diff --name-only refrain/lib~ refrain/lib; git ls-tree refrain/lib lib | cut -c1-6"); got != "sub/deep/new\n160000\n" {
		t.Errorf("the branch changes %q", got)
	}
}

func TestACopyOutsideOfTheRepository(t *testing.T) {
	from, copies := repository(t), filepath.Join(t.TempDir(), "trees")
	cfg := workspace.Config{From: from, Copies: copies}
	tree := open(t, cfg)
	beside, err := tree.Beside(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	beside.Close()
	clean := ""
	if err := tree.Clean(t.Context(), tree.Start(), nil, "", func(dir string, _ []string) error { clean = dir; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{tree.Dir(), beside.Dir(), clean} {
		if !strings.HasPrefix(dir, copies+"/project-") {
			t.Errorf("a copy is in %s, and not in %s", dir, copies)
		}
	}
	write(t, tree.Dir(), "a.go", "package b\n")
	h := snapshot(t, tree)
	tree.Close()
	if again := open(t, workspace.Config{From: from}); again.Dir() != tree.Dir() {
		t.Errorf("the copy is found in %s", again.Dir())
	} else if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := workspace.Copies(copies); err != nil || len(all) != 1 || all[0].Gone || all[0].Size < 100 {
		t.Errorf("the copies are %+v, %v", all, err)
	}
	// Another folder of the user that a stranger's note names is not the place of a copy.
	mine := filepath.Join(t.TempDir(), "mine")
	write(t, mine, "tree/thesis", "text")
	note := filepath.Join(from, ".refrain", "files", "runs", "r_1", "place")
	place, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Dir(note), "place", mine)
	other := open(t, cfg)
	if other.Dir() != tree.Dir() {
		t.Errorf("the copy of a wrong note is in %s", other.Dir())
	}
	if _, err := other.Ensure(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	other.Close()
	write(t, filepath.Dir(note), "place", mine)
	if err := workspace.Remove(t.Context(), filepath.Join(from, ".refrain", "files"), "r_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(mine, "tree", "thesis")); err != nil {
		t.Errorf("the user's folder: %v", err)
	}
	if all, err := workspace.Copies(copies); err != nil || len(all) != 1 || !all[0].Gone || all[0].Dir != string(place) {
		t.Errorf("the copies without a run are %+v, %v", all, err)
	}
	cfg.Run = "r_2"
	open(t, cfg).Close()
	if err := workspace.Remove(t.Context(), filepath.Join(from, ".refrain", "files"), "r_2"); err != nil {
		t.Fatal(err)
	}
	if all, err := workspace.Copies(copies); err != nil || len(all) != 1 {
		t.Errorf("after the removal the copies are %+v, %v", all, err)
	}
	inside := workspace.Config{From: from, Store: t.TempDir(), Run: "r", Copies: filepath.Join(from, "x")}
	if _, err := workspace.Open(t.Context(), inside); !isA[*workspace.RefusedError](err) {
		t.Errorf("copies inside of the repository: %v", err)
	}
}

func TestCopiesBehindALink(t *testing.T) {
	real, link := filepath.Join(t.TempDir(), "trees"), filepath.Join(t.TempDir(), "link")
	if all, err := workspace.Copies(link); err != nil || len(all) != 0 {
		t.Errorf("a folder that does not exist has the copies %+v, %v", all, err)
	}
	repository := filepath.Join(t.TempDir(), "project")
	room, place := filepath.Join(repository, ".refrain", "files", "runs", "r_1"), filepath.Join(real, "project-1", "r_1")
	write(t, room, "place", place)
	write(t, place, "of", room)
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	is := func(what string, gone, lost bool) {
		t.Helper()
		if all, err := workspace.Copies(link); err != nil || len(all) != 1 || all[0].Gone != gone || all[0].Lost != lost {
			t.Errorf("%s: the copies are %+v, %v", what, all, err)
		}
	}
	is("a run that exists", false, false)
	write(t, room, "place", filepath.Join(link, "project-1", "r_1"))
	is("a note with the name of the link", false, false)
	write(t, room, "place", t.TempDir())
	is("a run with another copy", true, false)
	if err := os.RemoveAll(room); err != nil {
		t.Fatal(err)
	}
	is("a run that was deleted", true, false)
	if err := os.Rename(repository, repository+"-unmounted"); err != nil {
		t.Fatal(err)
	}
	is("a repository that is not there", false, true)
}

// pnpm returns the program, which the long form installs from the registry with npm.
func pnpm(t *testing.T) string {
	t.Helper()
	if bin, err := exec.LookPath("pnpm"); err == nil {
		return bin
	}
	if !longtest.On() {
		t.Skip("pnpm is not installed; the long form installs it")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, "pnpm@9")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: npm cannot install pnpm, so no workspace of pnpm is tried: %v\n%s", err, out)
	}
	return filepath.Join(dir, "node_modules", ".bin", "pnpm")
}

// The packages of a workspace of pnpm find each other in the copy, after its own setup, and the repository stays as it was.
func TestAFolderOfAPnpmWorkspace(t *testing.T) {
	needGit(t)
	bin := pnpm(t)
	from := filepath.Join(t.TempDir(), "mono")
	for name, text := range map[string]string{
		"pnpm-workspace.yaml":       "packages:\n  - packages/*\n",
		"package.json":              `{"name": "mono", "private": true}`,
		".gitignore":                "node_modules/\n",
		"packages/lib/package.json": `{"name": "lib", "version": "1.0.0", "main": "index.js"}`,
		"packages/lib/index.js":     "module.exports = 1\n",
		"packages/app/package.json": `{"name": "app", "version": "1.0.0", "dependencies": {"lib": "workspace:*"}}`,
		"packages/app/index.js":     "console.log(require('lib') + 1)\n",
	} {
		write(t, from, name, text)
	}
	sh(t, from, "git init -q -b main; git add -A; git commit -qm first")
	tree := open(t, workspace.Config{From: filepath.Join(from, "packages", "app"), Setup: func(_ context.Context, dir string, env []string) error {
		cmd := exec.CommandContext(t.Context(), bin, "install", "--offline", "--config.confirmModulesPurge=false")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		return err
	}})
	if got := runIn(t, tree, "node", "index.js"); got != "2\n" {
		t.Errorf("the program says %q", got)
	}
	write(t, tree.Dir(), "packages/lib/index.js", "module.exports = 2\n")
	if got := runIn(t, tree, "node", "index.js"); got != "3\n" {
		t.Errorf("after a change of the other package the program says %q", got)
	}
	if _, err := tree.Branch(t.Context(), snapshot(t, tree), "refrain/pnpm", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git diff --name-only main refrain/pnpm; git status --porcelain"); !strings.Contains(got, "packages/lib/index.js\n") ||
		strings.Contains(got, "node_modules") || strings.Contains(got, "??") && !strings.Contains(got, ".refrain/") {
		t.Errorf("the branch and the repository have %q", got)
	}
}
