// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// encoded counts how often an event that holds it is encoded.
type encoded struct{ n *atomic.Int64 }

func (c encoded) MarshalJSON() ([]byte, error) {
	c.n.Add(1)
	return []byte(`"counted"`), nil
}

// The seals of a run encode each event once, however deep its loops are nested: a run that is
// driven from its beginning does not read its log again.
func TestSealsEncodeEachEventOnce(t *testing.T) {
	var n, said atomic.Int64
	nested := func(depth int) agent.Agent {
		a := custom(t, "say", func(ctx agent.InvocationContext, yield yield) {
			said.Add(1)
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.CustomMetadata = map[string]any{"n": encoded{&n}}
			yield(ev, nil)
		})
		for i := range depth {
			a = loop(t, fmt.Sprint("loop", i), 3, a)
		}
		return a
	}
	encodings := func() float64 { return float64(n.Swap(0)) / float64(said.Swap(0)) }

	for depth := 1; depth <= 3; depth++ {
		r, err := runner.NewInMemory("app", nested(depth))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Run(t.Context(), "ana", "s", nil, agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		unsealed := encodings() // without marks there are no seals
		store := session.InMemoryService()
		completed(t, start(t, process(t, store, nested(depth))))
		if got := encodings() - unsealed; got != 1 { // process verifies the seals at the end
			t.Errorf("%d loops: the seals encode an event %v times", depth, got)
		}
	}
}
