// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"testing"
)

// So many runs at once, of so many iterations each.
const (
	sessions   = 1000
	iterations = 20
)

func BenchmarkConcurrent(b *testing.B) {
	for _, impl := range implementations {
		if impl.concurrent == nil {
			continue
		}
		for _, c := range []content{shared, fresh} {
			b.Run(fmt.Sprintf("impl=%s/s=%d/k=%d/content=%s", impl.name, sessions, iterations, c), func(b *testing.B) {
				do, err := impl.concurrent(sessions, iterations, c)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(1e9/do.run(b).wall, "events/s")
				peak, err := peakOf(impl.name, c)
				if err != nil {
					b.Fatal(err)
				}
				if peak > 0 {
					b.ReportMetric(peak, "peak-MB")
				}
			})
		}
	}
}

// peakVar tells a process of this test binary to do one op and print its peak.
const peakVar = "REFRAIN_BENCH_PEAK_OF"

func TestMain(m *testing.M) {
	// The peer grows fast. Near the limit the collector works harder; its
	// guard gives up.
	debug.SetMemoryLimit(memoryLimit)
	if name := os.Getenv(peakVar); name != "" {
		if err := printPeak(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func printPeak(name string) error {
	c := shared
	if os.Getenv(peakVar+"_FRESH") != "" {
		c = fresh
	}
	do, err := implementationOf(name).concurrent(sessions, iterations, c)
	if err != nil {
		return err
	}
	if _, err := do(); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil // not Linux: there is no peak to tell
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte(" kB"))
	_, err = fmt.Printf("%s", bytes.TrimSpace(line))
	return err
}

// peakOf is the most resident memory, in MB, of a process that does the work
// once; 0 where it cannot be told.
func peakOf(name string, c content) (float64, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peakVar+"="+name)
	if c == fresh {
		cmd.Env = append(cmd.Env, peakVar+"_FRESH=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		return 0, err
	}
	kb, err := strconv.ParseFloat(string(out), 64)
	return kb / 1024, err
}
