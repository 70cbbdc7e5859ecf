// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refrain-dev/refrain/internal/process/child"
)

// A process that is shielded shows its environment to no program of the same user.
func TestShield(t *testing.T) {
	child.Shield()
	if got, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); got != 0 || err != nil {
		t.Errorf("the process is dumpable: %d, %v", got, err)
	}
}
