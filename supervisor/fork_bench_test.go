// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"testing"

	"github.com/refrain-dev/refrain/supervisor"
)

// BenchmarkFork forks a run of some 4200 events that is in a database on disk.
func BenchmarkFork(b *testing.B) {
	store := database(b)
	w := newWorld()
	sup := process(b, store, loop(b, "l", 840, w.step(b, "say"))) // 5 events an iteration
	run := start(b, sup)
	completed(b, run)
	at := view(b, store, run.ID()).LastSeq()
	for b.Loop() {
		if _, err := sup.Fork(b.Context(), run.ID(), supervisor.Checkpoint{Seq: at}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(at), "events")
}
