// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
)

// newRemote makes an agent that asks one elsewhere.
func newRemote(a *Agent, cb around) (agent.Agent, error) {
	x := a.A2A
	return remoteagent.NewA2A(remoteagent.A2AConfig{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after, AgentCardSource: x.Endpoint,
		Payload: clone(x.Payload), OutputKey: outputKey(a), NewContext: x.NewContext,
		Headers: x.Headers, SizeLimit: x.SizeLimit,
	})
}
