// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package term

import (
	"runtime"
	"syscall"
	"time"
)

// read asks the system. It has figures about a program only after the process has waited for the program.
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

// cpuOf returns the CPU time in user mode and in the kernel.
func cpuOf(u *syscall.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakOf returns the peak memory in bytes; all systems but one report units of 1024 bytes.
func peakOf(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
