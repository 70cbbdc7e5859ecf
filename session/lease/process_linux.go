// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// space returns an ID that changes with each boot of the machine, and the PID namespace of this process. The
// kernel gives the number of a namespace that has ended to a later one, where the same process ID has another start.
func space() (boot, pids string) {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	pids, _ = os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(id)), pids
}

// alive reports whether a process with this ID runs. A zombie process is not alive.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat := status(pid)
	return stat == nil || stat[0] != "Z" && stat[0] != "X"
}

// startTime returns when a process started, in ticks since the boot; empty if it is not known.
func startTime(pid int) string {
	const start = 22 - 3 // the 22nd field, and status begins with the third
	if stat := status(pid); len(stat) > start {
		return stat[start]
	}
	return ""
}

// status returns the fields of a process's stat file from its state on; nil if the file is not known. If /proc is
// that of another PID namespace, its numbers are of other processes, so nothing is known.
func status(pid int) []string {
	if name, err := os.Readlink("/proc/self"); err != nil || name != strconv.Itoa(os.Getpid()) {
		return nil
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	text := string(stat)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // a program's name may have parentheses
}
