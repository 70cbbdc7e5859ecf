// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package term

import (
	"runtime"
	"syscall"
	"time"
)

// read asks the system. Of programs it knows when they have been waited for.
func read() (r reading) {
	var self, children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) == nil {
		r.cpu, r.peak = new(cpuOf(&self)), new(peakOf(&self))
	}
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) == nil {
		r.programs, r.peakPrograms = new(cpuOf(&children)), new(peakOf(&children))
	}
	return r
}

// cpuOf is the time in the program and, on its behalf, in the system.
func cpuOf(u *syscall.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakOf is in bytes; all but one system count in 1024 of them.
func peakOf(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
