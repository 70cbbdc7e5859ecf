// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// strangers are configurations that whoever made a repository can leave in it. Each names a program, $EVIL, which a command of git
// on the repository would start.
var strangers = map[string]string{
	"clean filter":       `git config filter.evil.clean "$EVIL; cat"; echo '* filter=evil' > .gitattributes`,
	"filter with a sign": `git config 'filter.a=b.clean' "$EVIL; cat"; echo '* filter=a=b' > .gitattributes`,
	"filter with a dot":  `git config filter.a.b.clean "$EVIL; cat"; echo '* filter=a.b' > .gitattributes`,
	"required filter": `git config filter.evil.clean "$EVIL; cat"; git config filter.evil.required true; ` +
		`echo '* filter=evil' > .git/info/attributes`,
	"process filter": `git config filter.evil.process "$EVIL"; git config filter.evil.smudge "$EVIL; cat"; ` +
		`echo '* filter=evil' > .gitattributes`,
	"filter of a file": `git config -f .git/more filter.evil.clean "$EVIL; cat"; git config include.path more; ` +
		`echo '* filter=evil' > .gitattributes`,
	"monitor": `git config core.fsmonitor "$EVIL"`,
	"hooks": `for h in reference-transaction post-index-change pre-commit post-checkout; ` +
		`do printf '#!/bin/sh\n%s\n' "$EVIL" > .git/hooks/$h; chmod +x .git/hooks/$h; done`,
	"folder of hooks": `mkdir h; printf '#!/bin/sh\n%s\n' "$EVIL" > h/reference-transaction; chmod +x h/*; git config core.hooksPath "$PWD/h"`,
	"hooks by name":   `git config hook.evil.command "$EVIL"; git config hook.evil.event reference-transaction`, // git 2.54
	"external difference": `git config diff.external "$EVIL"; git config diff.trustExitCode true; ` +
		`git config diff.evil.textconv "$EVIL"; git config diff.evil.command "$EVIL"; ` +
		`echo '* diff=evil' > .gitattributes; git add .gitattributes`,
	"pager and editor": `git config core.pager "$EVIL"; git config pager.status "$EVIL"; git config core.editor "$EVIL"; ` +
		`git config gpg.program "$EVIL"; git config commit.gpgSign true; git config core.askPass "$EVIL"; ` +
		`git config alias.status "!$EVIL"`,
	"missing commit": promisor + `c=$(git rev-parse HEAD); rm -f .git/objects/$(echo $c | cut -c1-2)/$(echo $c | cut -c3-)`,
	"missing tree":   promisor + `c=$(git rev-parse HEAD^{tree}); rm -f .git/objects/$(echo $c | cut -c1-2)/$(echo $c | cut -c3-)`,
	"missing tree of a sparse index": `git add -A; git commit -qm sparse; git sparse-checkout set --cone --sparse-index lib; ` +
		`git config index.sparse true; ` +
		promisor + `c=$(git rev-parse HEAD:sub); rm -f .git/objects/$(echo $c | cut -c1-2)/$(echo $c | cut -c3-)`,
}

// promisor makes a repository a partial clone, from which git fetches missing objects with a program.
const promisor = `git config core.repositoryformatversion 1; git config extensions.partialClone evil; git config remote.evil.promisor true
git config remote.evil.url "ext::$EVIL"; git config protocol.ext.allow always; git config core.sshCommand "$EVIL"; git config credential.helper "!$EVIL"
`

