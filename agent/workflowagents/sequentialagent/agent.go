// SPDX-License-Identifier: Apache-2.0

// Package sequentialagent runs sub-agents one after another, each once.
//
//	pipeline, err := sequentialagent.New(sequentialagent.Config{
//		AgentConfig: agent.Config{Name: "pipeline", SubAgents: []agent.Agent{writer, refine}},
//	})
package sequentialagent

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// Config describes a sequential agent.
type Config struct {
	// AgentConfig has the agent's name, sub-agents and callbacks; its Run must be nil.
	AgentConfig agent.Config
	// Steps has the policies of single sub-agents, by name. The error of a sub-agent without a policy
	// ends the agent, as in ADK; such a sub-agent runs without a delay.
	Steps map[string]StepPolicy
}

// StepPolicy says how the agent treats one of its sub-agents.
type StepPolicy = drive.StepPolicy

// Agent is the concrete type of [New]'s agents.
type Agent struct {
	*drive.Base
	cfg   Config
	steps drive.StepPolicies
}

var (
	_ drive.Skipper   = (*Agent)(nil)
	_ drive.Describer = (*Agent)(nil)
)

// New returns an agent that runs its sub-agents in order. The first error that no policy skips
// ends it. If a sub-agent asks to leave a loop around the agent, the rest do not run; an exit
// from a loop inside it has no such effect. New returns an error for a config that [agent.New]
// refuses, for a Run function, and for a policy whose name no sub-agent has.
func New(cfg Config) (agent.Agent, error) {
	if cfg.AgentConfig.Run != nil {
		return nil, fmt.Errorf("sequential agent %q: SequentialAgent doesn't allow custom Run implementations",
			cfg.AgentConfig.Name)
	}
	a := &Agent{cfg: cfg, steps: maps.Clone(cfg.Steps)}
	base, err := drive.NewBase(cfg.AgentConfig, a, a.run)
	if err != nil {
		return nil, err
	}
	if err := a.steps.Check(cfg.AgentConfig.SubAgents); err != nil {
		return nil, fmt.Errorf("sequential agent %q: %w", cfg.AgentConfig.Name, err)
	}
	a.Base = base
	return a, nil
}

// Config returns the config that the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// Type returns [agent.TypeSequential].
func (a *Agent) Type() agent.Type { return agent.TypeSequential }

// Skips reports whether the agent continues after a sub-agent has failed with an error.
func (a *Agent) Skips(step string, err error) bool { return a.steps.Skips(step, err) }

// Traits says that the agent runs no code but its sub-agents.
func (a *Agent) Traits(bool) drive.Traits { return drive.Traits{Inline: true} }

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	me, course := drive.At(ctx), a.steps.Course(ctx)
	here, grace := me.Address(), me.Grace(0)
	for _, sub := range a.cfg.AgentConfig.SubAgents {
		step := drive.NewStep(ctx, drive.StepConfig{Agent: sub, Grace: grace})
		res := course.Run(step, func(ev *session.Event) bool { return yield(ev, nil) })
		if res.ConsumerLeft {
			return
		}
		if res.Err != nil || leaves(here, res.Exit) {
			if err := cmp.Or(course.End(), res.Err); err != nil {
				yield(nil, err)
			}
			return
		}
	}
	if err := course.End(); err != nil {
		yield(nil, err)
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
