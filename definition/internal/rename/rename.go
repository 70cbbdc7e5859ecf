// SPDX-License-Identifier: Apache-2.0

// Package rename gives the fields of an agent other names of state keys and of agents, for agents that run several
// times side by side.
//
//	names := rename.Names{Reads: map[string]string{"draft": "draft_1"}, Writes: map[string]string{"draft": "draft_1"}}
//	value = names.Field("instructions", value) // "Improve {{draft}}." becomes "Improve {{draft_1}}."
package rename

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/vocabulary"
)

// Names maps old names to new ones; others stay.
type Names struct {
	// Reads are the keys that texts, expressions and rules read, and Writes those that agents write.
	Reads, Writes map[string]string
	Agents        map[string]string
	// Earlier says that the names of an earlier iteration, such as best.draft, change too.
	Earlier bool
}

// role says which names a value has.
type role uint8

const (
	text      role = iota // {{key}} and {key}
	mustache              // {{key}}
	code                  // an expression
	readKey               // a key that is read
	writeKey              // a key that is written
	agentName             // the name of an agent
	nothing
)

// roles has the roles of values that are not of the role mustache, by the path of their field.
var roles = map[string]role{
	"name": agentName, "order": agentName, "on_plateau.steps": agentName,
	"stop_when.of": agentName, "score.judge": agentName, "score.judge.step": agentName,
	"output_key": writeKey, "result_key": writeKey, "keys": writeKey,
	"result": readKey, "no_progress.keys": readKey, "score": readKey, "score.key": readKey, "score.holdout": readKey, "keep_best": readKey,
	"set": code, "value": code, "exit_when": code, "stop_when": code, "score.expr": code,
	"on_plateau.instructions": text, "on_plateau.model": nothing, "on_plateau.thinking": nothing,
	"instructions": text, "text": text, "question": text, "exit_reason": text,
	"type": nothing, "model": nothing, "sub_agents": nothing, "stop_when.text": nothing, "score.label": nothing, "score.field": nothing,
}

// keyed has the roles of the keys of maps.
var keyed = map[string]role{"set": writeKey, "default": writeKey, "keep_best": agentName}

// Field returns the value of a field of an agent with the new names. It does not change v, and leaves out agents inside.
func (n Names) Field(field string, v *source.Node) *source.Node { return n.value(field, v) }

func (n Names) value(path string, v *source.Node) *source.Node {
	v = source.Deref(v)
	role, known := roles[path]
	switch {
	case !known:
		role = mustache
	case role == nothing:
		return v
	}
	if v.Kind == source.Scalar {
		if to := n.scalar(role, v.Value); to != v.Value {
			own := *v
			own.Value = to
			return &own
		}
		return v
	}
	own := *v
	own.Content = slices.Clone(v.Content)
	for i, c := range own.Content {
		key := ""
		switch {
		case v.Kind == source.List:
			own.Content[i] = n.value(path, c)
			continue
		case i%2 == 1:
			key = source.Deref(own.Content[i-1]).Value
		case keyed[path] != text:
			k := *source.Deref(c)
			k.Value = n.scalar(keyed[path], k.Value)
			own.Content[i] = &k
			continue
		default:
			continue
		}
		part := path + "." + key
		if _, known := roles[part]; !known && !strings.HasPrefix(part, "score.") {
			part = path
		}
		own.Content[i] = n.value(part, c)
	}
	return &own
}

func (n Names) scalar(r role, s string) string {
	names := n.Reads
	switch r {
	case writeKey:
		names = n.Writes
	case agentName:
		names = n.Agents
	case code:
		found, _ := vocabulary.CelKeys(s)
		return n.mentions(s, found)
	case text, mustache:
		d := template.Mustache
		if r == text {
			d = template.Canonical
		}
		found, err := vocabulary.TextKeys(s, d)
		if err != nil {
			return s
		}
		return n.mentions(s, found)
	}
	if to, ok := names[s]; ok {
		return to
	}
	return s
}

// mentions replaces the keys that a text or an expression names.
func (n Names) mentions(s string, found []vocabulary.Mention) string {
	var b strings.Builder
	at := 0
	for _, m := range found {
		to, ok := n.Reads[m.Name]
		if !ok || m.Earlier && !n.Earlier {
			continue
		}
		b.WriteString(s[at:m.From])
		if m.Dot && !vocabulary.CelName(to) { // state.key is state["key"]
			before := strings.TrimRight(b.String(), "?")
			optional := len(before) < b.Len()
			b.Reset()
			b.WriteString(strings.TrimSuffix(before, "."))
			to = map[bool]string{true: `[?`, false: `[`}[optional] + strconv.Quote(to) + "]"
		}
		b.WriteString(to)
		at = m.To
	}
	return b.String() + s[at:]
}
