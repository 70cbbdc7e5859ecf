// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// A tree can begin with a branch that is not checked out; the branch of its result begins with it, too.
func TestTreeOfABranch(t *testing.T) {
	from := t.TempDir()
	do := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", from, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	do("init", "-q", "-b", "main")
	write("a", "1")
	do("add", ".")
	do("commit", "-qm", "first")
	first := do("rev-parse", "HEAD")
	do("checkout", "-qb", "side")
	write("b", "2")
	do("add", ".")
	do("commit", "-qm", "second")
	do("checkout", "-q", "main")
	write("c", "3")
	do("add", ".")
	do("commit", "-qm", "third")
	write("dirty", "4")

	tree := open(t, workspace.Config{From: from, Run: "r_1", Base: "refs/heads/side"})
	if _, err := os.Stat(filepath.Join(tree.Dir(), "c")); err == nil {
		t.Error("the tree has a file of the branch that is checked out")
	}
	if err := os.WriteFile(filepath.Join(tree.Dir(), "b"), []byte("3"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := tree.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Branch(t.Context(), h, "result", "Result"); err != nil {
		t.Fatal(err)
	}
	if got := do("rev-parse", "result~"); got != do("rev-parse", "side") {
		t.Errorf("the branch begins with %s", got)
	}
	if got := do("diff", "--name-only", "side", "result"); got != "b" {
		t.Errorf("the branch changes %q", got)
	}
	for branch, want := range map[string]string{"side": first, "main": ""} {
		got, err := workspace.Fork(t.Context(), from, branch)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("the fork of %s is %q, %v", branch, got, err)
		}
	}
	for _, base := range []workspace.Base{"none", "--all"} {
		if tree, err := workspace.Open(t.Context(), workspace.Config{From: from, Store: t.TempDir(), Run: "r", Base: base}); err == nil {
			tree.Close()
			t.Errorf("a tree begins with %q", base)
		}
	}
}
