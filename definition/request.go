// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
)

// NeedsRequest returns why a run needs a request of its user: an agent reads {{user_input}}, or has nothing else to send
// to its model. It is empty if the definition has a query, or if a run can do without a request.
func (d *Definition) NeedsRequest() string { return d.request }

// needsRequest finds out whether a run needs a request.
func (c *checker) needsRequest() {
	if c.def.Query != "" {
		return
	}
	type field struct {
		agent *Agent
		name  string
	}
	asks := make(map[field]bool) // whether there is a request: such a field can do without
	reads := slices.DeleteFunc(slices.Clone(c.reads), func(rd read) bool {
		return rd.name != "user_input" || rd.code || rd.bare || rd.soft || rd.agent.inTool()
	})
	for i := range reads {
		if rd := &reads[i]; rd.section {
			asks[field{rd.agent, rd.field}] = true
		}
	}
	for i := range reads {
		if rd := &reads[i]; !asks[field{rd.agent, rd.field}] {
			c.def.request = fmt.Sprintf("%q reads {{user_input}}", rd.agent.Name)
			return
		}
	}
	for _, a := range c.def.Root.beginning() {
		if a.Type == TypeLLM && !a.instructed() {
			c.def.request = fmt.Sprintf("%q has no instructions, so it would send an empty request to its model", a.Name)
			return
		}
	}
}

// beginning is who begins a run.
func (a *Agent) beginning() (all []*Agent) {
	switch {
	case len(a.SubAgents) == 0:
		return []*Agent{a}
	case a.Type == TypeLoop:
		for _, sub := range inOrder(a) {
			if sub.OutputKey != LoopOutput {
				return sub.beginning()
			}
		}
	case a.Type == TypeParallel:
		for _, sub := range a.SubAgents {
			all = append(all, sub.beginning()...)
		}
		return all
	}
	return a.SubAgents[0].beginning()
}

// instructed reports whether the model of an agent is told something besides the request.
func (a *Agent) instructed() bool {
	if a.LLM.Instructions != "" {
		return true
	}
	for l := a.loopAround(); l != nil; l = l.loopAround() {
		if l.Loop.Goal != "" || l.Loop.Instructions != "" {
			return true
		}
	}
	return false
}
