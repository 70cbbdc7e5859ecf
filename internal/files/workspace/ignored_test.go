// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// ignoring are ways to change protected files so that no snapshot has the change, because git ignores them.
var ignoring = map[string]struct {
	user    string // what the user's folder has
	protect string
	agent   string
	want    []string // the changes
}{
	"a pattern of the user": {`echo '*.local' >> .gitignore`, "**/*.local", `echo x > sub/a.local`, []string{"A sub/a.local"}},
	"a nested .gitignore":   {`echo '*.local' > sub/.gitignore`, "**/*.local", `echo x > sub/deep/a.local`, []string{"A sub/deep/a.local"}},
	"info/exclude":          {`echo '*.local' > .git/info/exclude`, "**/*.local", `echo x > a.local`, []string{"A a.local"}},
	"core.excludesFile": {`echo '*.local' > ../rules; git config core.excludesFile ../rules`, "**/*.local", `echo x > a.local`,
		[]string{"A a.local"}},
	"a folder that is ignored":   {`true`, "build", `mkdir -p build/x; echo x > build/x/y`, []string{"A build/x/y"}},
	"a file in a folder ignored": {`true`, "**/*_test.go", `mkdir -p build/x; echo x > build/x/b_test.go`, []string{"A build/x/b_test.go"}},
	"a repository in an ignored one": {`true`, "build", `mkdir -p build/r; cd build/r; git init -q; echo x > y`,
		[]string{"A build/r/.git", "A build/r/y"}},
	"a file that looks like git's": {`true`, "**/*_test.go", `mkdir -p build/.git/x build/.GIT "build/git~1" "build/.git ." build/%2Egit
for dir in .git/x .GIT "git~1" ".git ." %2Egit; do echo x > "build/$dir/b_test.go"; done`,
		[]string{"A build/%2Egit/b_test.go", "A build/.GIT", "A build/.git .", "A build/.git", "A build/git~1"}},
	"a link like git's folder": {`true`, "build", `mkdir -p build; ln -s /etc build/.git`, []string{"A build/.git"}},
	"a rule of the agent":      {`true`, "**/*_test.go", `echo '*_test.go' >> .gitignore; echo x > b_test.go`, []string{"A b_test.go"}},
	"a rule in a protected folder": {`true`, "sub/**", `echo x >> .gitignore; echo x > sub/deep/x; mkdir -p sub/m; echo '*' > sub/m/.gitignore; echo x > sub/m/y`,
		[]string{"A sub/deep/x", "A sub/m/.gitignore", "A sub/m/y"}},
	"a rule that hides itself":         {`true`, "**/*_test.go", `mkdir -p m; echo '*' > m/.gitignore; echo x > m/b_test.go`, []string{"A m/b_test.go"}},
	"a folder without permissions":     {`true`, "build", `mkdir -p build; echo x > build/y; chmod 0 build`, []string{"A build/y"}},
	"a link":                           {`true`, "build", `mkdir -p build; ln -s /etc build/etc`, []string{"A build/etc"}},
	"an ignored file of the user":      {`echo .worktreeinclude >> .gitignore; echo .env > .worktreeinclude`, ".env", `echo mine > .env`, []string{"M .env"}},
	"that file deleted":                {`echo .worktreeinclude >> .gitignore; echo .env > .worktreeinclude`, ".env", `rm .env`, []string{"D .env"}},
	"that file as a folder":            {`echo .worktreeinclude >> .gitignore; echo .env > .worktreeinclude`, ".env", `rm .env; mkdir -p .env; echo x > .env/x`, []string{"D .env", "A .env/x"}},
	"that file by another rule":        {`echo .worktreeinclude >> .gitignore; echo .env > .worktreeinclude`, ".env", `: > .gitignore; echo mine > .env`, []string{"D .env"}},
	"what programs leave in a folder":  {`echo cache/ >> .gitignore`, "sub/**", `mkdir -p sub/cache; echo x > sub/cache/y`, nil},
	"what programs leave in any sub":   {`echo cache/ >> .gitignore`, "**/deep", `mkdir -p sub/deep/cache; echo x > sub/deep/cache/y`, nil},
	"a file that no pattern is about":  {`true`, "**/*_test.go", `mkdir -p build; echo x > build/y`, nil},
	"the same file, no longer ignored": {`echo .worktreeinclude >> .gitignore; echo .env > .worktreeinclude`, ".env", `: > .gitignore`, nil},
}

