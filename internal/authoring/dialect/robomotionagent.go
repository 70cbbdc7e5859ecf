// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// The defaults of a Loop Agent node.
const (
	robomotionIterations = 5
	robomotionTimeout    = "300s"
)

// labels has the properties of the nodes by type; those under "" are of all types.
var labels = map[definition.Type][]string{
	"": {
		"name", "agent name", "color", "delay before", "delay after", "continue on error", "session id", "description", "query", "response",
		"timeout", "comment",
	},
	definition.TypeLoop:       {"max iterations", "order"},
	definition.TypeSequential: {"order"},
	definition.TypeLLM: {
		"instructions", "files", "output key", "model name", "model", "custom model", "credits", "skills", "active skills", "temperature", "max tokens",
		"output schema",
	},
}

// agent reads a node and the nodes on its sub-agents port.
func (r *robomotionReader) agent(n *robomotionNode, around *agent) *agent {
	a := &agent{at: n.v.at(), name: n.name(), was: n.name(), typ: n.kind}
	n.v.of(a)
	a.came("name", n.named())
	if slices.Contains(r.open, n) {
		r.fail(n.v.at(), a.was, "sub-agents", "the agent %q is connected to itself", a.was)
		return nil
	}
	if r.tooMany(n.v.at()) {
		return nil
	}
	r.open = append(r.open, n)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	if p, ok := n.get("description"); ok && !p.fixed() {
		r.dropped(p.at, a.was, "Description", "write it in the node", "it comes with the flow's message, in %s",
			p.value.what())
	} else if ok {
		r.carryDescription(a, p.as("Description"))
	}
	r.connected(a, n)
	r.known(a, n)
	r.session(a, n, around)
	switch n.kind {
	case definition.TypeLLM:
		r.llm(a, n)
		r.asTools(a, n.v.at(), "sub-agents", "Robomotion")
	default:
		if len(a.subs) == 0 {
			r.fail(n.v.at(), a.was, "sub-agents", "nothing is connected to the sub-agents port")
			return a
		}
		if n.kind == definition.TypeLoop {
			r.loop(a, n)
		}
		if n.kind != definition.TypeParallel {
			r.order(a, n)
		}
	}
	r.step(a, n, around)
	return a
}

// connected reads the nodes on the ports.
func (r *robomotionReader) connected(a *agent, n *robomotionNode) {
	for _, to := range n.ports["sub-agents"] {
		if to.kind == "" {
			to.v.all()
			r.dropped(to.v.at(), a.was, "sub-agents", "", "%s is no agent", cmp.Or(nodeType(to.v), to.name()))
			continue
		}
		if sub := r.agent(to, a); sub != nil {
			a.subs = append(a.subs, sub)
		}
	}
	if len(a.subs) > 0 {
		r.mapped(n.v.at(), a.was, "port sub-agents", "sub_agents")
	}
	for _, to := range n.ports["callbacks"] {
		to.v.all()
		r.dropped(to.v.at(), a.was, "port callbacks", "write callbacks: {before_agent: [{webhook: https://…}]}, or "+
			"{command: […]}, in the definition; before_iteration and after_iteration are called for each iteration",
			"%s is a node that the flow goes on from", cmp.Or(to.name(), "a callback"))
	}
	for _, to := range n.ports["tools"] {
		to.v.all()
		r.dropped(to.v.at(), a.was, "port tools", "give an MCP server or a command in tools",
			"%s is a node of Robomotion", cmp.Or(nodeType(to.v), to.name()))
	}
}

// known reads every property. A mistyped property is an error.
func (r *robomotionReader) known(a *agent, n *robomotionNode) {
	names := slices.Concat(labels[""], labels[n.kind])
	for _, p := range n.props {
		switch {
		case p.value.empty() || slices.Contains(names, p.label):
		case suggest.Nearest(p.label, names) != "":
			r.fail(p.at, a.was, p.key, "unknown property %q", p.key).Advice = meant(p.label, names)
		default:
			p.value.all()
			r.dropped(p.at, a.was, p.key, "", "a definition has no such field")
		}
	}
	if p, ok := n.get("agent name"); ok && p.fixed() {
		for _, p := range n.props {
			if p.label == "name" && !p.value.empty() {
				p.in.ask(p.key)
				r.dropped(p.value.at(), a.was, p.key, "", "it is the caption of the node, and the agent has a name "+
					"of its own")
			}
		}
	}
	if p, ok := n.get("color"); ok {
		r.color(a, p)
	}
}

