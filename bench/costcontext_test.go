// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/budget"
)

// What the input of a loop costs with each context of its agents, in dollars for a thousand loops: a digest of the
// older iterations costs less than the whole conversation, or up to 5 % more where the answers are short and OpenAI keeps
// the conversation. make bench-cost prints the table.
func TestCostOfContext(t *testing.T) {
	contexts := []struct {
		name string
		cfg  llmagent.ContextConfig
	}{
		{"full", llmagent.ContextConfig{Policy: llmagent.ContextFull}},
		{"digest of all but 2", llmagent.ContextConfig{Policy: llmagent.ContextDigest, Last: 2}},
		{"last 2", llmagent.ContextConfig{Policy: llmagent.ContextLast, Last: 2}},
		{"iteration", llmagent.ContextConfig{Policy: llmagent.ContextIteration}},
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "loop\tprovider\t")
	for _, c := range contexts {
		fmt.Fprintf(w, "%s\t", c.name)
	}
	fmt.Fprintln(w)
	for _, l := range costLoops(t) {
		if l.def == nil {
			continue
		}
		for _, p := range providers {
			list, ok := budget.Listed(p.model)
			if !ok {
				t.Fatalf("%s has no list price", p.model)
			}
			fmt.Fprintf(w, "%s\t%s\t", l.name, p.name)
			dollars := make([]float64, len(contexts))
			for i, c := range contexts {
				for a := range l.def.Root.All {
					if a.LLM != nil {
						a.LLM.Context = c.cfg
					}
				}
				sum := costed(t, frameworks[0], l, p).Tokens()
				dollars[i] = sum.Paid() * list.Input / 1e3
				fmt.Fprintf(w, "%.2f\t", dollars[i])
			}
			fmt.Fprintln(w)
			if whole, digest, iteration := dollars[0], dollars[1], dollars[3]; digest > 1.05*whole || iteration > digest {
				t.Errorf("%s, %s: the whole conversation costs %.2f dollars, a digest %.2f, the iteration %.2f", l.name, p.name,
					whole, digest, iteration)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	t.Log("\n" + table.String())
}
