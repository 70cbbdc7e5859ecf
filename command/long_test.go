// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
)

var longSize = flag.String("long", "", "in TestMemoryOfALongRun, a run of this size, such as `10000x100000`: iterations and bytes of output")

// longRun is a loop whose step writes a file's text, which is a state key too, in each
// of n iterations. It returns the folder of the run, and the name of its store.
func longRun(t *testing.T, n, size int) (dir, store string) {
	t.Helper()
	dir = t.TempDir()
	text := strings.Repeat("\"said\" <b>\nand a line of words\n", size/31+1)[:size]
	definition := fmt.Sprintf(`
name: long
type: loop
max_iterations: %d
timeout: 10h
sub_agents:
  - {name: writer, command: [cat, text], output_key: draft}
`, n)
	for name, data := range map[string]string{"loop.yaml": definition, "text": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(dir, "runs.db")
}

// longCommand runs the program in a folder. It returns the most memory that it had, in
// bytes, and how long it took.
func longCommand(t *testing.T, dir string, args ...string) (peak int64, took time.Duration) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "refrain", args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	cmd.Env = append(os.Environ(), "REFRAIN_STORE=sqlite:runs.db")
	began := time.Now()
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != term.ExitLimit {
		t.Fatalf("refrain %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10, time.Since(began)
}

// An iteration takes no more than 1.15 times its output in the store, although the
// output is a state key, too.
func TestIterationIsStoredOnce(t *testing.T) {
	const size = 100_000
	stored := func(n int) int64 {
		dir, store := longRun(t, n, size)
		longCommand(t, dir, "run", "loop.yaml")
		info, err := os.Stat(store)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const few, many = 5, 45
	if each := float64(stored(many)-stored(few)) / (many - few); each > 1.15*size {
		t.Errorf("an iteration with an output of %d bytes takes %.0f bytes in the store, want at most %.0f", size, each, 1.15*size)
	}
}

// With -long 10000x100000: whatever is done with a long run takes at most 300 MB. It
// says how long each takes.
func TestMemoryOfALongRun(t *testing.T) {
	if *longSize == "" {
		t.Skip("takes long: give -long 10000x100000")
	}
	var n, size int
	if _, err := fmt.Sscanf(*longSize, "%dx%d", &n, &size); err != nil {
		t.Fatalf("-long %s: %v", *longSize, err)
	}
	dir, store := longRun(t, n, size)
	for _, args := range [][]string{
		{"run", "loop.yaml"},
		{"show", "last"}, {"show", "last", "--json"}, {"show", "last", "--state"}, {"show", "last", "--iteration", "2"},
		{"watch", "last"}, {"watch", "last", "--json"}, {"events", "last"}, {"verify", "last"},
		{"resume", "last", "--add-iterations", "2"},
		{"export", "last", "-o", "run.jsonl"}, {"show", "run.jsonl"}, {"verify", "run.jsonl"},
	} {
		peak, took := longCommand(t, dir, args...)
		t.Logf("%-36s %4d MB %8.1f s", strings.Join(args, " "), peak>>20, took.Seconds())
		if most := int64(300 << 20); peak > most {
			t.Errorf("refrain %s took %d MB of memory, want at most %d", strings.Join(args, " "), peak>>20, most>>20)
		}
		if args[0] == "run" {
			info, err := os.Stat(store)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%36s %.0f bytes for an iteration", "stored", float64(info.Size())/float64(n))
		}
	}
}
