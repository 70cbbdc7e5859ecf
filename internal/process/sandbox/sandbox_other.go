// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import (
	"fmt"
	"os/exec"
	"runtime"
)

// Check returns an [ErrUnsupported], because only Linux has Landlock.
func Check() (version int, err error) {
	return 0, fmt.Errorf("%w: Landlock is a part of Linux, and this is %s", ErrUnsupported, runtime.GOOS)
}

// CheckNetwork returns an [ErrUnsupported].
func CheckNetwork() error {
	_, err := Check()
	return err
}

// CheckBubblewrap returns an [ErrUnsupported], because only Linux has bubblewrap.
func CheckBubblewrap() error {
	return fmt.Errorf("%w: bubblewrap is for Linux, and this is %s", ErrUnsupported, runtime.GOOS)
}

// Apply returns an [ErrUnsupported], or does nothing with BestEffort.
func (r Rules) Apply(*exec.Cmd) error {
	if r.BestEffort {
		return nil
	}
	if r.Bubblewrap {
		return CheckBubblewrap()
	}
	_, err := Check()
	return err
}
