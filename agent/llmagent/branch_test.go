// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
)

// Agents in parallel do not hear each other, whatever their names: a dot in one is none
// between two branches.
func TestParallelAgentsWithDotsInTheirNames(t *testing.T) {
	for _, names := range [][2]string{{"v1", "v1.1"}, {"v1.1", "v1"}, {"v1.1", "v1%2E1"}} {
		first := record(script(t, says("from the first"), says("more of it")))
		second := record(script(t, says("from the second")))
		panel, err := parallelagent.New(parallelagent.Config{MaxConcurrency: 1, AgentConfig: agent.Config{Name: "panel", SubAgents: []agent.Agent{
			newAgent(t, llmagent.Config{Name: names[0], Model: first}), newAgent(t, llmagent.Config{Name: names[1], Model: second}),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		newThread(t, panel).must("go")
		for _, rec := range []*recorder{first, second} {
			for _, text := range rec.heard(0) {
				if strings.Contains(text, "from the") {
					t.Errorf("%q: one hears %q", names, text)
				}
			}
		}
	}
}