// session reads which conversation a node uses.
func (r *robomotionReader) session(a *agent, n *robomotionNode, around *agent) {
	p, ok := n.get("session id")
	switch {
	case !ok:
	case around != nil:
		r.dropped(p.at, a.was, "Session ID", "", "all agents of a run are in one session")
	case !p.fixed():
		r.dropped(p.at, a.was, "Session ID", "refrain run FILE --session ID", "it comes with the flow's message, in %s",
			p.value.what())
	case strings.Contains(p.value.text(), "{{"):
		r.dropped(p.at, a.was, "Session ID", "refrain run FILE --session ID", "it belongs to a run, and is %s here",
			p.value.what())
	default:
		r.carry(a, p.as("Session ID"), "session", p.value.text())
	}
}

// loop reads the properties that only a Loop Agent has.
func (r *robomotionReader) loop(a *agent, n *robomotionNode) {
	a.set("timeouts", "none") // an iteration has no time limit in the product
	if p, ok := n.get("max iterations"); ok && r.given(a, p, "Max Iterations") {
		r.carryWhole(a, p.as("Max Iterations"), "max_iterations")
	} else {
		a.set("max_iterations", robomotionIterations)
		r.add(Mapped, a.at, a.was, "Max Iterations", "max_iterations", "5, the node's default")
	}
	if p, ok := n.get("timeout"); ok && r.given(a, p, "Timeout") {
		r.carryTime(a, p.as("Timeout"), "timeout")
	} else {
		a.set("timeout", robomotionTimeout)
		r.add(Mapped, a.at, a.was, "Timeout", "timeout", "300 s, the node's default")
	}
	if on, p := r.continues(a, n); on {
		a.set("continue_on_error", true, p.value)
		r.add(Mapped, p.at, a.was, "Continue On Error", "continue_on_error",
			"the loop goes on after an error; if no iteration succeeds, the run says so and fails")
	}
	if !slices.ContainsFunc(a.subs, func(s *agent) bool { return s.exit != nil }) && slices.ContainsFunc(a.subs, asks) {
		r.changed(a.at, a.was, "early end", "", "Robomotion does not document which values in the state end a loop; "+
			"here every agent that asks a model may end it, by exit_loop").Advice =
			"write stop_when, or give can_exit_loop: true to the one that decides"
	}
}

// order reads Custom Sub-Agents Order, which names every sub-agent once.
func (r *robomotionReader) order(a *agent, n *robomotionNode) {
	p, ok := n.get("order")
	switch {
	case !ok && len(a.subs) > 1:
		r.changed(a.at, a.was, "Custom Sub-Agents Order", "", "it is not given, and the node needs it; they run in "+
			"the order in which they are connected").Advice = "order: [" + strings.Join(was(a.subs), ", ") + "]"
		return
	case !ok:
		return
	case !r.given(a, p, "Custom Sub-Agents Order"):
		return
	}
	names := p.value.texts()
	if !p.value.isList() && json.Unmarshal([]byte(p.value.text()), &names) != nil {
		r.fail(p.at, a.was, "order", "Custom Sub-Agents Order must be an array of names, got %s", p.value.what())
		return
	}
	var order []*agent
	for _, name := range names {
		sub := find(a.subs, name)
		switch {
		case sub == nil:
			msg := "Order name not found in agent names: " + name
			if near := suggest.Nearest(name, was(a.subs)); near != "" {
				msg += " (did you mean " + near + "?)"
			}
			r.fail(p.at, a.was, "order", "%s", msg)
			return
		case slices.Contains(order, sub):
			r.fail(p.at, a.was, "order", "Custom Sub-Agents Order names %q twice", name)
			return
		}
		order = append(order, sub)
	}
	for _, sub := range a.subs {
		if !slices.Contains(order, sub) {
			r.fail(p.at, a.was, "order", "Custom Sub-Agents Order leaves out %q", sub.was).Advice = "every connected sub-agent has to be in it"
		}
	}
	r.mapped(p.at, a.was, "Custom Sub-Agents Order", "order")
	if a.typ == definition.TypeLoop {
		a.order = order
		a.came("order", p.value)
	} else {
		a.subs = order
	}
}

