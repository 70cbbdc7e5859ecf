// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/internal/identity"
)

// Tree is a tree of agents, in which agents and their parents are found by name. A nil Tree is
// empty.
type Tree struct {
	root    agent.Agent
	agents  map[string]agent.Agent
	parents map[string]agent.Agent
}

// NewTree returns the tree below and including root. The error names each agent that has two parents, each name that two
// agents have, and each name that agent.Config does not allow.
func NewTree(root agent.Agent) (*Tree, error) {
	t := &Tree{root: root, agents: make(map[string]agent.Agent), parents: make(map[string]agent.Agent)}
	b := treeBuilder{tree: t, parents: make(map[agent.Agent]string)}
	b.add(root, nil)
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// Root returns the agent at the top, or nil if the tree is empty.
func (t *Tree) Root() agent.Agent {
	if t == nil {
		return nil
	}
	return t.root
}

// Find returns the agent of that name, or nil.
func (t *Tree) Find(name string) agent.Agent {
	if t == nil {
		return nil
	}
	return t.agents[name]
}

// Parent returns the agent that the named agent is a sub-agent of, or nil.
func (t *Tree) Parent(name string) agent.Agent {
	if t == nil {
		return nil
	}
	return t.parents[name]
}

// Names returns the names of all agents, sorted.
func (t *Tree) Names() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.agents))
}

// Tree returns the tree that the step belongs to, or nil.
func (p Place) Tree() *Tree {
	if inv := p.inv; inv != nil {
		return inv.tree
	}
	return nil
}

// treeBuilder adds agents to a tree and collects the errors.
type treeBuilder struct {
	tree    *Tree
	parents map[agent.Agent]string // names of parents, by agent; without agents that cannot be compared, which are found twice by name
	errs    []error
}

// add adds an agent and all agents below it. An agent that does not fit adds an error.
func (b *treeBuilder) add(a, parent agent.Agent) {
	under := ""
	if parent != nil {
		under = parent.Name()
	}
	if identity.IsNil(a) {
		b.errs = append(b.errs, fmt.Errorf("under %q: a sub-agent is nil; remove it", under))
		return
	}
	name := a.Name()
	if identity.CanCompare(a) {
		if first, ok := b.parents[a]; ok {
			b.errs = append(b.errs, fmt.Errorf("agent %q cannot have >1 parents, found: %q, %q; make a second agent of "+
				"another name", name, first, under))
			return
		}
		b.parents[a] = under
	}
	switch err := (agent.Config{Name: name}).Check(); {
	case err != nil:
		if under != "" {
			err = fmt.Errorf("under %q: %w", under, err)
		}
		b.errs = append(b.errs, err)
	case b.tree.agents[name] != nil:
		b.errs = append(b.errs, fmt.Errorf("agent names must be unique in the agent tree, found duplicate: %q", name))
	}
	b.tree.agents[name] = a
	if parent != nil {
		b.tree.parents[name] = parent
	}
	for _, sub := range a.SubAgents() {
		b.add(sub, a)
	}
}
