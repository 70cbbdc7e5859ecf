// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

var iterations = flag.Int("iterations", 0, "iterations of the run of TestMemoryOfLongLogs, such as 70000, in place of its two runs")

// What reads the log of a run does so with a window: its memory does not grow with the number of iterations, by more than a
// few bytes for each event. The short form compares 500 with 2,000 iterations with large values in the state, that
// of .ci/long 2,000 with 8,000. With -iterations each verb takes 150 MiB at most. A resume keeps about 100 bytes of each event.
func TestMemoryOfLongLogs(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector takes memory of its own; .ci/long runs this without it")
	}
	verbs := [][]string{
		{"events", "last"}, {"events", "last", "--json"}, {"events", "last", "--follow"}, {"export", "last", "-o", "log.jsonl"},
		{"events", "log.jsonl"}, {"verify", "log.jsonl"}, {"show", "log.jsonl"}, {"show", "log.jsonl", "--json"},
		{"import", "log.jsonl", "--as", "copy", "--store", "sqlite:other.db"},
		{"verify", "last"}, {"show", "last"}, {"show", "last", "--all"}, {"show", "last", "--json"}, {"show", "last", "--state"},
		{"show", "last", "--iteration", "400"}, {"watch", "last", "--progress", "plain"},
		{"resume", "last", "--add-iterations", "1", "--progress", "quiet"},
	}
	if *iterations > 0 {
		for i, got := range peaks(t, *iterations, 0, verbs) {
			most := int64(150 << 20)
			if t.Logf("%v takes %d MiB", verbs[i], got>>20); got > most {
				t.Errorf("%v takes %d MiB, more than %d", verbs[i], got>>20, most>>20)
			}
		}
		return
	}
	n := longtest.N(500, 2000)
	size := 8_000_000 / n // the log has as many bytes in both forms
	few, many := peaks(t, n, size, verbs), peaks(t, 4*n, size, verbs)
	for i := range verbs {
		most := int64(24 << 20)
		if verbs[i][0] == "resume" {
			most += 16 << 20 // of up to 42,000 events more
		}
		if grown := many[i] - few[i]; grown > most {
			t.Errorf("%v takes %d MiB for %d iterations and %d MiB for %d", verbs[i], few[i]>>20, n, many[i]>>20, 4*n)
		}
	}
}

// peaks makes a run in which each iteration writes a value of the given size in bytes, and returns the most memory
// that each command takes about it.
func peaks(t *testing.T, iterations, size int, verbs [][]string) []int64 {
	t.Helper()
	dir := t.TempDir()
	def := "name: long\nmax_iterations: " + strconv.Itoa(iterations) + "\ntimeout: 2h\n" +
		"state: {level: 0.0, text: \"" + strings.Repeat("x", size) + "\"}\nscore: {expr: state.level}\nsub_agents:\n" +
		"  - {name: raise, set: {level: \"double(state.level) + 1.0\"}}\n" +
		"  - {name: judge, set: {mark: \"string(state.level) + state.text\"}}\n"
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
	var all []int64
	for _, args := range verbs {
		all = append(all, run(args...))
	}
	return all
}
