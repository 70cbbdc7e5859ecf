// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// A run that was killed is resumed with two reads of its log: one for what it was started with, how it stands and the chain of
// its hashes, and one for its replay. The log does not fit into the memory that SQLite or a view keep. The system counts what the
// process has read.
func TestResumeCommandReadsTheLogTwice(t *testing.T) {
	longtest.WithoutRace(t)
	const iterations, size = 250, 50_000
	dir := t.TempDir()
	write(t, filepath.Join(dir, "loop.yaml"), fmt.Sprintf(`
name: long
type: loop
max_iterations: %d
timeout: 10h
sub_agents:
  - {name: writer, text: "{{iteration}} %s", output_key: draft}
`, iterations, strings.Repeat("a line of words ", size/16)))
	killAt(t, dir, iterations-10)
	stored := int64(0)
	for _, name := range []string{"runs.db", "runs.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			stored += info.Size()
		}
	}
	cmd := exec.CommandContext(t.Context(), "refrain", "resume", "last", "--progress", "quiet", "--store", "sqlite:runs.db")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := bytesRead(t, cmd.Process.Pid)
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != term.ExitLimit {
		t.Fatal(err)
	}
	times := float64(read) / float64(stored)
	t.Logf("%d bytes of %d, %.2f times", read, stored, times)
	if times > 2.2 {
		t.Errorf("refrain resume reads %d bytes of a database of %d: %.1f times, want at most 2.2", read, stored, times)
	}
}

// killAt starts loop.yaml of a folder, with runs.db for its store, and kills it in an
// iteration.
func killAt(t *testing.T, dir string, iteration int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "refrain", "run", "loop.yaml", "--json", "--store", "sqlite:runs.db")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, reached := bufio.NewReader(out), false
	for err == nil && !reached {
		var line string
		line, err = lines.ReadString('\n')
		reached = strings.Contains(line, fmt.Sprintf(`"iteration":%d,`, iteration))
	}
	if killed := cmd.Process.Kill(); killed != nil || !reached {
		t.Fatalf("the run ended before it was killed: %v, %v", killed, err)
	}
	_ = cmd.Wait() // it was killed
}

var rchar = regexp.MustCompile(`(?m)^rchar: (\d+)$`)

// bytesRead waits until a process has ended, and returns how many bytes it has read. The
// process is still to be waited for: after that its count is gone.
func bytesRead(t *testing.T, pid int) int64 {
	t.Helper()
	const byPID, exited, leave = 1, 4, 0x01000000
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), 0, exited|leave, 0, 0)
		if errno == 0 {
			break
		}
		if errno != syscall.EINTR {
			t.Fatal(errno)
		}
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Skip("the system does not tell what a process has read: ", err)
	}
	m := rchar.FindSubmatch(data)
	if m == nil {
		t.Skipf("the system does not tell what a process has read: %s", data)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
