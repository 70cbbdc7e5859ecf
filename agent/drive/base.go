// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// Body is what a kind of agent does when it runs. It calls yield for each event, and returns as
// soon as yield returns false.
type Body func(ctx agent.InvocationContext, yield func(*session.Event, error) bool)

// Base has the methods that all agents of this project share. A kind of agent embeds the *Base
// that [NewBase] returns.
type Base struct {
	cfg  agent.Config
	self agent.Agent
	body Body
}

// NewBase returns the base of self, which embeds it; if self is nil the base is the agent. If
// body is nil the agent runs cfg.Run. The errors are those of [agent.Config.Check].
func NewBase(cfg agent.Config, self agent.Agent, body Body) (*Base, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.SubAgents = slices.Clone(cfg.SubAgents)
	b := &Base{cfg: cfg, self: self, body: body}
	if self == nil {
		b.self = b
	}
	return b, nil
}

// baser is an agent that embeds a Base.
type baser interface{ base() *Base }

// emptyBase is the agent that the methods of a nil Base describe. It has no name, so it cannot be a sub-agent. It
// fails when it is run. A kind of agent that was made without its New embeds a nil Base.
var emptyBase Base

func (b *Base) orEmpty() *Base { return cmp.Or(b, &emptyBase) }

// Name returns the agent's name.
func (b *Base) Name() string { return b.orEmpty().cfg.Name }

// Description returns the text that tells other agents what this agent is for.
func (b *Base) Description() string { return b.orEmpty().cfg.Description }

// SubAgents lists the agent's own sub-agents, in order.
func (b *Base) SubAgents() []agent.Agent { return slices.Clone(b.orEmpty().cfg.SubAgents) }

// FindAgent returns the result of [agent.Find].
func (b *Base) FindAgent(name string) agent.Agent {
	if b == nil {
		return nil
	}
	return agent.Find(b.self, name)
}

// FindSubAgent returns the result of [agent.FindSub].
func (b *Base) FindSubAgent(name string) agent.Agent {
	if b == nil {
		return nil
	}
	return agent.FindSub(b.self, name)
}

// Run runs the agent as a step under ctx, by [Run].
func (b *Base) Run(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	if b == nil {
		return func(yield func(*session.Event, error) bool) {
			yield(nil, errors.New("the agent was not made by its New; make it with New"))
		}
	}
	return Run(ctx, b.self)
}

func (b *Base) base() *Base { return b }
