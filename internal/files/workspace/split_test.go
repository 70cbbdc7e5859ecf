// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// works makes a commit in a tree for each script, and returns the last files and the last commit.
func works(t testing.TB, tree *workspace.Tree, scripts ...string) (h, commit workspace.Hash) {
	t.Helper()
	for i, script := range scripts {
		sh(t, tree.Dir(), script)
		h = snapshot(t, tree)
		var err error
		if commit, err = tree.Commit(t.Context(), h, commit, fmt.Sprintf("Task %d: do it\n\nRefrain-Run: r_1\n", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return h, commit
}

// four are commits of which the first and the third belong together, and the last one changes only the plan.
var four = []string{
	"echo 1 >one; echo '[x] [ ]' >PLAN.md", "mkdir dir; echo 2 >dir/two; rm a_test.go; echo '[x] [x]' >PLAN.md",
	"echo 3 >>one; rm -r sub; echo 3 >sub", "echo '[x] [x] [x]' >PLAN.md",
}

// outline returns what a person sees of the branches.
func outline(parts []workspace.Part) (lines []string) {
	for _, p := range parts {
		lines = append(lines, fmt.Sprintf("%s on %q: %d of %s", p.Branch, p.On, p.Commits, strings.Join(p.Files, " ")))
	}
	return lines
}

func TestSplit(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	_, commit := works(t, tree, four...)
	sh(t, tree.Dir(), "echo rest >rest")
	h := snapshot(t, tree)
	for _, tt := range []struct {
		split workspace.Split
		want  []string
	}{
		{workspace.Split{Name: "each", Each: true, Apart: "PLAN.md"}, []string{
			`each-1-task-1-do-it on "": 1 of one`, `each-2-task-2-do-it on "": 1 of a_test.go dir/two`,
			`each-3-task-3-do-it on "each-1-task-1-do-it": 1 of one sub sub/deep/win.txt`, `each-4-the-rest on "": 1 of rest`,
			`each-5-the-changes-of-plan-md on "": 1 of PLAN.md`}},
		{workspace.Split{Name: "theme", Apart: "PLAN.md"}, []string{`theme-1-task-1-do-it on "": 2 of one sub sub/deep/win.txt`,
			`theme-2-task-2-do-it on "": 1 of a_test.go dir/two`, `theme-3-the-rest on "": 1 of rest`, `theme-4-the-changes-of-plan-md on "": 1 of PLAN.md`}},
		{workspace.Split{Name: "all"}, []string{`all-1-task-1-do-it on "": 4 of PLAN.md a_test.go dir/two one sub sub/deep/win.txt`,
			`all-2-the-rest on "": 1 of rest`}},
	} {
		s := tt.split
		s.Tree, s.Commits, s.Message = h, commit, "The rest"
		parts, err := tree.Split(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, outline(parts)); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
		wholeOf(t, tree, from, h, commit, parts)
		again, err := tree.Split(t.Context(), s)
		if diff := cmp.Diff(parts, again); diff != "" || err != nil {
			t.Errorf("%s again: %v %s", s.Name, err, diff)
		}
	}
}

// wholeOf checks that all branches of a split result together have the files and the commits of the result.
func wholeOf(t testing.TB, tree *workspace.Tree, from string, h, commit workspace.Hash, parts []workspace.Part) {
	t.Helper()
	d, err := tree.Deliver(t.Context(), workspace.Delivery{Tree: h, Commits: commit, Branch: "whole", Message: "The rest"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.Branch)
	}
	got := sh(t, from, `git worktree add -q --detach ../joined `+names[0]+`
cd ../joined; for name in `+strings.Join(names, " ")+`; do git merge -q --no-edit $name; done
git diff --stat HEAD `+d.Commit+`; git log --format=%s HEAD ^main | grep -v -e ^Merge -e 'not committed' | sort
cd ../project; git worktree remove --force ../joined`)
	want := sh(t, from, "git log --format=%s whole ^main | grep -v 'not committed' | sort")
	for line := range strings.Lines(want) {
		if !strings.Contains(got, line) && !strings.Contains(line, "Task 4") { // it changes the plan alone
			t.Errorf("the branches lack the commit %q:\n%s", line, got)
		}
	}
	if strings.Contains(got, "changed") {
		t.Errorf("the branches together are not the result:\n%s", got)
	}
}

func TestSplitOverwritesNoBranch(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	h, commit := works(t, tree, four...)
	sh(t, from, "git branch fix-2-task-2-do-it; git branch fix")
	s := workspace.Split{Tree: h, Commits: commit, Name: "fix", Each: true, Apart: "PLAN.md"}
	parts, err := tree.Split(t.Context(), s)
	if err != nil || len(parts) != 4 || parts[1].Branch != "fix-2-task-2-do-it-2" {
		t.Fatalf("%v %v", outline(parts), err)
	}
	sh(t, from, "test $(git rev-parse fix-2-task-2-do-it) = $(git rev-parse main); test $(git rev-parse fix) = $(git rev-parse main)")
	// A branch on which a person has worked stays, too.
	mine := sh(t, from, "git switch -qf fix-1-task-1-do-it; echo mine >mine; git add mine; git commit -qm mine; git rev-parse HEAD; git switch -qf main")
	if parts, err = tree.Split(t.Context(), s); err != nil || parts[0].Branch != "fix-1-task-1-do-it-2" || parts[2].On != parts[0].Branch {
		t.Fatalf("%v %v", outline(parts), err)
	}
	if now := sh(t, from, "git rev-parse fix-1-task-1-do-it"); now != mine {
		t.Errorf("the branch of a person moved from %s to %s", mine, now)
	}
}

// TestSplittingChild is the process that TestSplitIsKilled kills.
func TestSplittingChild(t *testing.T) {
	from := os.Getenv("SPLIT_FROM")
	if from == "" {
		t.Skip("only as a child")
	}
	tree := open(t, workspace.Config{From: from})
	if _, err := tree.Split(t.Context(), workspace.Split{Tree: workspace.Hash(os.Getenv("SPLIT_TREE")),
		Commits: workspace.Hash(os.Getenv("SPLIT_COMMITS")), Name: "fix", Each: true, Apart: "PLAN.md"}); err != nil {
		t.Fatal(err)
	}
}

// A process that is killed at any command of git leaves branches that another one finds and completes.
func TestSplitIsKilled(t *testing.T) {
	at, reached := faulty(t, "kill -9 $PPID; exit 1")
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	h, commit := works(t, tree, four...)
	tree.Close()
	t.Setenv("SPLIT_FROM", from)
	t.Setenv("SPLIT_TREE", string(h))
	t.Setenv("SPLIT_COMMITS", string(commit))
	split := func() error { return exec.Command(os.Args[0], "-test.run=^TestSplittingChild$").Run() }
	step := longtest.N(60, 20)
	var want []string
	for n := 1 + rand.IntN(step); ; n += step {
		at(n)
		err := split()
		over := !reached()
		if over != (err == nil) {
			t.Fatalf("command %d: %v", n, err)
		}
		at(0)
		if err := split(); err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(sh(t, from, "git for-each-ref --format='%(refname:short)=%(objectname)' refs/heads/fix-*"))
		if want == nil {
			want = got
		}
		if len(got) != 4 || !slices.Equal(got, want) {
			t.Fatalf("command %d: the branches are %q, and were %q", n, got, want)
		}
		if over {
			break
		}
		sh(t, from, "for name in $(git for-each-ref --format='%(refname:short)' refs/heads/fix-*); do git branch -qD $name; done")
	}
}

// The commits of a result are signed if the user's configuration says so, with a key of SSH here. A configuration of the repository itself
// starts no program.
func TestCommitsAreSigned(t *testing.T) {
	from := repository(t)
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed, so no commit is signed")
	}
	dir := t.TempDir()
	sh(t, dir, `ssh-keygen -q -t ed25519 -N '' -C ana -f key; echo "ana@example.com $(cat key.pub)" >signers
printf '[user]\nname = ana\nemail = ana@example.com\nsigningkey = %s/key.pub\n[gpg]\nformat = ssh\n[gpg "ssh"]\nallowedSignersFile = %s/signers\n[commit]\ngpgsign = true\n' "$PWD" "$PWD" >config`)
	t.Setenv("GIT_CONFIG_GLOBAL", dir+"/config")
	tree := open(t, workspace.Config{From: from})
	h, commit := works(t, tree, four...)
	d, err := tree.Deliver(t.Context(), workspace.Delivery{Tree: h, Commits: commit, Branch: "signed", Message: "all"})
	if err != nil || d.Unsigned != "" {
		t.Fatalf("%+v %v", d, err)
	}
	parts, err := tree.Split(t.Context(), workspace.Split{Tree: h, Commits: commit, Name: "part", Each: true, Apart: "PLAN.md"})
	if err != nil || parts[0].Unsigned != "" {
		t.Fatalf("%+v %v", parts, err)
	}
	got := sh(t, from, "export GIT_CONFIG_GLOBAL="+dir+"/config; git log --format=%G?%GS main..signed; git log --format=%G?%GS "+parts[2].Branch+" -1")
	if want := strings.Repeat("Gana@example.com\n", 6); got != want {
		t.Errorf("the signatures are\n%s", got)
	}
	sh(t, from, "git config gpg.ssh.program "+dir+"/evil; printf '#!/bin/sh\\ntouch "+dir+"/ran\\n' >"+dir+"/evil; chmod +x "+dir+"/evil")
	if d, err = tree.Deliver(t.Context(), workspace.Delivery{Tree: h, Commits: commit, Branch: "unsigned", Message: "all"}); err != nil || d.Unsigned == "" {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("a program that the repository names has run")
	}
}
