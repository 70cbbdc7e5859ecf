// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// BecomeUser makes a process of root one of a user and a group with the same number, for all that follows. Programs of
// that user can then read neither the environments of the process and of its parents, nor files of root: a container
// starts as root, reads its secrets, and goes on without rights. It does nothing for an empty number, or
// if the process is not one of root. An error leaves the process as root, so that the caller has to end it.
func BecomeUser(number string) error {
	if number == "" || os.Geteuid() != 0 {
		return nil
	}
	id, err := strconv.Atoi(number)
	if err != nil || id <= 0 {
		return fmt.Errorf("REFRAIN_USER=%s: give the number of a user, such as 10001", number)
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("REFRAIN_USER: leave the groups of root: %w; the container needs the capabilities SETUID and SETGID", err)
	}
	if err := syscall.Setgid(id); err != nil {
		return fmt.Errorf("REFRAIN_USER: become group %d: %w", id, err)
	}
	if err := syscall.Setuid(id); err != nil {
		return fmt.Errorf("REFRAIN_USER: become user %d: %w", id, err)
	}
	Shield()
	return nil
}
