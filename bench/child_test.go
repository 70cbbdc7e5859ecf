// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// The runs at once, and the iterations of each.
const (
	sessions   = 1000
	iterations = 20
)

// done is what ./atonce prints: how many events, in how many nanoseconds.
type done struct {
	Events int
	Wall   time.Duration
}

func TestMain(m *testing.M) {
	// Eino's memory grows fast. Near the limit the collector works harder; its guard
	// gives up.
	debug.SetMemoryLimit(memoryLimit)
	code := m.Run()
	_ = os.RemoveAll(folderOfPrograms)
	os.Exit(code)
}

// spent is what a program has cost: see ./spent.
type spent struct {
	Wall, CPU  time.Duration
	Peak, Read int64
	Exit       int
	Stdout     string
}

// spend runs a program in a folder, below ./spent. It fails the test if the program fails;
// a run that a limit has stopped did not.
func spend(t *testing.T, folder string, env []string, program string, args ...string) spent {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs(t).spent, append([]string{program}, args...)...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	var s spent
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%s %v: %v: %q", program, args, err, out)
	}
	if s.Exit != 0 && s.Exit != exitLimit {
		t.Fatalf("%s %v: exit code %d\n%s", program, args, s.Exit, s.Stdout)
	}
	return s
}

// exitLimit is the exit code of a run that a limit has stopped.
const exitLimit = 3

// folderOfPrograms is where build has put them; empty before.
var folderOfPrograms string

// built is the programs that are measured, and the one that measures.
type built struct{ refrain, spent, atonce string }

// build makes refrain as people get it, and the programs beside the tests, once.
var build = sync.OnceValues(func() (b built, err error) {
	if folderOfPrograms, err = os.MkdirTemp("", "refrain-gates-"); err != nil {
		return b, err
	}
	b.refrain, b.spent = filepath.Join(folderOfPrograms, "refrain"), filepath.Join(folderOfPrograms, "spent")
	b.atonce = filepath.Join(folderOfPrograms, "atonce")
	for _, args := range [][]string{
		{"build", "-C", "..", "-ldflags=-s -w", "-o", b.refrain, "./cmd/refrain"},
		{"build", "-ldflags=-s -w", "-o", b.spent, "./spent"},
		{"build", "-ldflags=-s -w", "-o", b.atonce, "./atonce"},
	} {
		if out, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput(); err != nil {
			return b, fmt.Errorf("go %v: %w\n%s", args, err, out)
		}
	}
	return b, nil
})

func programs(t *testing.T) built {
	t.Helper()
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newFolder makes a folder in the system's temporary one, which TMPDIR names. That of
// t.TempDir can be in memory, as it follows GOTMPDIR; then nothing waits for a disk.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "refrain-gates-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// spents is what several rounds have cost.
type spents []spent

func (all spents) of(field func(spent) float64) series {
	var s series
	for _, one := range all {
		s = append(s, field(one))
	}
	return s
}

func (all spents) wall() series { return all.of(func(s spent) float64 { return float64(s.Wall) }) }
func (all spents) cpu() series  { return all.of(func(s spent) float64 { return float64(s.CPU) }) }
func (all spents) peak() series { return all.of(func(s spent) float64 { return float64(s.Peak) }) }