func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	for name, script := range strangers {
		t.Run(name, func(t *testing.T) {
			from := repository(t)
			evil := filepath.Join(t.TempDir(), "evil")
			write(t, filepath.Dir(evil), "evil", "#!/bin/sh\ntouch \"$0.ran\"\n")
			if err := os.Chmod(evil, 0o700); err != nil {
				t.Fatal(err)
			}
			// New files have the time of the index, so git compares their contents.
			sh(t, from, "mkdir lib; echo 1 > lib/l; git add lib; git commit -qm lib -- lib; "+script+
				"; touch a_test.go .gitignore forced.log 2>/dev/null || true", "EVIL="+evil)
			os.Remove(evil + ".ran") // by the script's own git
			ran := func(what string) {
				t.Helper()
				if err := os.Remove(evil + ".ran"); err == nil {
					t.Errorf("%s: the program of the repository ran", what)
				}
			}
			ctx := t.Context()
			_, err := workspace.InIndex(ctx, from)
			ran("InIndex")
			_ = err // of a repository without its objects
			_ = workspace.CheckRepository(ctx, from)
			ran("CheckRepository")
			_, _ = workspace.Tracked(ctx, from, filepath.Join(from, "sub"))
			ran("Tracked")
			cfg := workspace.Config{From: from, Store: filepath.Join(from, ".refrain", "files"), Run: "r_1"}
			_ = workspace.CheckBranch(ctx, cfg, "result", "Result")
			ran("CheckBranch")
			tree, err := workspace.Open(ctx, cfg)
			ran("Open")
			if err != nil {
				if !strings.HasPrefix(name, "missing") {
					t.Fatal(err)
				}
				return
			}
			defer tree.Close()
			write(t, tree.Dir(), "a_test.go", "package b\n")
			write(t, tree.Dir(), "fresh", "package b\n")
			h := snapshot(t, tree)
			_, err = tree.Branch(ctx, h, "result", "Result")
			ran("Branch")
			if err != nil && !isA[*workspace.FilterError](err) && !strings.HasPrefix(name, "missing") {
				t.Error(err)
			}
			_, _ = tree.Taking(ctx, h)
			ran("Taking")
		})
	}
}

// A filter that the definition permits changes the files of the branch, as git add does. Without it, a file that only it
// makes equal to the commit is no change of the user's, and a result with such a file is refused.
func TestPermittedFilters(t *testing.T) {
	from := repository(t)
	sh(t, from, `git add -A; git commit -qm all
git config filter.upper.clean 'tr a-z A-Z'; git config filter.upper.smudge 'tr A-Z a-z'; git config filter.upper.required true
echo '*.up filter=upper' > .gitattributes; echo text > a.up; echo text > b.up; git add -A; git commit -qm filtered
cp b.up c; rm b.up; cp c b.up; rm c`) // not as the index remembers it
	before := sh(t, from, "git rev-parse main; git branch")
	off := open(t, workspace.Config{From: from})
	write(t, off.Dir(), "other.txt", "x\n")
	h := snapshot(t, off)
	if way, err := off.Taking(t.Context(), h); err != nil || way != workspace.Merge {
		t.Errorf("a folder without changes: take it with %s: %v", way, err)
	}
	if _, err := off.Branch(t.Context(), h, "other", "Result"); err != nil {
		t.Errorf("a result without a filtered file: %v", err)
	}
	if got := sh(t, from, "git diff --name-only main other"); got != "other.txt\n" {
		t.Errorf("the branch changes %q", got)
	}
	sh(t, from, "git branch -qD other")
	write(t, off.Dir(), "a.up", "more\n")
	var refused *workspace.FilterError
	_, err := off.Branch(t.Context(), snapshot(t, off), "result", "Result")
	if !errors.As(err, &refused) || refused.Path != "a.up" || refused.Filter != "upper" {
		t.Errorf("a result with a filtered file: %v", err)
	}
	if after := sh(t, from, "git rev-parse main; git branch"); after != before {
		t.Errorf("the repository has changed from %q to %q", before, after)
	}
	on := open(t, workspace.Config{From: from, Run: "r_2", Filters: []string{"upper"}})
	write(t, on.Dir(), "a.up", "more\n")
	if _, err := on.Branch(t.Context(), snapshot(t, on), "result", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git diff --name-only main result; git cat-file blob result:a.up"); got != "a.up\nMORE\n" {
		t.Errorf("the branch changes %q", got)
	}
}
