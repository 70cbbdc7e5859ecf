// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/refrain-dev/refrain/agent/llmagent"
)

var gates = flag.Bool("gates", false, "measure against the targets, and fail where one is missed")

// target is what a run of ours may cost an event; times are in nanoseconds.
type target struct {
	name               string
	cpu, allocs, bytes float64
	// timesFloor bounds the CPU to so many times floorid's; 0 does not.
	timesFloor float64
	// perSecond asks for so many events a second, or for share of floorid's.
	perSecond, share float64
	op               func(implementation, content) (op, error)
}

var targets = []target{
	{
		name: "loop alone", cpu: 1000, allocs: 6, bytes: 350,
		op: func(i implementation, c content) (op, error) { return i.direct(1000, c) },
	},
	{
		name: "runner", cpu: 1500, allocs: 8, bytes: 450, timesFloor: 2,
		op: func(i implementation, c content) (op, error) { return i.runner(1000, c) },
	},
	{
		name: "1000 at once", perSecond: 600e3, share: 1.0 / 3,
		op: func(i implementation, c content) (op, error) { return i.concurrent(sessions, iterations, c) },
	},
}

// TestGates prints the targets beside what is measured now. They are about
// content=shared, the part of the cost that is not the agents' own; fresh is
// printed for comparison. A time is the median of several rounds, in each of
// which everything runs once.
func TestGates(t *testing.T) {
	if !*gates {
		t.Skip("run with -gates, on a machine that is quiet")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tcontent\timpl\tcpu-ns/event\tallocs/event\tB/event\tevents/s\t")
	for _, g := range targets {
		for _, c := range []content{shared, fresh} {
			costs := g.measure(t, c)
			for _, impl := range implementations {
				if m, ok := costs[impl.name]; ok {
					fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%.2f\t%.0f\t%.0fk\t\n", g.name, c, impl.name, m.cpu, m.allocs, m.bytes, 1e6/m.wall)
				}
			}
			if c == shared {
				g.judge(t, w, costs["ours"], costs["floorid"])
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}

// What a turn of an LLM loop may cost: under context iteration at most so many
// times as much with most iterations as with fewest; under full, to build the
// contents, so many nanoseconds and so many more for each event of the history.
const (
	turnGrowth      = 1.5
	contentsBase    = 2000
	contentsByEvent = 50
)

// TestGatesOfLLMLoop does for the LLM loop what TestGates does for the others.
func TestGatesOfLLMLoop(t *testing.T) {
	if !*gates {
		t.Skip("run with -gates, on a machine that is quiet")
	}
	const rounds, atLeast = 7, 100 * time.Millisecond
	sizes := []int{10, 100, 500}
	turns := make(map[int][]cost)       // by iterations, under context iteration
	contents := make(map[int][]float64) // the same under full
	for range rounds {
		for _, k := range sizes {
			do, err := llmLoop(k, llmagent.ContextIteration, new(probe))
			if err != nil {
				t.Fatal(err)
			}
			m, err := do.sample(atLeast)
			if err != nil {
				t.Fatal(err)
			}
			ns, err := contentsOf(k, llmagent.ContextFull, atLeast)
			if err != nil {
				t.Fatal(err)
			}
			turns[k], contents[k] = append(turns[k], m), append(contents[k], ns)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "context\titerations\treq-chars/turn\tcpu-ns/turn\tcontents-ns/turn\t")
	g := target{name: "LLM loop"}
	cpu := func(k int) float64 { return median(turns[k], func(m cost) float64 { return m.cpu }) }
	for _, k := range sizes {
		fmt.Fprintf(w, "iteration\t%d\t%.0f\t%.0f\t\t\n", k, charsIn(t, k, llmagent.ContextIteration), cpu(k))
	}
	least, most := sizes[0], sizes[len(sizes)-1]
	fmt.Fprintf(w, "TARGET\t%d\t\t<= %.0f %s\t\t\n", most, turnGrowth*cpu(least), g.verdict(t, "growth of a turn", cpu(most) <= turnGrowth*cpu(least)))
	for _, k := range sizes {
		got := median(contents[k], func(ns float64) float64 { return ns })
		may := contentsBase + contentsByEvent*float64(k+1) // the history has 2k+2 events in the end
		fmt.Fprintf(w, "full\t%d\t%.0f\t\t%.0f <= %.0f %s\t\n", k, charsIn(t, k, llmagent.ContextFull), got, may, g.verdict(t, "contents", got <= may))
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}

func charsIn(t *testing.T, k int, seen llmagent.ContextPolicy) float64 {
	t.Helper()
	n, err := charsOf(k, seen)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (g target) measure(t *testing.T, c content) map[string]cost {
	rounds := make(map[string][]cost)
	for range 7 {
		for _, impl := range implementations {
			if impl.name == "eino" { // quadratic: not within a round
				continue
			}
			do, err := g.op(impl, c)
			if err != nil {
				t.Fatal(err)
			}
			m, err := do.sample(200 * time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			rounds[impl.name] = append(rounds[impl.name], m)
		}
	}
	costs := make(map[string]cost)
	for name, all := range rounds {
		costs[name] = cost{
			cpu:    median(all, func(m cost) float64 { return m.cpu }),
			wall:   median(all, func(m cost) float64 { return m.wall }),
			bytes:  median(all, func(m cost) float64 { return m.bytes }),
			allocs: median(all, func(m cost) float64 { return m.allocs }),
		}
	}
	return costs
}

func median[T any](all []T, of func(T) float64) float64 {
	var values []float64
	for _, m := range all {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// judge prints the target's line and fails the test where it is missed.
func (g target) judge(t *testing.T, w *tabwriter.Writer, ours, floor cost) {
	if g.perSecond > 0 {
		least := min(g.perSecond, g.share*1e9/floor.wall)
		verdict := g.verdict(t, "events/s", least <= 1e9/ours.wall)
		fmt.Fprintf(w, "%s\tTARGET\t\t\t\t\t>= %.0fk %s\t\n", g.name, least/1e3, verdict)
		return
	}
	cpu := g.cpu
	if g.timesFloor > 0 {
		cpu = min(cpu, g.timesFloor*floor.cpu)
	}
	fmt.Fprintf(w, "%s\tTARGET\t\t<= %.0f %s\t<= %.0f %s\t<= %.0f %s\t\t\n", g.name,
		cpu, g.verdict(t, "cpu-ns/event", ours.cpu <= cpu),
		g.allocs, g.verdict(t, "allocs/event", ours.allocs <= g.allocs),
		g.bytes, g.verdict(t, "B/event", ours.bytes <= g.bytes))
}

func (g target) verdict(t *testing.T, what string, met bool) string {
	if met {
		return "ok"
	}
	t.Errorf("%s: %s misses the target", g.name, what)
	return "MISS"
}
