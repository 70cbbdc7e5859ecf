// SPDX-License-Identifier: Apache-2.0

package procgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Sweep kills every process that was started with the variable in its environment, as NAME=value, even if it has left
// the process group. It also kills processes that these start in the meantime. Sweep returns when all of them are
// gone, or after a second. It ignores processes of other users, and does nothing outside Linux, where it cannot find
// processes.
func Sweep(variable string) {
	for end := time.Now().Add(time.Second); sweep(variable) && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
}

// sweep kills the matching processes once. It reports whether it killed any.
func sweep(variable string) (found bool) {
	want := append([]byte(variable), 0)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(env, want) && !bytes.Contains(env, append([]byte{0}, want...)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
	}
	return found
}
