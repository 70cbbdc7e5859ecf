// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// role is what a scalar of a definition is, as far as names go.
type role uint8

const (
	roleNone      role = iota
	roleKey            // a key of the state
	roleText           // a text with {{key}} and {key}
	roleMustache       // a text with {{key}}
	roleTask           // an expression of a task
	roleCondition      // an expression of a loop
	roleAgent          // the name of an agent that is described here
	roleNamed          // the name of an agent elsewhere
	roleFile           // a file that another agent is in
)

// roles has the roles of the scalars in a field of an agent, or in a part of a field.
var roles = map[string]role{
	"name": roleAgent, "ref": roleFile, "order": roleNamed,
	"output_key": roleKey, "result_key": roleKey, "keys": roleKey, "no_progress.keys": roleKey,
	"set": roleTask, "value": roleTask, "exit_when": roleTask,
	"exit_reason": roleText, "question": roleText, "text": roleText, "instructions": roleText,
	"command": roleMustache, "env": roleMustache, "stdin": roleMustache, "dir": roleMustache, "cache.key": roleMustache,
	"url": roleMustache, "headers": roleMustache, "body": roleMustache, "endpoint": roleMustache, "payload": roleMustache,
	"stop_when": roleCondition, "stop_when.of": roleNamed,
	"score": roleKey, "score.key": roleKey, "score.holdout": roleKey, "score.expr": roleCondition,
	"score.judge": roleNamed, "score.judge.step": roleNamed,
}

// keyed lists the fields whose value is a map by keys of the state.
var keyed = []string{"inputs", "state", "shapes", "set", "default"}

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

// resolve follows an alias.
func resolve(n naming) naming {
	if n.node.Anchor != "" || n.node.Kind == yaml.AliasNode {
		if n.shared == nil {
			n.shared = n.node
		}
		n.node = source.Deref(n.node)
	}
	return n
}

// fields lists the fields of a map.
func (n naming) fields() (all []namingField) {
	n = resolve(n)
	for _, p := range source.Pairs(n.node) {
		shared := n.shared
		if p.Merged != nil {
			shared = p.Merged
		}
		all = append(all, namingField{naming{node: p.Value, shared: shared,
			path: n.path + hop{key: p.Key.Value, keyed: true}.in(n.path)}, p.Key.Value, p.Key})
	}
	return all
}

// items lists the values in a list.
func (n naming) items() (all []naming) {
	n = resolve(n)
	if n.node.Kind != yaml.SequenceNode {
		return nil
	}
	for i, c := range n.node.Content {
		all = append(all, naming{node: c, shared: n.shared, path: n.path + hop{at: i}.in(n.path)})
	}
	return all
}

// note adds a scalar.
func (w *namings) note(n naming, r role) {
	if n = resolve(n); r != roleNone && n.node.Kind == yaml.ScalarNode && !source.IsNull(n.node) {
		n.role = r
		w.all = append(w.all, n)
	}
}

// agent adds those of an agent and of those in it.
func (w *namings) agent(n naming, root bool) {
	fields := n.fields()
	for i := 0; i < len(fields); i++ {
		if fields[i].key == "config" {
			fields = append(fields, fields[i].fields()...)
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
		switch {
		case f.key == "sub_agents":
			for _, item := range f.items() {
				w.agent(item, false)
			}
		case f.key == "tools":
			w.tools(f.naming)
		case f.key == "ref" && root, f.key == "instructions" && typ != definition.TypeLLM,
			f.key == "default" && (typ != definition.TypeHuman || value["ask"] != "edit"):
		default:
			w.field(f.naming, f.key, roleNone)
		}
	}
}

// field adds the uses in a field, or in a part of one. A part has the role of its field, except in a score or a condition.
func (w *namings) field(n naming, path string, r role) {
	own, known := roles[path]
	if known || strings.HasPrefix(path, "score.") || strings.HasPrefix(path, "stop_when.") {
		r = own
	}
	w.note(n, r)
	for _, f := range n.fields() {
		if slices.Contains(keyed, path) {
			w.note(naming{node: f.at, shared: f.shared, path: f.path}, roleKey)
		}
		part := path + "." + f.key
		switch {
		case path == "stop_when" && slices.Contains([]string{"when", "not", "any", "all"}, f.key):
			part = path // a condition in a condition
		case path == "effect.reconcile":
			part = f.key // a task in a task
		}
		w.field(f.naming, part, r)
	}
	for _, item := range n.items() {
		w.field(item, path, r)
	}
}

// tools adds those of agents and commands that are tools.
func (w *namings) tools(list naming) {
	for _, item := range list.items() {
		fields := item.fields()
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
