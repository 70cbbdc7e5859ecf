// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package term

import (
	"os"
	"syscall"
	"unsafe"
)

// foreground reports whether the terminal is this process's to use: a job in the
// background that changed its settings would be stopped. A terminal that does not
// say is taken to be.
func foreground(f *os.File) bool {
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno != 0 || int(group) == syscall.Getpgrp()
}
