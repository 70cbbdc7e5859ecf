// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
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
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
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
	longtest.WithoutRace(t)
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

var metrics = flag.Int("metrics", 0, "how many times TestOptimizeMetricGoesOn runs the whole template, of 20 iterations; 0: once, 8 of them")

// LOOP 14, 14a: with a measurement that is off by 2 % and an agent that gains 1.5 % an iteration, the template hands back at least 90 %
// of what its iterations gain. The first seed measures the start 1.6 % too low, so that a version that is better looks worse.
func TestOptimizeMetricGoesOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	limit, got, full := 20, 0.0, 0.0
	if *metrics == 0 {
		limit = 8
	}
	for n := range max(1, *metrics) {
		dir := t.TempDir()
		do := func(name string, args ...string) string {
			cmd := exec.Command(name, args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s %q: %v: %s", name, args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		writeNoise(t, dir, 22+uint64(n))
		for name, text := range map[string]string{
			"work":       "1000\n",
			".gitignore": "*\n!work\n!measure.sh\n",
			"measure.sh": `cd "$1"; n=$(($(cat measured 2>/dev/null || echo 0) + 1)); echo $n >measured
awk -v n=$n -v work=$2 'NR == n {print work * (1 + 0.02 * $1)}' noise
`,
			"bin/claude": `#!/bin/sh
# A stand-in for Claude Code, and no model.
if [ "$1" = --version ]; then echo '9.9.9 (stand-in)'; exit; fi
if [ "$1" = auth ]; then echo '{"loggedIn": true}'; exit; fi
cat >/dev/null
awk '{printf "%.4f\n", $1 * 0.985}' work >better && mv better work
echo '{"type":"system","subtype":"init","session_id":"s1","model":"stand-in"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"I tried.","stop_reason":"end_turn",
"session_id":"s1","total_cost_usd":0.01,"usage":{"input_tokens":300,"output_tokens":30}}' | tr -d '\n'
`,
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		do("git", "init", "-q")
		do("git", "add", "-A")
		do("git", "-c", "user.name=ana", "-c", "user.email=ana@example.com", "commit", "-q", "-m", "first")
		do("refrain", "init", "optimize-metric")
		file := filepath.Join(dir, "optimize-metric.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shorter := strings.Replace(string(text), "max_iterations: 20", fmt.Sprintf("max_iterations: %d", limit), 1)
		if err := os.WriteFile(file, []byte(shorter), 0o600); err != nil {
			t.Fatal(err)
		}
		reason, iterations, best := stopOf(t, dir, "optimize-metric.yaml", "--session", "r_aaaa0001", "--set", "tests=true",
			"--set", fmt.Sprintf(`measure=sh measure.sh %q "$(cat work)"`, dir))
		work, err := strconv.ParseFloat(do("git", "show", "refrain/r_aaaa0001:work"), 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s after %d iterations, best %d: %.1f", reason, iterations, best, work)
		got, full = got+1000-work, full+1000*(1-math.Pow(0.985, float64(limit)))
	}
	if got < 0.9*full {
		t.Errorf("%.0f is handed back, of %.0f", got, full)
	}
}
