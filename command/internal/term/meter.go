// SPDX-License-Identifier: Apache-2.0

package term

import (
	"time"

	"github.com/refrain-dev/refrain/progress"
)

// Meter measures what a run takes of the machine, from its making on. The process
// drives one run, so that what is the process's is the run's.
type Meter struct {
	began time.Time
	first reading
}

// reading is what the system says about the process and the programs that it has
// waited for; nil is unknown.
type reading struct {
	cpu, programs      *time.Duration
	peak, peakPrograms *int64
}

// NewMeter starts to measure.
func NewMeter() Meter { return Meter{time.Now(), read()} }

// Used is what was used since, by a run whose events come to r.
func (m Meter) Used(r progress.Resources) *progress.Resources {
	now := read()
	r.Wall, r.PeakMemory = time.Since(m.began), now.peak
	r.CPU, r.Programs = since(m.first.cpu, now.cpu), since(m.first.programs, now.programs)
	// A program begins as a copy of this process, and the system may count that for
	// its own: only what is more than this process ever had is certainly the program's.
	if now.peak != nil && now.peakPrograms != nil && *now.peakPrograms > *now.peak {
		r.PeakPrograms = now.peakPrograms
	}
	return &r
}

func since(before, now *time.Duration) *time.Duration {
	if before == nil || now == nil {
		return nil
	}
	return new(max(0, *now-*before))
}
