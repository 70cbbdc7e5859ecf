// SPDX-License-Identifier: Apache-2.0

package term

import (
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
)

// Meter measures the resources that a run uses on this machine, from NewMeter on. Because the process drives only one run, the
// resources of the process are those of the run.
type Meter struct {
	began time.Time
	first reading
}

// reading holds the system's figures about the process, and about the programs that the process has waited for; nil means
// unknown.
type reading struct {
	cpu, programs      *time.Duration
	peak, peakPrograms *int64
}

// NewMeter returns a meter that starts now.
func NewMeter() Meter { return Meter{time.Now(), read()} }

// Used returns the resources that were used since NewMeter, added to r.
func (m Meter) Used(r progress.Resources) *progress.Resources {
	now := read()
	r.Wall, r.PeakMemory = time.Since(m.began), now.peak
	r.CPU, r.Programs = since(m.first.cpu, now.cpu), since(m.first.programs, now.programs)
	// A program starts as a copy of this process, and the system may count the memory of the copy for the program. Only a value
	// above the peak of this process certainly belongs to the program.
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
