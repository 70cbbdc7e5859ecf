// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// twoSets is a loop of two steps that only compute.
const twoSets = `
name: two
state: {n: 0, words: 0}
inputs: {text: {type: string, default: hello}}
max_iterations: %d
timeout: 1h
%ssub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: words, set: {words: size(state.text) + state.n}}
`

// iterate runs a durable loop of two steps in memory. more are fields of it, keys how many
// keys the state has that nobody reads.
func iterate(tb testing.TB, iterations int, more string, keys int) {
	d, err := definition.Parse("two.yaml", fmt.Appendf(nil, twoSets, iterations, more), definition.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	state, err := d.InitialState(nil)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range keys {
		state[fmt.Sprintf("key%d", i)] = []any{"a", float64(i)}
	}
	a, err := d.Build(tb.Context(), definition.BuildConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "test", Agent: a, SessionService: session.InMemoryService(),
		AutoCreateSession: true, Durable: true})
	if err != nil {
		tb.Fatal(err)
	}
	msg := genai.NewContentFromText("go", genai.RoleUser)
	var last any
	for ev, err := range r.Run(tb.Context(), "u", "s", msg, agent.RunConfig{}, runner.WithStateDelta(state)) {
		if err != nil {
			tb.Fatal(err)
		}
		if n, ok := ev.Actions.StateDelta["n"]; ok {
			last = n
		}
	}
	if fmt.Sprint(last) != fmt.Sprint(iterations) {
		tb.Fatalf("the last count is %v after %d iterations", last, iterations)
	}
}

// allocations are those of an iteration between two numbers of iterations.
func allocations(t *testing.T, from, to int, more string, keys int) float64 {
	t.Helper()
	run := func(n int) float64 {
		least := math.Inf(1)
		for range 3 { // a collection in between empties the pools of encoding/json
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			iterate(t, n, more, keys)
			runtime.ReadMemStats(&after)
			least = min(least, float64(after.Mallocs-before.Mallocs))
		}
		return least
	}
	return (run(to) - run(from)) / float64(to-from)
}

// What an iteration costs grows neither with how many there were nor with the size of the state
// that nobody reads or writes. A part that grew with either would be several times as large in the
// second measurement; the quarter that is left free is the noise of pools, which the race detector
// empties at random.
func TestIterationCostsTheSame(t *testing.T) {
	for name, more := range map[string]string{
		"max_iterations": "", "score": "score: {key: words}\nstop_when: state.n < 0\non_regression: keep_best\n",
	} {
		base := allocations(t, 20, 60, more, 0)
		t.Logf("%s: %.1f allocations an iteration", name, base)
		if late := allocations(t, 220, 260, more, 0); late > 1.25*base {
			t.Errorf("%s: %.1f allocations in each of the first iterations, %.1f in later ones", name, base, late)
		}
		if large := allocations(t, 20, 60, more, 1000); large > 1.25*base {
			t.Errorf("%s: %.1f allocations in an iteration, %.1f with 1,000 more keys in the state", name, base, large)
		}
	}
}

func BenchmarkSetSteps(b *testing.B) {
	for _, keys := range []int{0, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			b.ReportAllocs()
			iterate(b, max(b.N, 1), "", keys)
		})
	}
}
