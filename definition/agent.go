// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// agent reads an agent, or follows a ref to one; nil if it is neither.
func (r *reader) agent(n *yaml.Node, parent *Agent) *Agent {
	what := "an agent"
	if parent == nil {
		what = "a definition"
	}
	ps, ok := r.pairs(n, what)
	if !ok {
		return nil
	}
	if i := slices.IndexFunc(ps, func(p pair) bool { return p.key == "ref" }); i >= 0 && parent != nil {
		for _, p := range ps {
			if p.key != "ref" {
				r.report(r.src.Of(p.at), CodeConflict, "%q cannot stand beside ref", p.key).Hint = "say it in the file that ref names"
			}
		}
		return r.ref(parent, ps[i].value)
	}
	ps = r.configured(ps)
	a := &Agent{parent: parent, src: r.src, node: source.Deref(n), nodes: make(map[string]*yaml.Node)}
	a.Type = r.typeOf(a, ps)
	begin(a)
	known := a.Type != ""
	for _, p := range ps {
		a.nodes[p.key], a.nodes["key of "+p.key] = p.value, p.at
		switch f := fieldNamed(p.key); {
		case f.Name == "":
			r.unknown(a, p)
		case f.Root && (parent != nil || len(r.reading) > 1):
			r.report(r.src.Of(p.at), CodeField, "%q belongs to the root of the definition", p.key)
		case known && !f.has(a.Type):
			r.misplaced(a, p, f)
		case source.IsNull(p.value):
			problem := r.report(r.src.Of(p.value), CodeValue, "%s has no value", p.key)
			if problem.Hint = "leave the field out, or give it one"; p.key == "color" {
				problem.Hint = `a color that begins with # needs quotes, as "#3366cc"`
			}
		default:
			before := len(r.problems)
			r.field(a, p)
			a.broken = a.broken || p.key != "sub_agents" && len(r.problems) > before
		}
	}
	r.defaults(a)
	return a
}

// typeOf says what type of agent the fields describe; empty if they do not.
func (r *reader) typeOf(a *Agent, ps []pair) Type {
	var given *yaml.Node
	names := make([]string, len(ps))
	for i, p := range ps {
		if names[i] = p.key; p.key == "type" {
			given = p.value
		}
	}
	word := ""
	if given != nil {
		t, ok := r.text(given, "type")
		if word = t; ok && !slices.Contains(types, t) {
			r.report(r.src.Of(given), CodeValue, "there is no type %q of agent", t).
				Hint = typeHint(t)
		}
	}
	is := TypeOf(word, names...)
	if is == "" && given == nil && !r.meant(a, ps) {
		r.report(r.src.Of(a.node), CodeMissing, "nothing says what type of agent this is").
			Hint = "give type, or one of sub_agents, instructions, command, url, set, value, text, endpoint, question and func"
	}
	return is
}

// meant reports whether a mistyped field would tell the type; it is reported as
// an unknown field, and one problem is enough.
func (r *reader) meant(a *Agent, ps []pair) bool {
	for _, p := range ps {
		if f := fieldNamed(p.key); f.Name == "" && fieldNamed(expr.Nearest(p.key, r.names(a))).Types != nil {
			return true
		}
	}
	return false
}

func (r *reader) continueOnError(a *Agent, n *yaml.Node) {
	on, ok := r.boolean(n, "continue_on_error")
	if _, both := a.nodes["on_error"]; both || a.OnError != "" {
		r.report(r.src.Of(a.nodes["key of continue_on_error"]), CodeConflict, "continue_on_error and on_error say the same; give one of them")
		return
	}
	if ok && on {
		a.OnError = loop.NextIteration
	}
}

func (r *reader) subAgents(a *Agent, n *yaml.Node) {
	items, _ := r.items(n, "sub_agents")
	for i, item := range items {
		if r.full() {
			return
		}
		a.nodes[fmt.Sprintf("sub_agents[%d]", i)] = item
		if item.Kind == yaml.ScalarNode {
			r.wrong(item, "a sub-agent", "a map with a name, or with a ref")
			if source.PlainText(item) && vocabulary.AgentName(item.Value) == "" {
				r.hint("describe the agent here, or write {ref: " + item.Value + ".yaml}")
			}
			continue
		}
		if sub := r.agent(item, a); sub != nil {
			if written := source.Deref(n).Content[i]; written.Kind == yaml.AliasNode {
				sub.alias = written
			}
			a.SubAgents = append(a.SubAgents, sub)
		}
	}
}

// defaults sets what the file leaves out.
func (r *reader) defaults(a *Agent) {
	switch a.Type {
	case TypeLoop:
		a.preset()
	case TypeLLM:
		if l := llmOf(a); l.Context.Policy == "" {
			l.Context.Policy = llmagent.ContextIteration
		}
	}
	if _, given := a.nodes["can_exit_loop"]; !given {
		a.CanExitLoop = a.ExitWhen != "" || a.exitTool() != nil
	}
}
