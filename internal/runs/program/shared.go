// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
)

// Shared returns a constructor that gives all runs and steps one agent. A step gets the agent itself if it has the agent's
// name and adds no callbacks; otherwise it gets a copy of an agent that agent.New made, or an agent with this sub-agent.
func Shared(a agent.Agent) definition.NewAgent {
	return func(cfg agent.Config) (agent.Agent, error) {
		plain := len(cfg.BeforeAgentCallbacks)+len(cfg.AfterAgentCallbacks) == 0
		if plain && cfg.Name == a.Name() {
			return a, nil
		}
		if made, ok := a.(*agent.Custom); ok {
			own := made.Config()
			own.Name = cfg.Name
			if cfg.Description != "" {
				own.Description = cfg.Description
			}
			own.BeforeAgentCallbacks = slices.Concat(cfg.BeforeAgentCallbacks, own.BeforeAgentCallbacks)
			own.AfterAgentCallbacks = slices.Concat(own.AfterAgentCallbacks, cfg.AfterAgentCallbacks)
			return agent.New(own)
		}
		if cfg.Name == a.Name() {
			return nil, fmt.Errorf("the step has the agent's own name and adds callbacks or an output_key; give the step "+
				"another name than %q", cfg.Name)
		}
		cfg.SubAgents, cfg.Run = []agent.Agent{a}, a.Run
		return agent.New(cfg)
	}
}

// AddLoader adds the agents of a loader, and returns the name of the definition that is its root agent. A definition has the
// name of its agent, or if a definition cannot have that name, [DefinitionName] of it.
func (c *Code) AddLoader(l agent.Loader) (root string, err error) {
	if l == nil || l.RootAgent() == nil {
		return "", errors.New("AgentLoader has no root agent; set it, such as to agent.NewSingleLoader(a)")
	}
	if c.Agents == nil {
		c.Agents = make(map[string]definition.NewAgent)
	}
	for _, name := range l.ListAgents() {
		a, err := l.LoadAgent(name)
		if err != nil {
			return "", fmt.Errorf("load agent %q: %w", name, err)
		}
		word := DefinitionName(a.Name())
		if _, twice := c.Agents[word]; twice {
			return "", fmt.Errorf("two agents are called %q: rename one", word)
		}
		c.Agents[word] = Shared(a)
		c.Describe(word, a.Description())
	}
	return DefinitionName(l.RootAgent().Name()), nil
}

// DefinitionName returns a name with _ in place of each character that the name of a definition cannot have.
func DefinitionName(agent string) string {
	word := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, agent)
	if word == "" || !unicode.IsLetter(rune(word[0])) {
		word = "a" + word
	}
	return word[:min(len(word), 63)]
}
