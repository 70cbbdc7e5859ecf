// SPDX-License-Identifier: Apache-2.0

package procgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Sweep kills every process that was started with the variable in its environment, as NAME=value: those too that have
// left the group. It passes over processes of other users and does nothing where it cannot find processes, as outside
// Linux.
func Sweep(variable string) {
	want := append([]byte(variable), 0)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(env, want) && !bytes.Contains(env, append([]byte{0}, want...)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
