// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
)

// CheckTree refuses a tree in which an agent has two parents, two agents have
// one name, or one has the name "user" or none. It reports every problem.
func CheckTree(root Agent) error {
	c := treeCheck{parents: make(map[Agent]string), names: make(map[string]bool)}
	c.visit(root, "")
	return errors.Join(c.errs...)
}

type treeCheck struct {
	parents map[Agent]string
	names   map[string]bool
	errs    []error
}

// parentOf is the parent under which an agent was met before. An agent that
// cannot be compared is never met twice; its name is.
func (c *treeCheck) parentOf(a Agent) (string, bool) {
	if !canCompare(a) {
		return "", false
	}
	parent, ok := c.parents[a]
	return parent, ok
}

func (c *treeCheck) visit(a Agent, parent string) {
	name := a.Name()
	if first, ok := c.parentOf(a); ok {
		c.errs = append(c.errs, fmt.Errorf("agent %q cannot have >1 parents, found: %q, %q; make a second agent of another name", name, first, parent))
		return
	}
	if canCompare(a) {
		c.parents[a] = parent
	}
	switch err := checkName(name); {
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
