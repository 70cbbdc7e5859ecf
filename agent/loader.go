// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Loader has the agents of a program by their names.
type Loader interface {
	// ListAgents returns the names of all agents, sorted.
	ListAgents() []string
	// LoadAgent returns the agent with a name, or an error that lists the names.
	LoadAgent(name string) (Agent, error)
	// RootAgent returns the agent that the program runs if no other one is named.
	RootAgent() Agent
}

// loader is a [Loader] of agents that are there already.
type loader struct {
	root   Agent
	byName map[string]Agent
}

// NewSingleLoader returns a loader of one agent. The agent answers to its own name and to the empty one.
func NewSingleLoader(a Agent) Loader { return &loader{a, map[string]Agent{a.Name(): a}} }

// NewMultiLoader returns a loader of several agents. It fails if two have the same name.
func NewMultiLoader(root Agent, agents ...Agent) (Loader, error) {
	l := &loader{root, map[string]Agent{root.Name(): root}}
	for _, a := range agents {
		if _, twice := l.byName[a.Name()]; twice {
			return nil, fmt.Errorf("two agents have the name %q: rename one", a.Name())
		}
		l.byName[a.Name()] = a
	}
	return l, nil
}

func (l *loader) RootAgent() Agent { return l.root }

func (l *loader) ListAgents() []string { return slices.Sorted(maps.Keys(l.byName)) }

func (l *loader) LoadAgent(name string) (Agent, error) {
	if name == "" && len(l.byName) == 1 {
		return l.root, nil
	}
	if a, ok := l.byName[name]; ok {
		return a, nil
	}
	return nil, fmt.Errorf("there is no agent %q; the program has %s", name, strings.Join(l.ListAgents(), ", "))
}
