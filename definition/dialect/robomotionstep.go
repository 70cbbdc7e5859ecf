// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// given reports whether a property has its value in the flow. One that comes with
// a message cannot be known.
func (r *robomotionReader) given(a *agent, p prop, name string) bool {
	if !p.fixed() {
		r.fail(p.at, a.was, name, "%s comes with the flow's message, in %s: a definition needs the value", name, p.value.what()).Advice = "write it in the node"
	}
	return p.fixed()
}

// color is how the agent is shown.
func (r *robomotionReader) color(a *agent, p prop) {
	text := strings.ToLower(strings.TrimSpace(p.value.text()))
	if short := []rune(text); len(short) == 4 && short[0] == '#' {
		text = "#" + strings.Repeat(string(short[1]), 2) + strings.Repeat(string(short[2]), 2) + strings.Repeat(string(short[3]), 2)
	}
	if text == "grey" {
		text = "gray"
	}
	if !hexColor.MatchString(text) && !slices.Contains(definition.Colors(), text) {
		r.dropped(p.at, a.was, "Color", "colors here are "+strings.Join(definition.Colors(), ", ")+` and "#rrggbb"`, "there is no color %s", p.value.what())
		return
	}
	a.set("color", text, p.value)
	r.mapped(p.at, a.was, "Color", "color")
}

var hexColor = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// continues reads Continue On Error.
func (r *robomotionReader) continues(a *agent, n *robomotionNode) (bool, prop) {
	p, given := n.get("continue on error")
	if !given {
		return false, p
	}
	on, ok := p.value.boolean()
	if !r.given(a, p, "Continue On Error") {
		return false, p
	}
	if !ok {
		r.fail(p.at, a.was, "Continue On Error", "Continue On Error must be true or false, got %s", p.value.what())
	}
	return on, p
}

// step reads what is about the node as a step of a loop.
func (r *robomotionReader) step(a *agent, n *robomotionNode, around *agent) {
	isStep := around != nil && around.typ == definition.TypeLoop
	for _, d := range []struct{ label, name, field string }{{"delay before", "Delay Before", "delay_before"}, {"delay after", "Delay After", "delay_after"}} {
		p, ok := n.get(d.label)
		if f, isNumber := p.value.number(); !ok || isNumber && f == 0 || !r.given(a, p, d.name) {
			continue
		}
		text, isTime := seconds(p.value)
		switch {
		case !isTime:
			r.fail(p.at, a.was, d.name, "%s must be a number of seconds, got %s", d.name, p.value.what())
		case isStep, around == nil && a.typ == definition.TypeLoop:
			a.set(d.field, text, p.value)
			r.mapped(p.at, a.was, d.name, d.field)
		default:
			r.dropped(p.at, a.was, d.name, "give it to the loop at the root, or to a step of a loop", "only the loop at the root and the steps of a loop wait here")
		}
	}
	if a.typ == definition.TypeLoop {
		return
	}
	if on, p := r.continues(a, n); on && isStep {
		a.set("on_error", "skip_step", p.value)
		r.mapped(p.at, a.was, "Continue On Error", "on_error: skip_step")
	} else if on {
		r.dropped(p.at, a.was, "Continue On Error", "give the loop around it continue_on_error: true", "it works on loops and on their steps")
	}
	r.stepTimeout(a, n, isStep)
}

// stepTimeout reads how long a node may take that is no loop. A sequence and a
// parallel agent end after 300 seconds if nothing is said.
func (r *robomotionReader) stepTimeout(a *agent, n *robomotionNode, isStep bool) {
	p, ok := n.get("timeout")
	text, isTime := seconds(p.value)
	switch {
	case !ok && a.typ == definition.TypeLLM:
	case !ok && isStep:
		a.set("timeout", robomotionTimeout)
		r.add(Mapped, a.at, a.was, "Timeout", "timeout", "300 s, the node's default")
	case !ok:
		r.dropped(a.at, a.was, "Timeout", "give the loop around it a timeout", "it is 300 s by default, and only loops and their steps have one here")
	case !r.given(a, p, "Timeout"):
	case !isTime:
		r.fail(p.at, a.was, "Timeout", "Timeout must be a number of seconds above 0, got %s", p.value.what())
	case isStep:
		a.set("timeout", text, p.value)
		r.mapped(p.at, a.was, "Timeout", "timeout")
	default:
		r.dropped(p.at, a.was, "Timeout", "give the loop around it a timeout", "only loops and their steps have one")
	}
}
