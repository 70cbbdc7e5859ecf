// SPDX-License-Identifier: Apache-2.0

// Package sequentialagent runs sub-agents one after another, each once.
//
//	pipeline, err := sequentialagent.New(sequentialagent.Config{
//		AgentConfig: agent.Config{Name: "pipeline", SubAgents: []agent.Agent{writer, refine}},
//	})
package sequentialagent

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// Config describes a sequential agent.
type Config struct {
	// AgentConfig is its name, sub-agents and callbacks; Run must be nil.
	AgentConfig agent.Config
}

// Agent is what [New] returns.
type Agent struct {
	*drive.Base
	cfg Config
}

// New returns an agent that runs its sub-agents in order. The first error ends
// it. An exit from a loop around it, asked for by one of its sub-agents, keeps
// the rest from running; an exit from a loop inside it does not. It refuses
// what [agent.New] refuses, and a Run of one's own.
func New(cfg Config) (agent.Agent, error) {
	if cfg.AgentConfig.Run != nil {
		return nil, fmt.Errorf("sequential agent %q: SequentialAgent doesn't allow custom Run implementations",
			cfg.AgentConfig.Name)
	}
	a := &Agent{cfg: cfg}
	base, err := drive.NewBase(cfg.AgentConfig, a, a.run)
	if err != nil {
		return nil, err
	}
	a.Base = base
	return a, nil
}

// Config is what the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// Type is [agent.TypeSequential].
func (a *Agent) Type() agent.Type { return agent.TypeSequential }

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	here := drive.At(ctx).Address()
	for _, sub := range a.cfg.AgentConfig.SubAgents {
		step := drive.NewStep(ctx, drive.StepConfig{Agent: sub})
		res := step.Run(func(ev *session.Event) bool { return yield(ev, nil) })
		switch {
		case res.Left:
			return
		case res.Err != nil:
			yield(nil, res.Err)
			return
		case leaves(here, res.Exit):
			return
		}
	}
}

// leaves reports whether a loop around here ended because of an event.
func leaves(here session.Address, exit *session.Event) bool {
	if exit == nil || exit.Actions.Exit == nil {
		return false
	}
	by := exit.Actions.Exit.HandledBy
	return by != "" && here.Under(by)
}
