// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// onStore are things that a program may write into the store, outside of its tree. Each is a line of shell in the store.
var onStore = map[string]string{
	"a filter": `printf '* filter=evil ident text eol=crlf\n' > info/attributes
git config --file config filter.evil.clean "touch $PWNED; cat"; git config --file config filter.evil.smudge "touch $PWNED; cat"`,
	"a filter by an included file": `printf '* filter=evil\n' > info/attributes
printf '[filter "evil"]\n\tclean = "touch %s; cat"\n' "$PWNED" > more; git config --file config include.path "$PWD/more"`,
	"a config of the worktree": `printf '* filter=evil\n' > info/attributes; git config --file config extensions.worktreeConfig true
git config --file config core.repositoryformatversion 1; git config --file config.worktree filter.evil.clean "touch $PWNED; cat"`,
	"attributes by a link":                         `rm -rf info other; mkdir other; ln -s other info; printf '* text=auto eol=lf ident\n' > info/attributes`,
	"files that are hidden":                        `printf '*\n' > info/exclude; git config --file config core.ignoreCase true; git config --file config core.symlinks false`,
	"a sparse checkout":                            `git config --file config core.sparseCheckout true; mkdir -p info; echo '/a.go' > info/sparse-checkout`,
	"another repository":                           `git init -q --bare ../evil; echo "$PWD/../evil" > commondir`,
	"a pipe in place of the config":                `rm -f config info/attributes; mkfifo config info/attributes`,
	"a file without an end in place of the config": `rm -f config info/attributes; ln -s /dev/zero config; ln -s /dev/zero info/attributes`,
	"no config":                                    `rm -rf config info`,
	"a config that is none":                        `echo '[[' > config`,
}

// What a program that leaves its folder writes into the config and the attributes of the store has no effect.
func TestTheStoreIsSealed(t *testing.T) {
	from := repository(t)
	pwned := filepath.Join(t.TempDir(), "pwned")
	for name, script := range onStore {
		t.Run(name, func(t *testing.T) {
			store := t.TempDir()
			cfg := workspace.Config{From: from, Store: store}
			tree := open(t, cfg)
			good := files(t, tree.Dir(), ".git")
			attack := func() { sh(t, filepath.Join(store, "store"), script, "PWNED="+pwned) }
			work := `printf 'a\r\n$Id$\n' > mixed.txt; echo more > A.GO; ln -s mixed.txt other; echo x >> a.go`
			sh(t, tree.Dir(), work)
			bad := files(t, tree.Dir(), ".git")
			attack()
			h, err := tree.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			attack()
			if _, err := tree.Restore(t.Context(), tree.Start()); err != nil {
				t.Fatal(err)
			}
			same(t, "restored", good, files(t, tree.Dir(), ".git"))
			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}
			attack()
			tree = open(t, cfg)
			if _, err := tree.Restore(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			same(t, "the snapshot", bad, files(t, tree.Dir(), ".git"))
			if _, err := os.Stat(pwned); err == nil {
				t.Error("code of the program ran in the git of the store")
			}
			os.Remove(pwned)
		})
	}
}

// Nor has it when the files are read, exported or removed without a tree.
func TestTheStoreIsSealedForReaders(t *testing.T) {
	from := repository(t)
	pwned := filepath.Join(t.TempDir(), "pwned")
	for name, script := range onStore {
		t.Run(name, func(t *testing.T) {
			store := t.TempDir()
			tree := open(t, workspace.Config{From: from, Store: store, Run: "r"})
			sh(t, tree.Dir(), "echo x >> a.go")
			h, err := tree.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}
			attack := func() { sh(t, filepath.Join(store, "store"), script, "PWNED="+pwned) }
			attack()
			s, err := workspace.OpenStored(t.Context(), store, "r")
			if err != nil {
				t.Fatal(err)
			}
			attack() // also between two commands
			changes, err := s.Files(t.Context(), tree.Start(), h)
			if err != nil || len(changes) != 1 || changes[0].Path != "a.go" || changes[0].Added != 1 {
				t.Errorf("got %+v, %v", changes, err)
			}
			attack()
			if err := workspace.Export(t.Context(), store, "r", filepath.Join(t.TempDir(), "bundle")); err != nil {
				t.Error(err)
			}
			attack()
			if err := workspace.Remove(t.Context(), store, "r"); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(pwned); err == nil {
				t.Error("code of the program ran in the git of the store")
			}
			os.Remove(pwned)
		})
	}
}

// Whoever reads a store writes nothing in it: it may be one that cannot be written.
func TestReadersWriteNothing(t *testing.T) {
	store := t.TempDir()
	tree := open(t, workspace.Config{From: repository(t), Store: store, Run: "r"})
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	times := func() map[string]string {
		all := make(map[string]string)
		err := filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				all[path] = info.ModTime().String()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := times()
	s, err := workspace.OpenStored(t.Context(), store, "r")
	if err != nil {
		t.Fatal(err)
	}
	if start, err := s.Start(t.Context()); err != nil || start != tree.Start() {
		t.Errorf("got %s, %v", start, err)
	}
	same(t, "the store", before, times())
}
