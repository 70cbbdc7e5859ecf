// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// An iteration whose command changes one of 10,000 files, as part of a run and by hand: git add and
// git write-tree in a repository with the same files. CPU is that of this process and its children.
func treeOfTenThousand(t *testing.T, tb *table) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	const rounds, each = 5, 10 // iterations; the first two are not counted
	folder := newFolder(t)
	for i := range 10_000 {
		name := filepath.Join(folder, fmt.Sprintf("d%d", i%100), fmt.Sprintf("f%d.txt", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, fmt.Appendf(nil, "file %d\n%s", i, text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shell(t, folder, "git init -q . && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm a")

	d, err := definition.Parse("loop.yaml", fmt.Appendf(nil, `
name: loop
max_iterations: %d
workspace: {}
sub_agents: [{name: edit, command: [sh, -c, "echo {{iteration}} > d7/f7.txt"]}]
`, rounds*each+2), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ends []func() error
	root, err := d.Build(t.Context(), definition.BuildConfig{Root: folder, Cleanup: func(f func() error) { ends = append(ends, f) }})
	if err != nil {
		t.Fatal(err)
	}
	svc, _ := openStore(t, sqlite.Config{})
	r, err := ours.NewRunner(root, svc, true)
	if err != nil {
		t.Fatal(err)
	}
	var got, hand series
	var before time.Duration
	for ev, err := range ours.Run(r, "s") {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Mark != nil || ev.Author != "edit" || ev.Iteration%each != 2 {
			continue
		}
		if ev.Iteration > 2 {
			got = append(got, (familyTime()-before).Seconds()/each)
		}
		before = familyTime()
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		before := familyTime()
		for i := range each {
			shell(t, folder, fmt.Sprintf("echo %d > d7/f7.txt && git add -A && git write-tree", i))
		}
		hand = append(hand, (familyTime()-before).Seconds()/each)
	}
	if len(got) != rounds {
		t.Fatalf("measured %d rounds, want %d", len(got), rounds)
	}
	tb.atMost("an iteration that changes one of 10,000 files", "CPU s", 0.2, got, floor("git add, git write-tree", "CPU s", hand))
}

// familyTime is the CPU time of this process and of its children that have ended.
func familyTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		panic(err)
	}
	return cpuTime() + time.Duration(u.Utime.Nano()+u.Stime.Nano())
}

func shell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
