// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var gates = flag.Bool("gates", false, "measure against the goals, and fail where one is missed")

// gate is one line, or a few, of the table of goals.
type gate struct {
	name    string
	measure func(t *testing.T, tb *table)
}

// The goals are those of the issue about speed. See doc.go for what a line says.
var allGates = []gate{
	{"loop", loopAlone},
	{"runner", throughRunner},
	{"timed", timedSteps},
	{"marks", withMarks},
	{"definition", wholeDefinition},
	{"commits", commits},
	{"append", durableAppend},
	{"load", load},
	{"resume", resume},
	{"resume-command", resumeCommand},
	{"model", modelTurns},
	{"telemetry", telemetryOff},
	{"many", manyAtOnce},
	{"start", startUp},
	{"binary", binarySize},
	{"output", longOutputs},
	{"workspace", treeOfTenThousand},
}

// TestGates measures every gate, prints one table, and then fails for each goal that is
// missed. A round measures each side once, so that ours and its floor meet the same
// machine.
func TestGates(t *testing.T) {
	if !*gates {
		t.Skip("run with -gates, on a machine that is quiet")
	}
	var tb table
	began, before := time.Now(), loadAverage()
	for _, g := range allGates {
		t.Run(g.name, func(t *testing.T) { g.measure(t, &tb) })
		debug.FreeOSMemory()
	}
	fmt.Printf("\n%s\nload average %s at the beginning, %s at the end; %s\n\n", machine(), before, loadAverage(),
		time.Since(began).Round(time.Second))
	if err := tb.print(); err != nil {
		t.Error(err)
	}
	for _, l := range tb.lines {
		if l.missed() {
			t.Errorf("%s: %s %s, the goal is %s", l.what, figure(l.got.median()), l.unit, l.goal())
		}
	}
}

// machine says what the figures are about.
func machine() string {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := bytes.Cut(info, []byte("model name")); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			model = strings.TrimLeft(string(line), "\t :")
		}
	}
	return fmt.Sprintf("%s, %s/%s, %d processors (%s); databases in %s, where a write and sync takes %s",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, os.TempDir(), syncTime())
}

// syncTime says how long the disk takes: in memory it is next to nothing, and a figure
// about a durable run is worth nothing.
func syncTime() string {
	f, err := os.CreateTemp("", "refrain-gates-")
	if err != nil {
		return err.Error()
	}
	defer os.Remove(f.Name())
	defer f.Close()
	const n = 50
	began := time.Now()
	for range n {
		if _, err := f.WriteString(text); err != nil {
			return err.Error()
		}
		if err := f.Sync(); err != nil {
			return err.Error()
		}
	}
	return (time.Since(began) / n).Round(time.Microsecond).String()
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(data))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// table is what is printed at the end.
type table struct{ lines []line }

// line is one figure.
type line struct {
	what, unit string
	got        series
	floor      string
	judge      byte // '<': at most the bound; '>': at least; 0: it has no goal
	bound      float64
}

// atMost adds a figure that must not be larger than the bound.
func (tb *table) atMost(what, unit string, bound float64, got series, floor string) {
	tb.lines = append(tb.lines, line{what, unit, got, floor, '<', bound})
}

// atLeast adds a figure that must not be smaller than the bound.
func (tb *table) atLeast(what, unit string, bound float64, got series, floor string) {
	tb.lines = append(tb.lines, line{what, unit, got, floor, '>', bound})
}

// tell adds a figure without a goal.
func (tb *table) tell(what, unit string, got series) {
	tb.lines = append(tb.lines, line{what: what, unit: unit, got: got})
}

func (l line) missed() bool {
	m := l.got.median()
	return len(l.got) == 0 || l.judge == '<' && m > l.bound || l.judge == '>' && m < l.bound
}

func (l line) goal() string {
	switch l.judge {
	case '<':
		return "≤ " + figure(l.bound)
	case '>':
		return "≥ " + figure(l.bound)
	}
	return ""
}

func (tb *table) print() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tunit\tgoal\tmeasured\tmin – max\trounds\t\tfloor")
	for _, l := range tb.lines {
		verdict := "met"
		switch {
		case l.missed():
			verdict = "MISSED"
		case l.judge == 0:
			verdict = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s – %s\t%d\t%s\t%s\n", l.what, l.unit, l.goal(), figure(l.got.median()),
			figure(l.got.least()), figure(l.got.most()), len(l.got), verdict, l.floor)
	}
	return w.Flush()
}

// figure writes a number with three digits or more.
func figure(f float64) string {
	switch a := max(f, -f); {
	case a >= 100:
		return fmt.Sprintf("%.0f", f)
	case a >= 10:
		return fmt.Sprintf("%.1f", f)
	case a >= 1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.3f", f)
}

// series is what the rounds measured, in their order.
type series []float64

func (s series) median() float64 { return s.sortedAt(len(s) / 2) }
func (s series) least() float64  { return s.sortedAt(0) }
func (s series) most() float64   { return s.sortedAt(len(s) - 1) }

func (s series) sortedAt(i int) float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(s))[i]
}

// each is f of the figures of s and o, round by round.
func (s series) each(o series, f func(a, b float64) float64) series {
	all := make(series, len(s))
	for i := range s {
		all[i] = f(s[i], o[i])
	}
	return all
}

func (s series) minus(o series) series { return s.each(o, func(a, b float64) float64 { return a - b }) }
func (s series) over(o series) series  { return s.each(o, func(a, b float64) float64 { return a / b }) }

// in is s in another unit.
func (s series) in(unit float64) series {
	return s.each(s, func(a, _ float64) float64 { return a / unit })
}

// to is s rounded to parts of one.
func (s series) to(parts float64) series {
	return s.each(s, func(a, _ float64) float64 { return math.Round(a*parts) / parts })
}

// perSecond returns how often something happens in a second if it takes ns nanoseconds.
func (s series) perSecond() series {
	return s.each(s, func(ns, _ float64) float64 { return 1e9 / ns })
}

// Units of time in nanoseconds, and of memory in bytes.
const (
	us = 1e3
	ms = 1e6
	mb = 1 << 20
)

// side is one of several things that a round measures.
type side struct {
	name string
	once func() (cost, error)
}

// sampled measures an op for at least a tenth of a second.
func sampled(name string, do op) side {
	return side{name, func() (cost, error) { return do.sample(100 * time.Millisecond) }}
}

// brief measures an op for at least a fiftieth of a second.
func brief(name string, do op) side {
	return side{name, func() (cost, error) { return do.sample(20 * time.Millisecond) }}
}

// rounds measures the sides in turn, n times. One round before warms up.
func rounds(t *testing.T, n int, sides ...side) map[string]costs {
	t.Helper()
	all := make(map[string]costs)
	for i := range n + 1 {
		for _, s := range sides {
			c, err := s.once()
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if i > 0 {
				all[s.name] = append(all[s.name], c)
			}
		}
	}
	return all
}

// costs are those of several rounds.
type costs []cost

func (all costs) of(field func(cost) float64) series {
	var s series
	for _, c := range all {
		s = append(s, field(c))
	}
	return s
}

func (all costs) cpu() series    { return all.of(func(c cost) float64 { return c.cpu }) }
func (all costs) wall() series   { return all.of(func(c cost) float64 { return c.wall }) }
func (all costs) bytes() series  { return all.of(func(c cost) float64 { return c.bytes }) }
func (all costs) allocs() series { return all.of(func(c cost) float64 { return c.allocs }) }

// floor says what a floor is, after its median.
func floor(what, unit string, s series) string {
	return fmt.Sprintf("%s %s: %s", figure(s.median()), unit, what)
}
