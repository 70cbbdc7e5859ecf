// SPDX-License-Identifier: Apache-2.0

// Package heaptest measures what a value holds in memory, for tests that bound it.
//
//	bytes := heaptest.Held(func() any { return fold(events) })
package heaptest

import (
	"runtime"
	"slices"
)

// Held returns how many bytes what build returns holds: how much less is in use without it. It is the
// middle one of three measurements. What tests before have left may be freed meanwhile.
func Held(build func() any) int64 {
	var held [3]int64
	for i := range held {
		built := build()
		with := inUse()
		runtime.KeepAlive(built)
		held[i] = with - inUse()
	}
	slices.Sort(held[:])
	return held[1]
}

// inUse is the size of the heap. What is in a sync.Pool is freed by a second collection.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
