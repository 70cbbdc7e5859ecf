// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// inputSize is how many bytes each program of takersLoop has to be given.
const inputSize = 400_000

// takersLoop starts programs, many at a time, by steps, by the tools of a model and by
// callbacks. Each writes down how much it was given.
const takersLoop = `
name: takers
model: scripted/script.yaml
max_iterations: 50
state: {text: %q}
sub_agents:
  - name: all
    type: parallel
    sub_agents:
      - {name: a, command: [./take.sh, step], stdin: "{{text}}"}
      - {name: b, command: [./take.sh, step], stdin: "{{text}}"}
      - {name: c, command: [./take.sh, step], stdin: "{{text}}"}
      - name: asks
        instructions: "Use the tool."
        can_exit_loop: false
        callbacks: {before_tool: [{command: [./take.sh, hook], timeout: 1m}]}
        tools: [{command: [./take.sh, tool], name: take, description: "Takes.",
          parameters: {type: object, properties: {text: {type: string}}}}]
`

const takersScript = `answers:
  - &call {calls: [{name: take, args: {text: %q}}]}
  - &done {text: done}
`

// takeScript is slow to read, as programs are that do something with what they read.
const takeScript = `#!/bin/sh
n=$( (head -c 1000; sleep 0.02; cat) | wc -c)
echo "$1 $n" >> taken
`

// G7: whenever the process of a run is killed, the programs that it has started have been
// given all of their input, or were not started: they do not act on half of it.
func TestKilledRunsGiveWholeInputs(t *testing.T) {
	longtest.WithoutRace(t)
	known := adopt(t)
	dir := t.TempDir()
	text := strings.Repeat("x", inputSize)
	for name, data := range map[string]string{
		"loop.yaml":   fmt.Sprintf(takersLoop, text),
		"script.yaml": fmt.Sprintf(takersScript, text) + strings.Repeat("  - *call\n  - *done\n", 49),
		"take.sh":     takeScript,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	draw := *seed
	if draw == 0 {
		draw = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", draw)
	dice := rand.New(rand.NewPCG(draw, 1))
	r := &refrains{TB: t, dir: dir, binary: "refrain", store: "memory"}
	killed := 0
	taken := r.taken()
	most := longtest.N(6, 100)
	for until := time.Now().Add(3 * time.Minute); len(taken) < most && time.Now().Before(until); killed++ {
		p := r.start("run", "loop.yaml")
		for len(r.taken()) == len(taken) && !p.over() { // its first programs have started
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(dice.Int64N(int64(200 * time.Millisecond))))
		_ = p.Process.Signal(syscall.SIGKILL)
		if r.end(p); p.code() >= 0 {
			t.Fatalf("the run has ended: exit code %d\n%s", p.code(), &p.stderr)
		}
		for until := time.Now().Add(time.Minute); len(below(known)) > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("left behind: %v", below(known))
			}
		}
		taken = r.taken()
	}
	counts := make(map[string]int)
	cut := 0
	for _, line := range taken {
		by, size, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(size)
		if counts[by]++; err != nil || n < inputSize {
			cut++
		}
	}
	t.Logf("%d inputs in %d kills, %d of them cut: %v", len(taken), killed, cut, counts)
	if cut > 0 {
		t.Errorf("%d of %d inputs were cut", cut, len(taken))
	}
	for _, by := range []string{"step", "hook", "tool"} {
		if counts[by] == 0 && most >= 100 { // few may miss one by chance
			t.Errorf("no %s was started", by)
		}
	}
}

// taken returns what the programs of takersLoop have written down.
func (r *refrains) taken() []string {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, "taken"))
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(c rune) bool { return c == '\n' })
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
