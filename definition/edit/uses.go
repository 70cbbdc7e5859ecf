// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/source"
)

// role is what a scalar of a definition is, as far as names go.
type role uint8

const (
	roleKey       role = iota // a key of the state
	roleText                  // a text with {{key}} and {key}
	roleMustache              // a text with {{key}}
	roleTask                  // an expression of a task
	roleCondition             // an expression of a loop
	roleAgent                 // the name of an agent that is described here
	roleNamed                 // the name of an agent elsewhere
	roleFile                  // a file that another agent is in
)

// naming is a scalar that has names in it, or may have.
type naming struct {
	role   role
	node   *yaml.Node
	path   string
	shared *yaml.Node // the anchor, alias or merge that it is in; nil if it is in none
}

// namings collects the scalars that have names in them, in the order of the file.
type namings struct{ all []naming }

// namingField is one field of a map.
type namingField struct {
	naming
	key string
	at  *yaml.Node
}

// namings are the scalars with names of a text; one that is no definition has few.
func (s *sheet) namings() []naming {
	var w namings
	w.agent(naming{node: s.root}, true)
	return w.all
}

// resolved follows an alias.
func resolved(n naming) naming {
	if n.node.Anchor != "" || n.node.Kind == yaml.AliasNode {
		if n.shared == nil {
			n.shared = n.node
		}
		n.node = source.Deref(n.node)
	}
	return n
}

// fields lists the fields of a map.
func (w *namings) fields(m naming) (all []namingField) {
	m = resolved(m)
	for _, p := range source.Pairs(m.node) {
		shared := m.shared
		if p.Merged != nil {
			shared = p.Merged
		}
		all = append(all, namingField{naming{node: p.Value, shared: shared,
			path: m.path + hop{key: p.Key.Value, keyed: true}.in(m.path)}, p.Key.Value, p.Key})
	}
	return all
}

// items lists the values in a list.
func (w *namings) items(l naming) []naming {
	l = resolved(l)
	if l.node.Kind != yaml.SequenceNode {
		return nil
	}
	var all []naming
	for i, c := range l.node.Content {
		all = append(all, naming{node: c, shared: l.shared, path: l.path + hop{at: i}.in(l.path)})
	}
	return all
}

// note adds a scalar.
func (w *namings) note(n naming, r role) {
	if n = resolved(n); n.node.Kind == yaml.ScalarNode && !source.IsNull(n.node) {
		n.role = r
		w.all = append(w.all, n)
	}
}

// deep adds all scalars in a value.
func (w *namings) deep(n naming, r role) {
	w.note(n, r)
	for _, f := range w.fields(n) {
		w.deep(f.naming, r)
	}
	for _, item := range w.items(n) {
		w.deep(item, r)
	}
}

// keysOf adds the keys of a map.
func (w *namings) keysOf(m naming) {
	for _, f := range w.fields(m) {
		w.note(naming{node: f.at, shared: f.shared, path: f.path}, roleKey)
	}
}

// agent adds those of an agent and of those in it.
func (w *namings) agent(n naming, root bool) {
	fields := w.fields(n)
	for i := 0; i < len(fields); i++ {
		if fields[i].key == "config" {
			fields = append(fields, w.fields(fields[i].naming)...)
		}
	}
	var names []string
	value := make(map[string]string)
	for _, f := range fields {
		names = append(names, f.key)
		value[f.key] = source.Deref(f.node).Value
	}
	typ := definition.TypeOf(value["type"], names...)
	for _, f := range fields {
		switch f.key {
		case "name":
			w.note(f.naming, roleAgent)
		case "ref":
			if !root {
				w.note(f.naming, roleFile)
			}
		case "inputs", "state", "shapes":
			w.keysOf(f.naming)
		case "default":
			if typ == definition.TypeHuman && value["ask"] == "edit" {
				w.keysOf(f.naming)
			}
		case "sub_agents":
			for _, item := range w.items(f.naming) {
				w.agent(item, false)
			}
		case "tools":
			w.tools(f.naming)
		case "stop_when":
			w.condition(f.naming)
		case "score":
			w.score(f.naming)
		case "order":
			w.deep(f.naming, roleNamed)
		default:
			w.task(f, typ)
		}
	}
}

// task adds those of the fields of other agents than loops.
func (w *namings) task(f namingField, typ definition.Type) {
	switch f.key {
	case "output_key", "result_key":
		w.note(f.naming, roleKey)
	case "keys":
		w.deep(f.naming, roleKey)
	case "no_progress":
		for _, in := range w.fields(f.naming) {
			if in.key == "keys" {
				w.deep(in.naming, roleKey)
			}
		}
	case "set":
		w.keysOf(f.naming)
		w.deep(f.naming, roleTask)
	case "value", "exit_when":
		w.note(f.naming, roleTask)
	case "exit_reason", "question":
		w.note(f.naming, roleText)
	case "text":
		w.note(f.naming, roleText)
	case "instructions":
		if typ == definition.TypeLLM {
			w.note(f.naming, roleText)
		}
	case "command", "env", "stdin", "dir", "url", "headers", "body", "endpoint", "payload":
		w.deep(f.naming, roleMustache)
	case "effect":
		for _, in := range w.fields(f.naming) {
			if in.key != "reconcile" {
				continue
			}
			for _, task := range w.fields(in.naming) {
				w.task(task, typ)
			}
		}
	case "cache":
		for _, in := range w.fields(f.naming) {
			if in.key == "key" {
				w.note(in.naming, roleMustache)
			}
		}
	}
}

// tools adds those of agents and commands that are tools.
func (w *namings) tools(list naming) {
	for _, item := range w.items(list) {
		fields := w.fields(item)
		if slices.ContainsFunc(fields, func(f namingField) bool { return f.key == "command" }) {
			w.agent(item, false)
			continue
		}
		for _, f := range fields {
			if f.key == "agent" {
				w.agent(f.naming, false)
			}
		}
	}
}

// condition adds those of an expression that ends a loop.
func (w *namings) condition(n naming) {
	w.note(n, roleCondition)
	for _, f := range w.fields(n) {
		switch f.key {
		case "of":
			w.note(f.naming, roleNamed)
		case "when", "not":
			w.condition(f.naming)
		case "any", "all":
			for _, item := range w.items(f.naming) {
				w.condition(item)
			}
		}
	}
}

// score adds those of a score.
func (w *namings) score(n naming) {
	w.note(n, roleKey)
	for _, f := range w.fields(n) {
		switch f.key {
		case "key", "holdout":
			w.note(f.naming, roleKey)
		case "expr":
			w.note(f.naming, roleCondition)
		case "judge":
			w.note(f.naming, roleNamed)
			for _, in := range w.fields(f.naming) {
				if in.key == "step" {
					w.note(in.naming, roleNamed)
				}
			}
		}
	}
}
