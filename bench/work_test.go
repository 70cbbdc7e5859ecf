// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"github.com/refrain-dev/refrain/bench/ours"
	"slices"
	"testing"
)

// What every event says, by whom and where.
const (
	text, key = ours.Text, ours.Key
	app, user = ours.App, ours.User
)

// implementation is one way to do the work.
type implementation struct {
	name string
	// upTo is the most iterations it can do in reasonable time; 0 is any number.
	upTo int
	// direct and runner return an op that does the work once. The op's agents are
	// made here, outside what is measured.
	direct, runner func(iterations int) (op, error)
	// concurrent is runner for a number of sessions at once; nil leaves it out.
	concurrent func(sessions, iterations int) (op, error)
}

var implementations = []implementation{
	{name: "ours", direct: oursDirect, runner: oursRunner(false), concurrent: oursConcurrent(false)},
	{name: "marks", runner: oursRunner(true), concurrent: oursConcurrent(true)},
	{name: "adk", runner: adkRunner, upTo: 1000},
	{name: "eino", direct: einoDirect, runner: einoRunner, upTo: 1000},
	{name: "floor", direct: bareDirect(bareEvent), runner: bareRunner(bareEvent), concurrent: bareConcurrent(bareEvent)},
	{name: "floorid", direct: bareDirect(bareEventWithID), runner: bareRunner(bareEventWithID), concurrent: bareConcurrent(bareEventWithID)},
	{name: "floorevent", direct: bareDirect(fullEvent), runner: bareRunner(fullEvent), concurrent: bareConcurrent(fullEvent)},
}

func BenchmarkLoopDirect(b *testing.B) {
	benchmarkLoop(b, func(i implementation) func(int) (op, error) { return i.direct })
}

func BenchmarkLoopRunner(b *testing.B) {
	benchmarkLoop(b, func(i implementation) func(int) (op, error) { return i.runner })
}

func benchmarkLoop(b *testing.B, of func(implementation) func(int) (op, error)) {
	for _, impl := range implementations {
		for _, iterations := range []int{10, 100, 1000, 10000} {
			if of(impl) == nil || impl.upTo > 0 && iterations > impl.upTo {
				continue
			}
			b.Run(fmt.Sprintf("impl=%s/iters=%d", impl.name, iterations), func(b *testing.B) {
				do, err := of(impl)(iterations)
				if err != nil {
					b.Fatal(err)
				}
				do.run(b)
			})
		}
	}
}

// Every implementation does the same work.
func TestSameWork(t *testing.T) {
	const sessions, iterations = 4, 5 // fewer than are measured
	for _, impl := range implementations {
		ops, want := make(map[string]op), make(map[string]int)
		add := func(name string, events int, do op, err error) {
			if err != nil {
				t.Fatalf("%s %s: %v", impl.name, name, err)
			}
			ops[name], want[name] = do, events
		}
		if impl.direct != nil {
			do, err := impl.direct(iterations)
			add("direct", 3*iterations, do, err)
		}
		if impl.runner != nil {
			do, err := impl.runner(iterations)
			add("runner", 3*iterations, do, err)
		}
		if impl.concurrent != nil {
			do, err := impl.concurrent(sessions, iterations)
			add("concurrent", sessions*3*iterations, do, err)
		}
		for name, do := range ops {
			for range 2 { // the second must be as the first
				if n, err := do(); n != want[name] || err != nil {
					t.Errorf("%s %s: %d events, want %d, error %v", impl.name, name, n, want[name], err)
				}
			}
		}
	}
}

func implementationNamed(name string) implementation {
	return implementations[slices.IndexFunc(implementations, func(i implementation) bool { return i.name == name })]
}
