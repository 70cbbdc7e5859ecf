// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// TestKilledChild is the process that TestKilledAtAnyPoint kills.
func TestKilledChild(t *testing.T) {
	from, want := os.Getenv("KILLED_FROM"), workspace.Hash(os.Getenv("KILLED_HASH"))
	if from == "" {
		t.Skip("only as a child")
	}
	tree, err := workspace.Open(context.Background(), workspace.Config{From: from, Store: from + "-files", Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("opened")
	for i := 0; ; i++ {
		if want == "" {
			want = tree.Start()
		}
		if _, err := tree.Ensure(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		for j := range 30 {
			write(t, tree.Dir(), fmt.Sprintf("f%d/%d", j%7, j), fmt.Sprint(i, j, os.Getpid()))
		}
		h, err := tree.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(h) // the log
		if i%2 == 0 {
			want = h
		}
	}
}

// A hash that was printed, as if it were in the log, can be restored whatever happens next.
func TestKilledAtAnyPoint(t *testing.T) {
	from := repository(t)
	var accepted []workspace.Hash
	content := make(map[workspace.Hash]map[string]string)
	for i := range 9 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
		last := ""
		if len(accepted) > 0 {
			last = string(accepted[rand.IntN(len(accepted))])
		}
		cmd.Env = append(os.Environ(), "KILLED_FROM="+from, "KILLED_HASH="+last)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := sync.OnceFunc(func() {
			time.AfterFunc(time.Duration(rand.IntN(700))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		})
		if i%3 == 0 { // perhaps before the tree is complete
			kill()
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if h := workspace.Hash(lines.Text()); h.Valid() {
				accepted = append(accepted, h)
				kill()
			} else if line := lines.Text(); line != "opened" && !strings.HasPrefix(line, "ok") {
				t.Errorf("the child says %q", line)
			}
		}
		_ = cmd.Wait()
		if i%3 != 2 || len(accepted) == 0 {
			continue
		}
		tree := open(t, workspace.Config{From: from, Store: from + "-files", Run: "r"})
		for range 3 {
			h := accepted[rand.IntN(len(accepted))]
			if _, err := tree.Restore(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if got := snapshot(t, tree); got != h {
				t.Fatalf("restored %s is %s", h, got)
			}
			now := files(t, tree.Dir(), ".git")
			if content[h] == nil {
				content[h] = now
			}
			same(t, "restored again", content[h], now)
		}
		tree.Close()
	}
	if len(accepted) == 0 {
		t.Error("no child came as far as a snapshot")
	}
}

// One changed file among 10 000 costs at most 0.2 s of CPU.
func BenchmarkSnapshot(b *testing.B) {
	needGit(b)
	from := b.TempDir()
	for i := range 10_000 {
		write(b, from, fmt.Sprintf("d%d/e%d/f%d", i%10, i%100, i), strings.Repeat(fmt.Sprint(i, "\n"), 200))
	}
	tree := open(b, workspace.Config{From: from, Store: b.TempDir()})
	before := cpu(b)
	n := 0
	for b.Loop() {
		n++
		write(b, tree.Dir(), "d1/e1/f1", fmt.Sprint(n))
		snapshot(b, tree)
	}
	each := (cpu(b) - before).Seconds() / float64(n)
	b.ReportMetric(each, "cpu-s/op")
	if each > 0.2 {
		b.Errorf("a snapshot costs %.3f s of CPU, more than 0.2 s", each)
	}
}

// cpu returns the time of this process and its children.
func cpu(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
