// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// LOOP 32a: whatever IDs a model's server gives, and wherever the process dies, a call that must not be made twice is made
// once: reconcile asks about it by an ID that no other call has.
func TestKilledCallsAreMadeOnce(t *testing.T) {
	for wire, open := range formats {
		for name, id := range hostileIDs {
			t.Run(wire+"/"+name, func(t *testing.T) {
				h := httptest.NewServer(&numberer{wire: wire, id: id, turns: 2})
				defer h.Close()
				deaths, ended := 0, false
				for at := 1; !ended; at++ {
					var mu sync.Mutex
					made, by := map[string]int{}, map[string]string{} // by call, and by the ID of a call
					died := false
					d := newDurable(t, func() agent.Agent {
						note, err := functiontool.New(functiontool.Config{Name: "note", Effect: agent.AtMostOnce,
							Reconcile: func(_ agent.InvocationContext, call agent.Doubt) (agent.Reconciliation, error) {
								mu.Lock()
								defer mu.Unlock()
								if k, ok := by[call.ID]; ok {
									return agent.Happened(map[string]any{"did": k}), nil
								}
								return agent.DidNotHappen(), nil
							},
						}, func(ctx tool.Context, in struct {
							K string `json:"k"`
						}) (map[string]any, error) {
							mu.Lock()
							defer mu.Unlock()
							made[in.K]++
							by[drive.At(ctx).ToolCallID(ctx.FunctionCallID())] = in.K
							return map[string]any{"did": in.K}, nil
						})
						if err != nil {
							t.Fatal(err)
						}
						return newAgent(t, llmagent.Config{Name: "a", Model: open(t, h.URL), Tools: []tool.Tool{note}})
					})
					sound, events := d.svc, 0
					d.svc = &losing{Service: sound, loses: func(*session.Event) bool {
						events++
						died = died || events == at
						return died
					}}
					err := d.run(nil)
					if d.svc = sound; died && err != nil {
						deaths++
						err = d.run(nil)
					}
					if ended = !died; err != nil {
						t.Fatalf("killed at event %d: %v", at, err)
					}
					want := []string{"k0.0", "k0.1", "k0.2", "k1.0", "k1.1", "k1.2"}
					if got := slices.Sorted(maps.Keys(made)); !slices.Equal(got, want) || len(by) != len(want) || slices.Max(slices.Collect(maps.Values(made))) > 1 {
						t.Errorf("killed at event %d: made %v", at, fmt.Sprint(made))
					}
				}
				if deaths < 6 {
					t.Errorf("it died %d times", deaths)
				}
			})
		}
	}
}