func was(subs []*agent) []string {
	var names []string
	for _, s := range subs {
		names = append(names, s.was)
	}
	return names
}

// query reads how the loop gets its request.
func (r *robomotionReader) query(a *agent, n *robomotionNode) {
	p, ok := n.get("query")
	if ok && a.typ != definition.TypeLLM && p.fixed() && !strings.Contains(p.value.text(), "{{") {
		r.carry(a, p.as("Query"), "query", p.value.text())
	} else {
		r.add(Mapped, a.at, a.was, "Query", "", "it is the INPUT of refrain run, and {{user_input}}")
	}
	r.add(Mapped, a.at, a.was, "Response", "", "it is what refrain run writes to standard output")
	r.add(Mapped, a.at, a.was, "initialization", "init_timeout", "30 s, as there, with the same error")
}

var fileRef = lazyregexp.New(`\{\{\s*file:([^{}\s]+)\s*\}\}`)

// llm reads an LLM Agent.
func (r *robomotionReader) llm(a *agent, n *robomotionNode) {
	a.set("context", "full")
	if p, ok := n.get("instructions"); ok && !p.fixed() {
		key := strings.ReplaceAll(cleanName(strings.ReplaceAll(p.value.text(), ".", "_")), "-", "_")
		a.tell("{{"+key+"}}", p.value, false)
		r.changed(p.at, a.was, "Instructions", "instructions",
			"they come with the flow's message, in %s; here a run is given them", p.value.what())
	} else if ok {
		r.carryText(a, p.as("Instructions"))
		if fileRef().MatchString(a.instructions) {
			a.instructions = fileRef().ReplaceAllString(a.instructions, "{{artifact.$1}}")
			r.changed(p.at, a.was, "{{file:…}}", "{{artifact.…}}", "files are artifacts of the session")
		}
	}
	if p, ok := n.get("query"); ok && p.scope != "Message" && !strings.Contains(p.value.text(), "user_input") {
		a.tell(p.value.text(), p.value, false)
		r.changed(p.at, a.was, "Query", "instructions", "what it is asked follows its instructions")
	}
	r.asksUser(a, "Instructions")
	if p, ok := n.get("output key"); ok && r.given(a, p, "Output Key") {
		r.carryKey(a, p.as("Output Key"))
	}
	p, ok := n.get("custom model")
	if !ok {
		p, ok = n.get("model name", "model")
	}
	if ok {
		r.useModel(a, p.as("Model Name"), robomotionModel(p.value.text()))
	}
	for _, l := range []string{"temperature", "max tokens"} {
		if p, ok := n.get(l); ok {
			r.carry(a, p.pair, strings.ReplaceAll(l, " ", "_"), copyOf(p.value))
		}
	}
	for _, gone := range []struct{ label, advice, why string }{
		{"files", "name the file in the instructions: {{artifact.NAME}}", "files come from the session"},
		{"credits", "set the provider's variable in the environment: doc/models.md", "keys and credits are Robomotion's"},
		{"skills", "write them in the instructions, or give tools", "they are Robomotion's"},
		{"output schema", "write it as JSON Schema in output_schema", "it is not read"},
	} {
		if p, ok := n.get(gone.label); ok && p.value.text() != "[]" {
			r.dropped(p.at, a.was, p.key, gone.advice, "%s", gone.why)
		}
	}
}

