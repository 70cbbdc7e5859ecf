// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/loop"
)

// checkLegs returns for each leg of the plan its settings and the agents that get them. It returns an error for each leg whose
// settings no agent can use.
func (c *Config) checkLegs(p *loop.Plan) (legs []*drive.Leg, _ error) {
	var errs []error
	for i := range p.OnPlateau {
		l := &p.OnPlateau[i]
		leg := &drive.Leg{Settings: drive.Settings{Model: l.Model, Instructions: l.Instructions, Thinking: l.Thinking}}
		legs = append(legs, leg)
		if !l.Sets() {
			continue
		}
		asked, err := c.agentsOfLeg(p, l)
		if err != nil {
			errs = append(errs, fmt.Errorf("OnPlateau[%d]: %w", i, err))
			continue
		}
		for _, a := range asked {
			leg.Agents = append(leg.Agents, a.Name())
			if err := checkModel(a, l.Model); err != nil {
				errs = append(errs, fmt.Errorf("OnPlateau[%d]: %w", i, err))
			}
		}
	}
	return legs, errors.Join(errs...)
}

// agentsOfLeg returns the agents that get a leg's settings: those in the leg's Steps that ask a model. A leg without Steps is for
// all agents in the loop that ask a model, except the finalizer and those that give the score.
func (c *Config) agentsOfLeg(p *loop.Plan, l *loop.Leg) (asked []agent.Agent, _ error) {
	subs := c.AgentConfig.SubAgents
	if len(l.Steps) == 0 {
		for i, sub := range subs {
			if name := sub.Name(); p.Steps[i].Finalizer || p.Score.GivenBy(name) {
				continue
			}
			asked = appendModelAgents(asked, sub)
		}
		if len(asked) == 0 {
			return nil, errors.New("no step asks a model, except those that give the score and the finalizer; leave it out")
		}
		return asked, nil
	}
	var names []string
	for _, sub := range subs {
		names = appendTree(names, sub)
	}
	for _, name := range l.Steps {
		i := slices.IndexFunc(subs, func(a agent.Agent) bool { return agent.Find(a, name) != nil })
		if i < 0 {
			err := fmt.Errorf("the Steps name %q, which is not in the loop", name)
			if near := suggest.Nearest(name, names); near != "" {
				err = fmt.Errorf("%w; did you mean %q?", err, near)
			}
			return nil, err
		}
		before := len(asked)
		if asked = appendModelAgents(asked, agent.Find(subs[i], name)); len(asked) == before {
			return nil, fmt.Errorf("the Steps name %q, which asks no model", name)
		}
	}
	return asked, nil
}

// appendModelAgents appends the agents in a tree that ask a model.
func appendModelAgents(list []agent.Agent, a agent.Agent) []agent.Agent {
	if _, ok := a.(drive.Settable); ok {
		list = append(list, a)
	}
	for _, sub := range a.SubAgents() {
		list = appendModelAgents(list, sub)
	}
	return list
}

// checkModel returns an error unless the agent can ask the model with the given name.
func checkModel(a agent.Agent, name string) error {
	models := a.(drive.Settable).Models()
	if name == "" || slices.Contains(models, name) {
		return nil
	}
	err := fmt.Errorf("agent %q has no model %q in its Models", a.Name(), name)
	if near := suggest.Nearest(name, models); near != "" {
		return fmt.Errorf("%w; did you mean %q?", err, near)
	}
	if len(models) > 0 {
		return fmt.Errorf("%w; it has %s", err, strings.Join(models, ", "))
	}
	return err
}
