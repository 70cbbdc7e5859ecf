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

// stop ends the measurement of so many events.
func (m meter) stop(events int) cost {
	end, n := now(), float64(events)
	return cost{
		cpu:    float64(end.cpu-m.cpu) / n,
		wall:   float64(end.wall.Sub(m.wall)) / n,
		bytes:  float64(end.bytes-m.bytes) / n,
		allocs: float64(end.allocs-m.allocs) / n,
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

// cost is that of one event; times are in nanoseconds.
type cost struct{ cpu, wall, bytes, allocs float64 }

func (c cost) report(b *testing.B, per string) {
	b.ReportMetric(c.cpu, "cpu-ns/"+per)
	b.ReportMetric(c.wall, "ns/"+per)
	b.ReportMetric(c.bytes, "B/"+per)
	b.ReportMetric(c.allocs, "allocs/"+per)
}

// op does the work once and says how many events there were.
type op func() (events int, err error)

// run measures an op as a benchmark.
func (do op) run(b *testing.B) cost { return do.runPer(b, "event") }

// runPer does so under another name for events, after one go to warm up.
func (do op) runPer(b *testing.B, per string) cost {
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
	c.report(b, per)
	return c
}

// sample measures an op for at least the given time.
func (do op) sample(atLeast time.Duration) (cost, error) {
	events, m := 0, start()
	for time.Since(m.wall) < atLeast {
		n, err := do()
		if err != nil {
			return cost{}, err
		}
		events += n
	}
	return m.stop(events), nil
}
