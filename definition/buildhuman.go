// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
)

// newHuman makes an agent that asks a person.
func newHuman(a *Agent, cb around) (agent.Agent, error) {
	h := a.Human
	return humanagent.New(humanagent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
		Kind: h.Ask, Text: h.Question, Options: slices.Clone(h.Options), Keys: slices.Clone(h.Keys), OutputKey: outputKey(a),
		ExitIfApproved: a.approves(), Timeout: h.Deadline, Default: slices.Clone(h.Default),
	})
}
