// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// twoSteps is a loop of two pure steps.
func twoSteps(iterations int) string {
	return fmt.Sprintf(`
name: count
type: loop
max_iterations: %d
timeout: 10h
sub_agents:
  - {name: a, set: {n: iteration}}
  - {name: b, set: {m: state.n + 1}}
`, iterations)
}

// folderWith is a new folder with a definition in loop.yaml.
func folderWith(t *testing.T, definition string) string {
	t.Helper()
	dir := newFolder(t)
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runCommand is refrain run with nothing on the terminal.
func runCommand(t *testing.T, dir, store string) spent {
	t.Helper()
	return spend(t, dir, nil, programs(t).refrain, "run", "loop.yaml", "--progress", "quiet", "--store", store)
}

// A definition of two pure steps, by the whole command.
func wholeDefinition(t *testing.T, tb *table) {
	const iterations = 1000
	dir := folderWith(t, twoSteps(iterations))
	var start, memory, disk spents
	var raw series
	for i := range 8 {
		begin := spend(t, dir, nil, programs(t).refrain, "version")
		inMemory := runCommand(t, dir, "memory")
		onDisk := runCommand(t, dir, fmt.Sprintf("sqlite:%d.db", i))
		byHand := rawInserts(t, 2*iterations)
		if i > 0 {
			start, memory, disk = append(start, begin), append(memory, inMemory), append(disk, onDisk)
			raw = append(raw, byHand.wall*2*iterations)
		}
	}
	tb.atLeast("two set steps, whole command, memory", "it/s", 8000, memory.wall().in(iterations).perSecond(),
		floor("the start alone, refrain version", "ms", start.wall().in(ms)))
	tb.tell("two set steps, whole command, memory", "CPU µs/it", memory.cpu().in(iterations*us))
	tb.atLeast("two set steps, whole command, SQLite", "it/s", 1500, disk.wall().in(iterations).perSecond(),
		floor("two raw INSERTs an iteration", "it/s", raw.in(iterations).perSecond()))
	tb.tell("two set steps, whole command, SQLite", "CPU µs/it", disk.cpu().in(iterations*us))
}

// A run of 10,000 iterations whose process was killed, continued by the command.
func resumeCommand(t *testing.T, tb *table) {
	dir := folderWith(t, twoSteps(10_020)) // so that some are left
	killAt(t, dir, 9_970)                  // it is some 30 iterations ahead of its output
	var all spents
	var reads series
	for range 3 {
		copied := newFolder(t)
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		size := 0.0
		for _, name := range []string{"runs.db", "runs.db-wal"} {
			if info, err := os.Stat(filepath.Join(copied, name)); err == nil {
				size += float64(info.Size())
			}
		}
		one := spend(t, copied, nil, programs(t).refrain, "resume", "last", "--progress", "quiet", "--store",
			"sqlite:runs.db")
		all, reads = append(all, one), append(reads, float64(one.Read)/size)
	}
	nothing := spend(t, dir, nil, programs(t).refrain, "version")
	tb.atMost("refrain resume at iteration 10,000", "CPU ms", 1000, all.cpu().in(ms),
		floor("the start alone, refrain version", "CPU ms", spents{nothing}.cpu().in(ms)))
	tb.tell("refrain resume at iteration 10,000", "wall ms", all.wall().in(ms))
	tb.atMost("refrain resume at iteration 10,000", "MB peak", 100, all.peak().in(mb),
		floor("the start alone", "MB", spents{nothing}.peak().in(mb)))
	if reads.most() > 0 {
		tb.atMost("refrain resume, bytes read of those in the database", "times", 1.5, reads, "1 times: one read of the log")
	}
}

// killAt starts the definition of a folder in runs.db, and kills it in an iteration.
func killAt(t *testing.T, dir string, iteration int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs(t).refrain, "run", "loop.yaml", "--json", "--store",
		"sqlite:runs.db")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, reached := bufio.NewScanner(out), false
	for lines.Scan() && !reached {
		reached = strings.Contains(lines.Text(), fmt.Sprintf(`"iteration":%d,`, iteration))
	}
	if err := cmd.Process.Kill(); err != nil || !reached {
		t.Fatalf("the run ended before it was killed: %v, %v", err, lines.Err())
	}
	_ = cmd.Wait() // it was killed
}

