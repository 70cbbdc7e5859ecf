// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/tool"
)

// StandIns take the place of what agents do outside of the process, so that a
// definition can be rehearsed. Each of the functions may be nil.
type StandIns struct {
	// Agent makes the agent in place of a. One that is nil, with no error, is
	// made as the file says.
	Agent func(a *Agent) (agent.Agent, error)
	// Toolset stands for a server of tools, which is not started then.
	Toolset func(a *Agent, m *MCP) tool.Toolset
	// Loop and LLM may change what a loop, or an agent that asks a model, is
	// made from. The rules of the loop are in cfg.Plan.
	Loop func(a *Agent, cfg *loopagent.Config)
	LLM  func(a *Agent, cfg *llmagent.Config)
	// NoCallbacks leaves the callbacks out: nobody is told anything.
	NoCallbacks bool
}

func (s *StandIns) agent(a *Agent) (agent.Agent, error) {
	if s.Agent == nil {
		return nil, nil
	}
	return s.Agent(a)
}

func (s *StandIns) loop(a *Agent, cfg *loopagent.Config) {
	if s.Loop != nil {
		s.Loop(a, cfg)
	}
}

func (s *StandIns) llm(a *Agent, cfg *llmagent.Config) {
	if s.LLM != nil {
		s.LLM(a, cfg)
	}
}