// robomotionModel returns the name of a model from its title in a list, such as "Gemini 2.5 Flash" or "Claude Sonnet 4.5".
func robomotionModel(name string) string {
	s := strings.ToLower(strings.TrimSpace(name))
	if strings.Contains(s, "/") || !strings.Contains(s, " ") && !strings.HasPrefix(s, "gpt-") && s != name {
		return name
	}
	s = strings.Join(strings.Fields(s), "-")
	if strings.HasPrefix(s, "claude-") {
		s = strings.ReplaceAll(s, ".", "-")
	}
	return s
}

// given reports whether a property has its value in the flow. A value that comes with a message is unknown.
func (r *robomotionReader) given(a *agent, p prop, name string) bool {
	if !p.fixed() {
		r.fail(p.at, a.was, name, "%s comes with the flow's message, in %s: a definition needs the value", name, p.value.what()).Advice = "write it in the node"
	}
	return p.fixed()
}

// color reads the color of the agent.
func (r *robomotionReader) color(a *agent, p prop) {
	text := strings.ToLower(strings.TrimSpace(p.value.text()))
	if short := []rune(text); len(short) == 4 && short[0] == '#' {
		text = "#" + strings.Repeat(string(short[1]), 2) + strings.Repeat(string(short[2]),
			2) + strings.Repeat(string(short[3]), 2)
	}
	if text == "grey" {
		text = "gray"
	}
	if !hexColor().MatchString(text) && !slices.Contains(definition.Colors(), text) {
		r.dropped(p.at, a.was, "Color", "colors here are "+strings.Join(definition.Colors(), ", ")+` and "#rrggbb"`,
			"there is no color %s", p.value.what())
		return
	}
	r.carry(a, p.as("Color"), "color", text)
}

var hexColor = lazyregexp.New(`^#[0-9a-f]{6}$`)

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

// step reads the properties of the node as a step of a loop.
func (r *robomotionReader) step(a *agent, n *robomotionNode, around *agent) {
	isStep, isPart := around != nil && around.typ == definition.TypeLoop, around != nil && around.typ.Workflow()
	for _, d := range []struct{ label, name, field string }{{"delay before", "Delay Before", "delay_before"}, {"delay after", "Delay After", "delay_after"}} {
		p, ok := n.get(d.label)
		if f, isNumber := p.value.number(); !ok || isNumber && f == 0 || !r.given(a, p, d.name) {
			continue
		}
		text, isTime := seconds(p.value)
		switch {
		case !isTime:
			r.fail(p.at, a.was, d.name, "%s must be a number of seconds, got %s", d.name, p.value.what())
		case isPart, around == nil && a.typ == definition.TypeLoop:
			r.carry(a, p.as(d.name), d.field, text)
		default:
			r.dropped(p.at, a.was, d.name, "give it to the loop at the root, or to a step of another agent",
				"only the loop at the root and the steps of other agents wait here")
		}
	}
	if a.typ == definition.TypeLoop {
		return
	}
	if on, p := r.continues(a, n); on && isPart {
		a.set("on_error", "skip_step", p.value)
		r.mapped(p.at, a.was, "Continue On Error", "on_error: skip_step")
	} else if on {
		r.dropped(p.at, a.was, "Continue On Error", "give it to a step, or to a loop",
			"it works on loops, and on the steps of other agents")
	}
	r.stepTimeout(a, n, isStep)
}

// stepTimeout reads the time limit of a node that is not a loop. The default for a sequence and a parallel agent is 300 seconds.
func (r *robomotionReader) stepTimeout(a *agent, n *robomotionNode, isStep bool) {
	p, ok := n.get("timeout")
	_, isTime := seconds(p.value)
	switch {
	case !ok && a.typ == definition.TypeLLM:
	case !ok && isStep:
		a.set("timeout", robomotionTimeout)
		r.add(Mapped, a.at, a.was, "Timeout", "timeout", "300 s, the node's default")
	case !ok:
		r.dropped(a.at, a.was, "Timeout", "give the loop around it a timeout",
			"it is 300 s by default, and only loops and their steps have one here")
	case !r.given(a, p, "Timeout"):
	case !isTime, isStep:
		r.carryTime(a, p.as("Timeout"), "timeout")
	default:
		r.dropped(p.at, a.was, "Timeout", "give the loop around it a timeout", "only loops and their steps have one")
	}
}
