// SPDX-License-Identifier: Apache-2.0

// Package firstgc puts off the program's first garbage collection, by being imported. Go collects first at 4 MB, which
// the packages of the program and a short run just reach: it took a fifth of the time of a command that is over at
// once, and freed next to nothing.
package firstgc

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// The first collection is at 4 MB × percent / 100, and usual is Go's own percent.
const percent, usual = 400, 100

// after is the percent after the first collection.
var (
	mu    sync.Mutex // held while the percent is set
	after = usual
)

// SetPercent sets the percent of garbage at which Go collects, also after the first collection, and returns the percent of before.
// debug.SetGCPercent alone would not last if nothing has been collected yet. It does nothing if GOGC is set.
func SetPercent(percent int) (before int) {
	if os.Getenv("GOGC") != "" {
		return usual
	}
	mu.Lock()
	defer mu.Unlock()
	before, after = after, percent
	debug.SetGCPercent(percent)
	return before
}

// The order of inits is by import path, of packages that all need what this one needs: it comes before most of what
// allocates.
func init() {
	if os.Getenv("GOGC") != "" {
		return // somebody decided
	}
	debug.SetGCPercent(percent)
	type sentinel struct{ _ *int } // with a pointer: without, it could share memory with what lives on
	runtime.AddCleanup(new(sentinel), func(int) {
		mu.Lock()
		defer mu.Unlock()
		debug.SetGCPercent(after)
	}, 0)
}
