// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// bootID returns an ID that changes with each boot of the machine.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// alive reports whether a process with this ID runs. A zombie process is not alive.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, ok := strings.Cut(string(stat), ") ")
	return !ok || !strings.HasPrefix(rest, "Z")
}
