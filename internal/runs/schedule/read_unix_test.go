// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package schedule_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/schedule"
)

// A named pipe is refused at once, although nobody writes to it.
func TestFileThatIsAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "schedules.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := schedule.Read(dir); err == nil || !strings.HasSuffix(err.Error(), "schedules.yaml is not a regular file") {
		t.Error(err)
	}
}
