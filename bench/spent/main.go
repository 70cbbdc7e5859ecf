// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command spent runs a program and prints, as JSON, what it spent and what it wrote to
// stdout. Without arguments it does nothing: then it is the least that a Go program
// costs.
//
// It is a program of its own because Linux counts the memory of the process that starts
// another as the other's: a test with a large heap cannot measure the peak of a child.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// spent is what a program has cost.
type spent struct {
	// Wall and CPU are times in nanoseconds, CPU in user and system mode.
	Wall, CPU time.Duration
	// Peak is the largest resident memory, Read what it read by system calls: both in
	// bytes. Read is 0 where the system does not tell.
	Peak, Read int64
	Exit       int
	Stdout     string
}

func main() {
	if len(os.Args) < 2 {
		return
	}
	s, err := run(os.Args[1], os.Args[2:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "spent:", err)
		os.Exit(1)
	}
}

func run(name string, args []string) (*spent, error) {
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &spent{Read: bytesRead(cmd.Process.Pid)}
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return nil, err
	}
	s.Wall = time.Since(began)
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	s.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.Peak = int64(used.Maxrss)
	if runtime.GOOS != "darwin" { // which counts bytes; others count kilobytes
		s.Peak <<= 10
	}
	s.Exit, s.Stdout = cmd.ProcessState.ExitCode(), out.String()
	return s, nil
}

var rchar = regexp.MustCompile(`(?m)^rchar: (\d+)$`)

// bytesRead waits until the process has ended, and says how many bytes it has read. It
// leaves the process to be waited for: once it has been, its count is gone.
func bytesRead(pid int) int64 {
	if waitExited(pid) != nil {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0
	}
	m := rchar.FindSubmatch(data)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return n
}
