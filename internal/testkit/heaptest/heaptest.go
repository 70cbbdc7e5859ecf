// SPDX-License-Identifier: Apache-2.0

// Package heaptest measures the memory that a value holds, for tests with a limit.
//
//	bytes := heaptest.Held(func() any { return fold(events) })
package heaptest

import (
	"runtime"
	"slices"
)

// Held returns the number of bytes that the result of build holds. It compares the heap with and without the result,
// and returns the median of three measurements. Memory of earlier tests may be freed in the meantime.
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

// inUse returns the size of the heap. It collects twice, because the contents of a sync.Pool survive one collection.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
