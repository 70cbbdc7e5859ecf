// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// T20: who cuts a run off is told which steps may have done what must not be done
// twice: those that were made for it, and models as long as such a call of theirs has no
// answer.
func TestStepsInDoubt(t *testing.T) {
	def, err := definition.Parse("shop.yaml", []byte(`
name: shop
type: parallel
sub_agents:
  - {name: pay, command: [pay], effect: at_most_once}
  - {name: look, command: [look]}
  - {name: clerk, instructions: Sell something.}
`), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var c clocks
	add := func(at session.Address, kind mark.Kind, data any, parts ...*genai.Part) {
		ev := &session.Event{Address: at, Timestamp: time.Now()}
		if kind != "" {
			if ev.Mark, err = mark.New(kind, data); err != nil {
				t.Fatal(err)
			}
		}
		if parts != nil {
			ev.Content = &genai.Content{Parts: parts}
		}
		c.add(ev)
	}
	stands := func(what string, rest bool, want ...string) {
		t.Helper()
		names, others := c.inDoubt(def)
		if diff := cmp.Diff(want, names); diff != "" || others != rest {
			t.Errorf("%s: others %v (-want +got):\n%s", what, others, diff)
		}
	}
	answer := func(id string) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "order"}}
	}
	stands("nothing has begun", false)
	add("shop", mark.KindStepStarted, nil)
	add("shop/look", mark.KindStepStarted, nil)
	add("shop/clerk", mark.KindStepStarted, nil)
	stands("nothing of that kind", true)
	add("shop/clerk", mark.KindDispatched, mark.Dispatched{Calls: []string{"c1", "c2"}})
	add("shop/clerk", "", nil, answer("c1"))
	stands("one call has no answer", true, "clerk")
	add("shop/pay", mark.KindStepStarted, nil)
	stands("a step of that kind", true, "clerk", "pay")
	add("shop/clerk", "", nil, answer("c2"))
	add("shop/look", mark.KindStepFinished, mark.StepFinished{})
	stands("the model goes on", true, "pay")
	add("shop/clerk", mark.KindStepFinished, mark.StepFinished{})
	stands("it alone", false, "pay")
	add("shop/pay", mark.KindStepFinished, mark.StepFinished{})
	stands("over", true) // the sequence around
}
