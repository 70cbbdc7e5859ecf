// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"
)

// What every event says: 40 bytes of text and one key.
const (
	text = "The critic says: shorten the last line.\n"
	key  = "draft"
)

var _ = [1]int{}[len(text)-40] // it is 40 bytes

var names = []string{"writer", "critic", "editor"}

// content says whether each event makes its text and delta anew.
type content bool

const (
	shared content = false
	fresh  content = true
)

func (c content) String() string {
	if c == fresh {
		return "fresh"
	}
	return "shared"
}

// implementation is one way to do the work.
type implementation struct {
	name string
	// upTo is the most iterations it can do in reasonable time; 0 is any number.
	upTo int
	// direct and runner return an op that does the work once. The op's agents
	// are made here, outside what is measured.
	direct, runner func(iterations int, c content) (op, error)
	// concurrent is runner for so many sessions at once; nil leaves it out.
	concurrent func(sessions, iterations int, c content) (op, error)
}

var implementations = []implementation{
	{name: "ours", direct: oursDirect, runner: oursRunner, concurrent: oursConcurrent},
	{name: "eino", direct: einoDirect, runner: einoRunner, upTo: 1000},
	{name: "floor", direct: bareDirect(bareEvent), runner: bareRunner(bareEvent), concurrent: bareConcurrent(bareEvent)},
	{name: "floorid", direct: bareDirect(bareEventWithID), runner: bareRunner(bareEventWithID), concurrent: bareConcurrent(bareEventWithID)},
	{name: "floorevent", direct: bareDirect(fullEvent), runner: bareRunner(fullEvent), concurrent: bareConcurrent(fullEvent)},
}

// implementationOf finds one by name.
func implementationOf(name string) implementation {
	return implementations[slices.IndexFunc(implementations, func(i implementation) bool { return i.name == name })]
}

func BenchmarkLoopDirect(b *testing.B) {
	benchmarkLoop(b, func(i implementation) func(int, content) (op, error) { return i.direct })
}

func BenchmarkLoopRunner(b *testing.B) {
	benchmarkLoop(b, func(i implementation) func(int, content) (op, error) { return i.runner })
}

func benchmarkLoop(b *testing.B, of func(implementation) func(int, content) (op, error)) {
	for _, impl := range implementations {
		for _, iterations := range []int{10, 100, 1000, 10000} {
			if impl.upTo > 0 && iterations > impl.upTo {
				continue
			}
			for _, c := range []content{shared, fresh} {
				b.Run(fmt.Sprintf("impl=%s/iters=%d/content=%s", impl.name, iterations, c), func(b *testing.B) {
					do, err := of(impl)(iterations, c)
					if err != nil {
						b.Fatal(err)
					}
					do.run(b)
				})
			}
		}
	}
}

// Every implementation does the same work.
func TestSameWork(t *testing.T) {
	const sessions, iterations = 4, 5 // fewer than are measured
	for _, impl := range implementations {
		for _, c := range []content{shared, fresh} {
			ops := map[string]func() (op, error){
				"direct": func() (op, error) { return impl.direct(iterations, c) },
				"runner": func() (op, error) { return impl.runner(iterations, c) },
			}
			want := map[string]int{"direct": 3 * iterations, "runner": 3 * iterations}
			if impl.concurrent != nil {
				ops["concurrent"] = func() (op, error) { return impl.concurrent(sessions, iterations, c) }
				want["concurrent"] = sessions * 3 * iterations
			}
			for name, of := range ops {
				do, err := of()
				if err != nil {
					t.Fatalf("%s %s: %v", impl.name, name, err)
				}
				for range 2 { // the second must be as the first
					if n, err := do(); n != want[name] || err != nil {
						t.Errorf("%s %s %s: %d events, want %d, error %v", impl.name, name, c, n, want[name], err)
					}
				}
			}
		}
	}
}