// A protected file that git ignores is put back after a command, and before the next one if the command has failed.
func TestProtectedFilesThatGitIgnores(t *testing.T) {
	for name, tt := range ignoring {
		t.Run(name, func(t *testing.T) {
			from := repository(t)
			sh(t, from, "rm -rf build; "+tt.user)
			tree := open(t, workspace.Config{From: from, Protect: []string{tt.protect}})
			skip := []string{".git", ".gitignore", "m", filepath.Join("build", "r", ".git"), filepath.Join("build", "y")}
			if name != "a file that no pattern is about" {
				skip = skip[:4]
			}
			before := files(t, tree.Dir(), skip...)
			for _, fails := range []bool{false, true} {
				if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
					t.Fatal(err)
				}
				sh(t, tree.Dir(), tt.agent)
				if fails {
					if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
						t.Fatal(err)
					}
					same(t, "before the next command", before, files(t, tree.Dir(), skip...))
					continue
				}
				h := snapshot(t, tree)
				touched, err := tree.Protected(t.Context(), tree.Start(), h, []string{tt.protect})
				if err != nil {
					t.Fatal(err)
				}
				if len(touched) > 0 {
					if h, err = tree.PutBack(t.Context(), h, touched); err != nil {
						t.Fatal(err)
					}
				}
				changes, err := tree.PutBackIgnored(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, c := range changes {
					got = append(got, c.Status+" "+c.Path)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("changes: -want +got\n%s", diff)
				}
				same(t, "after the command", before, files(t, tree.Dir(), skip...))
			}
		})
	}
}

// A repository in a protected folder that git ignores, such as one that the setup has cloned, stays as it is.
func TestARepositoryInAProtectedFolder(t *testing.T) {
	setup := func(_ context.Context, dir string, _ []string) error {
		sh(t, dir, `mkdir -p build/.git/hooks; cd build/.git; echo x > config; echo x > hooks/run; chmod +x hooks/run; ln -s config link`)
		return nil
	}
	tree := open(t, workspace.Config{From: repository(t), Protect: []string{"build"}, Setup: setup})
	before := files(t, tree.Dir(), ".git")
	for _, agent := range []string{`rm -r build`, `cd build/.git; echo mine > config; rm hooks/run link; ln -s /etc/passwd hooks/run; echo x > hooks/new`} {
		if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
			t.Fatal(err)
		}
		sh(t, tree.Dir(), agent)
		changes, err := tree.PutBackIgnored(t.Context(), snapshot(t, tree))
		if err != nil || len(changes) != 1 || changes[0].Status != "M" || changes[0].Path != "build/.git" {
			t.Errorf("%s: %v, %v", agent, changes, err)
		}
		same(t, agent, before, files(t, tree.Dir(), ".git"))
	}
}

// The files are put back as they were when the tree was new, also by another process and beside other trees.
func TestIgnoredFilesAreKnownAgain(t *testing.T) {
	from, store := repository(t), t.TempDir()
	cfg := workspace.Config{From: from, Store: store, Copy: []string{".env"}, Protect: []string{".env", "build"}}
	tree := open(t, cfg)
	h := tree.Start()
	if _, err := tree.Ensure(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	sh(t, tree.Dir(), "echo mine > .env; mkdir -p build; echo x > build/y")
	tree.Close() // the process was killed
	before := files(t, from, ".git", "build", ".refrain")
	tree = open(t, cfg)
	if _, err := tree.Ensure(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	same(t, "in the next process", before, files(t, tree.Dir(), ".git"))
	beside, err := tree.Beside(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	sh(t, beside.Dir(), "echo mine > .env; mkdir -p build; echo x > build/y")
	if changes, err := beside.PutBackIgnored(t.Context(), h); err != nil || len(changes) != 2 {
		t.Errorf("beside: %v, %v", changes, err)
	}
	same(t, "beside", before, files(t, beside.Dir(), ".git"))
	beside.Close()
	tree.Close()
	if err := workspace.Remove(t.Context(), store, "r_1"); err != nil {
		t.Fatal(err)
	}
	if refs := sh(t, store, "git --git-dir=store for-each-ref"); refs != "" {
		t.Errorf("refs of a run that was removed: %s", refs)
	}
}
