// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var initTrace = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)

// What packages make when the program starts, before it does anything: each command pays
// for it. The bounds are for the test binary, which has a few packages more.
func TestStartMakesLittle(t *testing.T) {
	var trace bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "refrain", "version")
	cmd.Env, cmd.Stderr = append(os.Environ(), "GODEBUG=inittrace=1"), &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	all := initTrace.FindAllStringSubmatch(trace.String(), -1)
	if len(all) == 0 {
		t.Fatalf("no package says what it made: %s", trace.String())
	}
	one, sum, rows := 1<<20, 3<<20, 1800
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		one, sum, rows = 3<<20, 6<<20, 2700 // pools lose things at random, and regexps make theirs again
	}
	var bytes, allocs int
	for _, m := range all {
		b, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		if bytes, allocs = bytes+b, allocs+n; b > one {
			t.Errorf("package %s makes %d bytes when the program starts, want at most %d", m[1], b, one)
		}
		if m[1] == "github.com/refrain-dev/refrain/definition" && n > rows {
			// Not the bytes: the runtime's table of interfaces may grow in any package, and takes 73,728 of them.
			t.Errorf("package %s makes %d things when the program starts: the shapes of fields are for the schema", m[1], n)
		}
	}
	t.Logf("%d packages make %d bytes in %d allocations", len(all), bytes, allocs)
	if bytes > sum || allocs > 18_000 {
		t.Errorf("packages make %d bytes in %d allocations when the program starts, want at most %d in 18,000", bytes, allocs, sum)
	}
}

// A run that is over at once has nothing to collect.
func TestShortRunCollectsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("loop.yaml", []byte(oneIteration), 0o600); err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "refrain", "run", "loop.yaml", "--exit-zero-on-limit", "--json")
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOGC=", "GODEBUG=gctrace=1"), &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &trace)
	}
	if strings.Contains(trace.String(), "gc 1 @") {
		t.Errorf("a run of one iteration collected its garbage: %s", &trace)
	}
}

const oneIteration = "name: one\nstate: {n: 0}\nmax_iterations: 1\ntimeout: 1m\nsub_agents:\n" +
	"  - {name: a, set: {n: state.n + 1}}\n"

// BenchmarkStart starts the program, which does next to nothing, and one that runs a loop of one
// iteration.
func BenchmarkStart(b *testing.B) {
	b.Chdir(b.TempDir())
	if err := os.WriteFile("loop.yaml", []byte(oneIteration), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, args := range map[string][]string{
		"version": {"version"}, "memory": {"run", "loop.yaml", "--store", "memory", "--exit-zero-on-limit"},
		"durable": {"run", "loop.yaml", "--exit-zero-on-limit"},
	} {
		b.Run(name, func(b *testing.B) {
			cpu := 0.0
			for b.Loop() {
				if err := os.RemoveAll(".refrain"); err != nil {
					b.Fatal(err)
				}
				cmd := exec.Command("refrain", args...)
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
			}
			b.ReportMetric(1000*cpu/float64(b.N), "CPU-ms/op")
		})
	}
}
