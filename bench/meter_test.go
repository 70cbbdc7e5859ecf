// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// meter is what was spent when a measurement began.
type meter struct {
	cpu           time.Duration
	wall          time.Time
	bytes, allocs uint64
}

// start begins a measurement on a clean heap.
func start() meter {
	runtime.GC()
	return now()
}

func now() meter {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return meter{cpu: cpuTime(), wall: time.Now(), bytes: mem.TotalAlloc, allocs: mem.Mallocs}
}

// stop ends the measurement of n events.
func (m meter) stop(n int) cost {
	end, events := now(), float64(n)
	return cost{
		cpu:    float64(end.cpu-m.cpu) / events,
		wall:   float64(end.wall.Sub(m.wall)) / events,
		bytes:  float64(end.bytes-m.bytes) / events,
		allocs: float64(end.allocs-m.allocs) / events,
	}
}

// cpuTime is what the process has used so far, in user and system mode.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is the cost of one event. Times are in nanoseconds.
type cost struct{ cpu, wall, bytes, allocs float64 }

// op does the work once and returns the number of events.
type op func() (events int, err error)

// run measures an op as a benchmark, after one call to warm up.
func (do op) run(b *testing.B) {
	if _, err := do(); err != nil {
		b.Fatal(err)
	}
	events, m := 0, start()
	for b.Loop() {
		n, err := do()
		if err != nil {
			b.Fatal(err)
		}
		events += n
	}
	c := m.stop(events)
	b.ReportMetric(c.cpu, "cpu-ns/event")
	b.ReportMetric(c.wall, "ns/event")
	b.ReportMetric(c.bytes, "B/event")
	b.ReportMetric(c.allocs, "allocs/event")
}

// sample measures an op for at least the given time.
func (do op) sample(atLeast time.Duration) (cost, error) {
	events, m := 0, start()
	for time.Since(m.wall) < atLeast || events == 0 {
		n, err := do()
		if err != nil {
			return cost{}, err
		}
		events += n
	}
	return m.stop(events), nil
}
