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

// NewTree returns the tree below and including root. The errors are those of [CheckTree].
func NewTree(root agent.Agent) (*Tree, error) {
	if err := CheckTree(root); err != nil {
		return nil, err
	}
	t := &Tree{root: root, agents: make(map[string]agent.Agent), parents: make(map[string]agent.Agent)}
	t.add(root)
	return t, nil
}

func (t *Tree) add(a agent.Agent) {
	t.agents[a.Name()] = a
	for _, sub := range a.SubAgents() {
		t.parents[sub.Name()] = a
		t.add(sub)
	}
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

// CheckTree returns an error for each agent that has two parents, for each name that two agents
// have, and for each name that agent.Config does not allow.
func CheckTree(root agent.Agent) error {
	c := treeCheck{parents: make(map[agent.Agent]string), names: make(map[string]bool)}
	c.visit(root, "")
	return errors.Join(c.errs...)
}

type treeCheck struct {
	parents map[agent.Agent]string
	names   map[string]bool
	errs    []error
}

// parentOf returns the parent under which an agent was found before. An agent that
// cannot be compared is never met twice; its name is.
func (c *treeCheck) parentOf(a agent.Agent) (string, bool) {
	if !identity.CanCompare(a) {
		return "", false
	}
	parent, ok := c.parents[a]
	return parent, ok
}

func (c *treeCheck) visit(a agent.Agent, parent string) {
	if identity.IsNil(a) {
		c.errs = append(c.errs, fmt.Errorf("under %q: a sub-agent is nil; remove it", parent))
		return
	}
	name := a.Name()
	if first, ok := c.parentOf(a); ok {
		c.errs = append(c.errs, fmt.Errorf("agent %q cannot have >1 parents, found: %q, %q; make a second agent of "+
			"another name", name, first, parent))
		return
	}
	if identity.CanCompare(a) {
		c.parents[a] = parent
	}
	switch err := (agent.Config{Name: name}).Check(); {
	case err != nil:
		if parent != "" {
			err = fmt.Errorf("under %q: %w", parent, err)
		}
		c.errs = append(c.errs, err)
	case c.names[name]:
		c.errs = append(c.errs, fmt.Errorf("agent names must be unique in the agent tree, found duplicate: %q", name))
	}
	c.names[name] = true
	for _, sub := range a.SubAgents() {
		c.visit(sub, name)
	}
}
