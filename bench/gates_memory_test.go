// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/bench/ours"
)

// The loop agent alone.
func loopAlone(t *testing.T, tb *table) {
	ownPart(t, tb, "loop alone", 1.5, func(i implementation) func(int) (op, error) { return i.direct })
}

// The same through the runner and a session in memory, which keeps the events. The agent runs in a goroutine of
// its own, so that a consumer may lock its thread, and an agent may be left behind: most of this is the way of an
// event from one to the other and back.
func throughRunner(t *testing.T, tb *table) {
	ownPart(t, tb, "runner", 6, func(i implementation) func(int) (op, error) { return i.runner })
}

// A step with a timeout, which runs in a goroutine of its own so that it can be left behind, for a step
// without.
func timedSteps(t *testing.T, tb *table) {
	const iterations = 1000
	timed, err := timedDirect(iterations, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := oursDirect(iterations)
	if err != nil {
		t.Fatal(err)
	}
	got := rounds(t, 25, brief("plain", plain), brief("timed", timed))
	tb.atMost("a step with a timeout", "µs/event", 7, got["timed"].cpu().in(us), floor("the step without", "µs", got["plain"].cpu().in(us)))
	tb.tell("a step with a timeout", "allocs/event", got["timed"].allocs())
}

// ownPart measures loops of 1,000 iterations. Our own part of an event's cost is all but
// what it takes to make the event and drop it.
func ownPart(t *testing.T, tb *table, what string, micros float64,
	of func(implementation) func(int) (op, error)) {
	const iterations = 1000
	event := eventsAlone(3 * iterations)
	var sides []side
	var mine, eino op
	for _, i := range implementations {
		if of(i) == nil || i.name == "marks" {
			continue
		}
		do, err := of(i)(iterations)
		if err != nil {
			t.Fatal(err)
		}
		switch i.name {
		case "ours":
			mine = do
		case "eino":
			eino = do
		case "adk":
			sides = append(sides, sampled("adk", do), sampled("ours", mine))
		default:
			sides = append(sides, sampled(i.name, do))
		}
	}
	// What a machine does besides comes and goes within tenths of a second: of many short rounds
	// most have the same of it on both sides.
	pair := rounds(t, 75, brief("event", event), brief("ours", mine))
	ours, alone := pair["ours"], pair["event"]
	got := rounds(t, 9, sides...)
	tb.atMost(what+", own part", "µs/event", micros, ours.cpu().minus(alone.cpu()).in(us),
		floor("the fresh event alone", "µs", alone.cpu().in(us)))
	tb.tell(what+", own part and set-up of 1,000 iterations", "allocs/event", ours.allocs().minus(alone.allocs()))
	if adk := got["adk"]; adk != nil {
		tb.atMost(what+", whole", "× ADK's", 1, got["ours"].cpu().over(adk.cpu()), floor("an event of ADK", "µs", adk.cpu().in(us)))
	}
	tb.tell(what+", whole", "µs/event", ours.cpu().in(us))
	tb.tell("  by hand, bare event", "µs/event", got["floor"].cpu().in(us))
	tb.tell("  by hand, with ID and time as ADK's", "µs/event", got["floorid"].cpu().in(us))
	tb.tell("  by hand, our event", "µs/event", got["floorevent"].cpu().in(us))
	m, err := eino.sample(1) // once: it is quadratic
	if err != nil {
		t.Fatal(err)
	}
	tb.tell("  Eino, 1,000 iterations", "µs/event", series{m.cpu}.in(us))
}

// The runner with marks, in memory. An event is one that an agent said: the marks
// around it are part of its cost.
func withMarks(t *testing.T, tb *table) {
	const iterations = 1000
	do, err := oursRunner(true)(iterations)
	if err != nil {
		t.Fatal(err)
	}
	got := rounds(t, 9, sampled("event", eventsAlone(3*iterations)), sampled("marks", do))
	marks, alone := got["marks"], got["event"]
	tb.tell("runner with marks, in memory", "µs/event", marks.cpu().in(us))
	tb.tell("  the fresh event alone; Eino and ADK have no marks", "µs/event", alone.cpu().in(us))
	tb.atMost("runner with marks, in memory", "B/event", 8000, marks.bytes(),
		floor("the fresh event alone", "B", alone.bytes()))
}

// A turn of a model loop that sees the whole conversation, with and without a callback.
func modelTurns(t *testing.T, tb *table) {
	const few, many = 50, 500
	var sides []side
	name := func(callbacks, k int) string { return fmt.Sprint(callbacks, " ", k) }
	for callbacks := range 2 {
		for _, k := range []int{few, many} {
			do, err := modelLoop(k, llmagent.ContextFull, []llmagent.BeforeModelCallback{nothing}[:callbacks]...)
			if err != nil {
				t.Fatal(err)
			}
			sides = append(sides, sampled(name(callbacks, k), do))
		}
	}
	answers := instant{draft}
	sides = append(sides, sampled("answer", func() (int, error) {
		const n = 1000
		for range n {
			answered = answers.answer()
			made = ours.NewEvent(t.Context(), "run-1")
		}
		return n, nil
	}))
	got := rounds(t, 7, sides...)
	alone := got["answer"].cpu()
	for callbacks, what := range []string{"model loop, full history", "the same with one callback"} {
		long, short := got[name(callbacks, many)].cpu(), got[name(callbacks, few)].cpu()
		if callbacks > 0 { // it gets a copy of each content, as in ADK, so a turn costs more with each earlier turn
			tb.tell(fmt.Sprintf("%s, k = %d", what, many), "µs/turn", long.in(us))
			continue
		}
		tb.atMost(fmt.Sprintf("%s, k = %d", what, many), "µs/turn", 12, long.in(us),
			floor("a fresh answer and a fresh event alone", "µs", alone.in(us)))
		tb.atMost(fmt.Sprintf("%s, k = %d to k = %d", what, many, few), "times", 1.25, long.over(short),
			floor(fmt.Sprintf("at k = %d", few), "µs", short.in(us)))
	}
}
