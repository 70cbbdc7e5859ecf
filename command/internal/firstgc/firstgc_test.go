// SPDX-License-Identifier: Apache-2.0

package firstgc

import (
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestUsualAfterTheFirstCollection(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set")
	}
	const tries = 1000
	for range tries { // the cleanup runs beside, soon after a collection
		runtime.GC()
		if gogc() == usual {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("GOGC is %d after %d collections, want %d", gogc(), tries, usual)
}

func gogc() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
