// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// risingLoop is a loop whose versions are better by 0.3 each. Its judge is a script, and no model: it reads the next of the answers
// 5 + 0.3 i + N(0, 1).
const risingLoop = `name: slowly
max_iterations: 12
score: {key: mark, judge: {step: judge, samples: 3}%s}
sub_agents:
  - {name: writer, set: {version: iteration}}
  - name: judge
    command:
      - sh
      - -c
      - |
        n=$(($(cat asked 2>/dev/null || echo 0) + 1)); echo $n >asked
        awk -v n=$n -v i=$0 "NR == n {print 5 + 0.3 * i + \$1}" noise
      - "{{iteration}}"
    json: true
    output_key: mark
`

// stopOf runs a definition in a folder, and returns why it stopped, after how many iterations, and which was the best.
func stopOf(t *testing.T, dir string, args ...string) (reason string, iterations, best int) {
	t.Helper()
	cmd := exec.Command("refrain", append([]string{"run", "--progress", "plain", "--store", "sqlite:runs.db"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	m := regexp.MustCompile(`stop_reason=(\w+) iterations=(\d+) best=(\d+)`).FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("%v: %s", err, out)
	}
	iterations, _ = strconv.Atoi(m[2])
	best, _ = strconv.Atoi(m[3])
	return m[1], iterations, best
}

// writeNoise writes the numbers of a seed into a file: a line each, of N(0, 1).
func writeNoise(t *testing.T, dir string, seed uint64) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 36))
	var b strings.Builder
	for range 400 {
		fmt.Fprintf(&b, "%.6f\n", dice.NormFloat64())
	}
	if err := os.WriteFile(filepath.Join(dir, "noise"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// LOOP 14: of eight loops that improve, at most one converges before iteration 10, and what is handed back has at least 90 % of what
// a full run gains on average.
func TestImprovingLoopsGoOn(t *testing.T) {
	t.Parallel()
	early, got, full := 0, 0.0, 0.0
	for seed := range uint64(8) {
		play := func(rule string) (string, int, int) {
			dir := t.TempDir()
			writeNoise(t, dir, seed)
			if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), fmt.Appendf(nil, risingLoop, rule), 0o600); err != nil {
				t.Fatal(err)
			}
			return stopOf(t, dir, "loop.yaml")
		}
		reason, iterations, best := play(", min_delta: 0, patience: 2")
		most := best
		if reason == "converged" {
			if iterations < 10 {
				early++
			}
			_, _, most = play("")
		}
		t.Logf("seed %d: %s after %d iterations, best %d; a full run %d", seed, reason, iterations, best, most)
		got, full = got+0.3*float64(best-1), full+0.3*float64(most-1)
	}
	if early > 1 || got < 0.9*full {
		t.Errorf("%d of 8 runs converge before iteration 10; %.2f is handed back, of %.2f", early, got/8, full/8)
	}
}
