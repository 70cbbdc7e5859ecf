// SPDX-License-Identifier: Apache-2.0

package firstgc

import (
	"os"
	"os/exec"
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

// A percent that is set before the first collection lasts.
func TestSetPercentLasts(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set")
	}
	if os.Getenv("FIRSTGC_TEST") == "" { // in a process of its own, where nothing was collected yet
		cmd := exec.Command(os.Args[0], "-test.run=^TestSetPercentLasts$")
		cmd.Env = append(os.Environ(), "FIRSTGC_TEST=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	if before := SetPercent(40); before != usual {
		t.Errorf("the percent of before is %d", before)
	}
	for range 100 {
		runtime.GC()
		runtime.Gosched()
		if got := gogc(); got != 40 {
			t.Fatalf("GOGC is %d after a collection", got)
		}
	}
	if before := SetPercent(usual); before != 40 || gogc() != usual {
		t.Errorf("the percent of before is %d, and now it is %d", before, gogc())
	}
}

func gogc() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
