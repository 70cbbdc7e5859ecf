// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/workspace"
)

// onStore are things that a program may write into the store, outside of its tree. Each is a line of shell in the store.
var onStore = map[string]string{
	"a filter": `printf '* filter=evil ident text eol=crlf\n' > info/attributes
git config --file config filter.evil.clean "touch $PWNED; cat"; git config --file config filter.evil.smudge "touch $PWNED; cat"`,
	"a filter by an included file": `printf '* filter=evil\n' > info/attributes
printf '[filter "evil"]\n\tclean = "touch %s; cat"\n' "$PWNED" > more; git config --file config include.path "$PWD/more"`,
	"a config of the worktree": `printf '* filter=evil\n' > info/attributes; git config --file config extensions.worktreeConfig true
git config --file config core.repositoryformatversion 1; git config --file config.worktree filter.evil.clean "touch $PWNED; cat"`,
	"attributes by a link":  `rm -rf info other; mkdir other; ln -s other info; printf '* text=auto eol=lf ident\n' > info/attributes`,
	"files that are hidden": `printf '*\n' > info/exclude; git config --file config core.ignoreCase true; git config --file config core.symlinks false`,
	"a sparse checkout":     `git config --file config core.sparseCheckout true; mkdir -p info; echo '/a.go' > info/sparse-checkout`,
	"another repository":    `git init -q --bare ../evil; echo "$PWD/../evil" > commondir`,
	"no config":             `rm -rf config info`,
	"a config that is none": `echo '[[' > config`,
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
