// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"github.com/refrain-dev/refrain/internal/longtest"
)

// events and export read a log page by page: a log of several times the bound does not take more memory than the bound.
// The long form makes a run of 20,000 iterations.
func TestMemoryOfLongLogs(t *testing.T) {
	// The bound holds at any length: a run of 70,000 iterations needs 60 MB, too.
	n, bound := longtest.N(6000, 20000), int64(90<<20)
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector takes memory of its own; .ci/long runs this without it")
	}
	dir := t.TempDir()
	def := "name: long\nmax_iterations: " + strconv.Itoa(n) + "\ntimeout: 2h\nstate: {level: 0.0}\nscore: {expr: state.level}\nsub_agents:\n" +
		"  - {name: raise, set: {level: \"double(state.level) + 1.0\"}}\n" +
		"  - {name: judge, set: {mark: \"double(state.level) * 2.0\"}}\n"
	if err := os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(def), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) int64 {
		t.Helper()
		var errs bytes.Buffer
		status := filepath.Join(dir, "status")
		c := exec.Command("refrain", args...)
		c.Dir, c.Stderr, c.Env = dir, &errs, append(os.Environ(), "REFRAIN_TEST_STATUS="+status)
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errs.Bytes())
		}
		text, err := os.ReadFile(status)
		if err != nil {
			t.Fatal(err)
		}
		peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text) // the maximum in Rusage is at least that of the process of the test
		if peak == nil {
			t.Fatalf("no peak in %s", text)
		}
		kb, err := strconv.ParseInt(string(peak[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return kb << 10
	}
	run("run", "long.yaml", "--progress", "quiet")
	for _, args := range [][]string{{"events", "last"}, {"events", "last", "--json"}, {"export", "last", "-o", "log.jsonl"}} {
		if got := run(args...); got > bound {
			t.Errorf("%v takes %d MiB, more than %d", args, got>>20, bound>>20)
		}
	}
}