// What a person waits for before anything happens.
func startUp(t *testing.T, tb *table) {
	var nothing, version, run spents
	for i := range 16 {
		one := []spent{
			spend(t, newFolder(t), nil, programs(t).spent),
			spend(t, newFolder(t), nil, programs(t).refrain, "version"),
			runCommand(t, folderWith(t, twoSteps(1)), "sqlite:runs.db"),
		}
		if i > 0 {
			nothing, version, run = append(nothing, one[0]), append(version, one[1]), append(run, one[2])
		}
	}
	least := floor("a Go program that does nothing", "CPU ms", nothing.cpu().in(ms))
	tb.atMost("refrain version", "CPU ms", 15, version.cpu().in(ms), least)
	tb.tell("refrain version", "wall ms", version.wall().in(ms))
	tb.atMost("a durable run of one iteration, new database", "CPU ms", 30, run.cpu().in(ms), least)
	tb.tell("a durable run of one iteration, new database", "wall ms", run.wall().in(ms))
}

func binarySize(t *testing.T, tb *table) {
	size := func(name string) series {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return series{float64(info.Size())}.in(1e6)
	}
	p := programs(t)
	tb.atMost("the command, stripped", "MB", 56, size(p.refrain),
		floor("a Go program that does next to nothing", "MB", size(p.spent)))
}

// 10,000 iterations with an output of 100 kB each, another one each time.
func longOutputs(t *testing.T, tb *table) {
	const iterations, size = 10_000, 100_000
	dir := folderWith(t, fmt.Sprintf(`
name: long
type: loop
max_iterations: %d
timeout: 10h
sub_agents:
  - {name: writer, text: "{{iteration}} %s", output_key: draft}
`, iterations, strings.Repeat("a line of words ", size/16)))
	one := spents{runCommand(t, dir, "sqlite:runs.db")}
	tb.atMost("10,000 iterations with an output of 100 kB", "MB peak", 300, one.peak().in(mb),
		floor("one output", "MB", series{size}.in(mb)))
	tb.tell("10,000 iterations with an output of 100 kB", "wall s", one.wall().in(1e9))
}

// 1,000 runs of 20 iterations at once: how fast in this process, and how much memory a
// process of its own takes. Those on SQLite take long, so both are measured there.
func manyAtOnce(t *testing.T, tb *table) {
	peaks, disk := make(map[string]series), series(nil)
	child := func(name string) {
		one := spend(t, newFolder(t), nil, programs(t).atonce, name, strconv.Itoa(sessions), strconv.Itoa(iterations))
		var d done
		if err := json.Unmarshal([]byte(one.Stdout), &d); err != nil {
			t.Fatal(err)
		}
		if peaks[name] = append(peaks[name], float64(one.Peak)/mb); name == "sqlite" {
			disk = append(disk, float64(d.Events)/d.Wall.Seconds())
		}
	}
	for i := range 3 {
		child("nothing")
		child("plain")
		child("marks")
		if i > 0 {
			child("sqlite")
		}
	}
	var sides []side
	for _, name := range []string{"ours", "marks", "floorid"} {
		do, err := implementationNamed(name).concurrent(sessions, iterations)
		if err != nil {
			t.Fatal(err)
		}
		sides = append(sides, sampled(name, do))
	}
	got := rounds(t, 5, sides...)
	rate := func(name string) series { return got[name].wall().perSecond().in(1e3) }
	least := floor("the process alone", "MB", peaks["nothing"])
	tb.atLeast("1,000 runs × 20 at once, plain", "k events/s", 500, rate("ours"),
		floor("by hand, with ID and time as ADK's", "k events/s", rate("floorid")))
	tb.tell("1,000 runs × 20 at once, plain", "MB peak", peaks["plain"])
	tb.atMost("1,000 runs × 20 at once, with marks", "MB peak", 100, peaks["marks"], least+"; Eino and ADK have no marks")
	tb.tell("1,000 runs × 20 at once, with marks", "k events/s", rate("marks"))
	tb.atLeast("1,000 runs × 20 at once, durable on SQLite", "k events/s", 15, disk.in(1e3),
		floor("with marks in memory; Eino and ADK have no durable runs", "k events/s", rate("marks")))
	tb.atMost("1,000 runs × 20 at once, durable on SQLite", "MB peak", 150, peaks["sqlite"], least)
}
