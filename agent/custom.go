// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"iter"
	"slices"

	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/session"
)

// Custom is an agent that [New] has made.
type Custom struct{ cfg Config }

// Config returns the config that the agent was made from. Do not change its lists, because the
// agent uses them.
func (c *Custom) Config() Config { return c.cfg }

// Name returns the agent's name.
func (c *Custom) Name() string { return c.cfg.Name }

// Description returns the text that tells other agents what this agent is for.
func (c *Custom) Description() string { return c.cfg.Description }

// SubAgents lists the agent's own sub-agents, in order.
func (c *Custom) SubAgents() []Agent { return slices.Clone(c.cfg.SubAgents) }

// FindAgent returns the agent of that name in the tree below and including the agent, as [Find]
// does.
func (c *Custom) FindAgent(name string) Agent { return Find(c, name) }

// FindSubAgent returns the agent of that name below the agent, as [FindSub] does.
func (c *Custom) FindSubAgent(name string) Agent { return FindSub(c, name) }

// Run runs the agent as a step under ctx, between its callbacks. It fails in a program that
// imports neither package runner nor package agent/drive.
func (c *Custom) Run(ctx InvocationContext) iter.Seq2[*session.Event, error] {
	run, ok := driver.Run.(func(InvocationContext, Agent) iter.Seq2[*session.Event, error])
	if !ok {
		return func(yield func(*session.Event, error) bool) {
			yield(nil, errors.New("nothing in this program runs agents: import package runner, or agent/drive"))
		}
	}
	return run(ctx, c)
}
