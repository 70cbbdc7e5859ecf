// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition/internal/source"
)

// effects are what a task can do to the world outside. What only computes can do
// no more than innerEffects.
var (
	effects      = []string{string(agent.Pure), string(agent.Idempotent), string(agent.AtMostOnce), string(agent.Transactional)}
	innerEffects = []string{string(agent.Pure), string(agent.Transactional)}
)

const effectsHint = "pure changes nothing, idempotent may happen twice, at_most_once must not, transactional changes only the state"

// effect reads what something does to the world outside.
func (r *reader) effect(n *yaml.Node, what string, of []string) agent.Effect {
	text, ok := r.text(n, what)
	if ok && !slices.Contains(of, text) {
		p := r.report(r.src.Of(n), CodeValue, "%s must be %s, got %q", what, strings.Join(of[:len(of)-1], ", ")+" or "+of[len(of)-1], text)
		if p.Hint = didYouMean(text, of, "%q", effectsHint); slices.Contains(effects, text) {
			p.Hint = "this agent does nothing to the world outside"
		}
		return ""
	}
	return agent.Effect(text)
}

// taskEffect reads that of a task.
func (r *reader) taskEffect(a *Agent, n *yaml.Node) {
	of := effects
	if a.Type == TypeExpression || a.Type == TypeTemplate {
		of = innerEffects
	}
	if source.Deref(n).Kind == yaml.MappingNode && len(of) == len(effects) {
		r.effectMap(a, n)
		return
	}
	a.Effect = r.effect(n, "effect", of)
}

// once refuses to try again what must not be done twice.
func (c *checker) once(a *Agent) {
	if a.Effect == agent.AtMostOnce {
		c.retried(a, a, "effect")
	}
	if a.Reconcile != nil {
		c.reconciles(a)
	}
	if a.LLM == nil {
		return
	}
	for _, t := range a.LLM.Tools {
		if t.MCP != nil && t.MCP.Effect == agent.AtMostOnce {
			c.retried(a, a, t.field+".effect")
		}
	}
}

// retried reports who would run an agent again: itself, or an agent around it.
func (c *checker) retried(a, by *Agent, field string) {
	for ; by != nil; by = by.parent {
		if by.Step == nil || by.Step.Retry == nil || by.Step.Retry.Attempts < 2 {
			continue
		}
		if by == a {
			c.report(a.at("retry"), CodeConflict, "retry does again what failed, and %s says that it must not be done twice: that it failed does not say that nothing was done", effectWords(field)).
				Hint = "leave retry out; or if it may happen twice, or knows its call ID, give effect: idempotent"
			return
		}
		c.report(a.at(field), CodeConflict, "%q must not be done twice, and retry of %q, which it is in, may do it again", a.Name, by.Name).
			Hint = "give retry to the other steps in it, each for itself"
		return
	}
}

func effectWords(field string) string {
	if field == "effect" {
		return "effect: at_most_once"
	}
	return "effect: at_most_once of a tool"
}
