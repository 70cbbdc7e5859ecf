// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

// goodValues are values that a field takes, as YAML. A field that is not listed gets
// probes alone.
var goodValues = map[string][]string{
	"name": {"a", "größe"}, "type": {"loop", "sequential", "parallel", "llm", "command", "expression", "http", "template", "a2a", "human", "func"},
	"description": {"d"}, "display_name": {"Shown"}, "color": {"red", `"#12aB9f"`},
	"inputs": {"{a: {type: int, default: 3, description: d}, b: x}", "{p: {type: path}, l: [1], m: {type: map, default: {k: 1}}}"},
	"state":  {"{k: 1, l: [1, {a: b}], m: null}", "{start: 2026-01-02}"}, "query": {"go"}, "session": {"one"},
	"prices": {"{openai/gpt-5-mini: {input: 1, output: 2.5, cached_input: 0}}"}, "max_model_calls": {"3", "none", "0"}, "init_timeout": {"5s"},
	"in": {"clean"}, "overlay": {"hidden"}, "changes": {"required"},
	"workspace": {"{from: ., base: head, copy: [.env], setup: [ls, 1], protect: ['**/*_test.go'], on_protected: fail}",
		"{limits: {files: 4, lines: 5, file_size: 5MB, store: 2GB}, result: {branch: 'refrain/{{run}}'}}", "{result: {patch: p}}", "{}"},
	"goal": {"g"}, "instructions": {"i {k}", `"{{k}}"`}, "max_iterations": {"3", "0", "2.0"}, "order": {"[s]", "[s, a]", "[a, s, b]"},
	"stop_when":  {"iteration > 2", "{any: [state.k == 1, {not: score > 2}]}", "{when: score > 1, for: 2}", "{text: DONE, of: s}", "{all: [{text: DONE, of: s, for: 2}, 'true']}"},
	"stop_check": {"iteration", "step"},
	"score": {"k", "{key: k, label: Score, target: 8, min_delta: 0.1, min_delta_percent: 1, patience: 2, lower_is_better: true}",
		"{key: k, field: f, dimensions: [a, b], dimension_target: 2}", "{expr: 'state.k * 2.0', target: 1}", "{key: k, judge: s}", "{key: k, judge: {step: s, samples: 3}}"},
	"quality_gate": {"7", "0.5"}, "result": {"k", "best"}, "on_regression": {"keep_best", "rollback"},
	"no_progress": {"true", "false", "{repeats: 2, swings: 3, keys: [k]}"}, "not_worth": {"{gain: 1}", "{gain: 0.5, per: ktokens}"},
	"timeouts": {"fast", "standard", "long", "none"}, "timeout": {"5m", "90", "1h30m"}, "iteration_timeout": {"10s"}, "iteration_delay": {"0s", "1s"},
	"budget": {"{calls: 3, tokens: 1000, cost: 2.5}", "{tokens: 3}"}, "finalizer": {"after", "each_iteration"}, "finalizer_reserve": {"10%", "0.2"},
	"state_limit": {"10MB", "none", "0", "0.0"}, "max_consecutive_failures": {"2"}, "max_concurrency": {"2"}, "keep_best": {"{s: k}", "{}", "x"}, "on_error": {"stop", "skip_step", "next_iteration"},
	"retry": {"3", "{attempts: 3, backoff: 1s, max_backoff: 2s}"}, "circuit": {"{failures: 2, cooldown: 1m, endpoint: e}"},
	"adaptive_timeout": {"{min: 1s, max: 10s, factor: 2, after: 4}"}, "delay_before": {"1s", "0"}, "delay_after": {"500ms"},
	"cache": {"true", "false", "10m", "{ttl: 1m, key: '{{k}}'}"}, "continue_on_error": {"true", "false"},
	"sub_agents": {"[{name: s, text: s, output_key: k}, {name: b, set: {k: '1'}}]", "[{name: s, instructions: i, output_key: k}]"},
	"model":      {"openai/gpt-5-mini"}, "context": {"full", "none", "{last: 2}", "{last: 2, digest: true, best_chars: 10}"},
	"tools": {"[exit_loop, {func: f}, {agent: {name: t, text: t}}]", "[{command: [ls], name: c, parameters: {type: object, properties: {p: {type: string}}}}]",
		"[{mcp: {command: [ls, 1], env: {A: b}, only: [x], prefix: p, confirm: true, effect: pure}}, {mcp: {url: 'http://localhost/', headers: {A: '{{k}}'}, confirm: [x]}}]"},
	"output_schema": {"{type: object, properties: {a: {type: [string, 'null'], minLength: 1}}, required: [a]}"}, "temperature": {"0.5"}, "max_tokens": {"100"},
	"request_retry": {"2", "{attempts: 2, backoff: 1s, max_backoff: 2s, max_retry_after: 3s}"},
	"command":       {"[ls, 1, '{{k}}']"}, "stdin": {"x", "3"}, "env": {"{A: b, C: '{{k}}'}"}, "clean_env": {"true"}, "inherit": {"[A_KEY]"}, "dir": {"d"}, "output_limit": {"1MB"},
	"ok_exit_codes": {"[0, 3]"}, "unsafe": {"true"}, "url": {"http://localhost/"}, "method": {"POST"}, "headers": {"{A: b, C: '{{k}}'}"},
	"body": {"text", "{a: ['{{k}}', 1]}", "[1]"}, "size_limit": {"64KB"}, "redirect_hosts": {"[example.org, 'h:81']"}, "ok_status": {"[200, 404]"}, "json": {"true"},
	"set": {"{k: state.k + 1, gone: null}", "{n: 1}"}, "value": {"1 + 1"}, "text": {"t {{k}}"}, "endpoint": {"http://localhost/"},
	"payload": {"p {{k}}", "{a: '{{k}}'}"}, "new_context": {"true"}, "question": {"q {{k}}?"}, "ask": {"approve", "answer", "edit"}, "options": {"[x, 2]"},
	"keys": {"[k, l]"}, "deadline": {"24h"}, "default": {"true", "x", "{k: 1}", "2"}, "func": {"f"},
	"effect": {"pure", "at_most_once", "{at_most_once: true, reconcile: {command: [ls, '{{call_id}}'], env: {A: b}, timeout: 1s}}",
		"{at_most_once: true, reconcile: {url: 'http://localhost/{{call_id}}', body: {a: 1}, headers: {A: b}, timeout: 1s}}"},
	"callbacks":  {"{before_agent: [{webhook: 'https://h.example.org/', secret_env: HOOK, timeout: 1s}], after_agent: [{command: [a, 1], on_error: continue}, {func: f, veto: false}]}"},
	"output_key": {"k", "loop_output"}, "result_key": {"r"}, "exit_when": {"state.k == 1"}, "exit_reason": {"so {{k}}"}, "can_exit_loop": {"true", "false"},
}

// companions are fields that stand beside another one. The list is not
// definition.Fields, so that a new field changes no other bucket.
var companions = []string{
	"description", "display_name", "color", "callbacks", "effect", "output_key", "can_exit_loop", "on_error", "continue_on_error", "max_iterations", "score", "stop_when", "budget",
	"timeout", "timeouts", "iteration_timeout", "state_limit", "order", "retry", "circuit", "cache", "delay_before", "adaptive_timeout", "model", "context", "tools", "instructions",
	"output_schema", "request_retry", "command", "env", "json", "headers", "url", "body", "set", "value", "text", "endpoint", "payload", "question", "ask", "keys", "options", "default",
	"deadline", "func", "result_key", "exit_when", "exit_reason", "sub_agents", "max_concurrency", "inputs", "state", "prices", "type", "size_limit", "result", "no_progress",
}

// oddValues are what people and machines write now and then.
var oddValues = []string{
	"~", "yes", "off", "010", "0o7", "0x1F", "1_000", "!!str 5", "!!int '5'", "!!binary aGk=", "2026-01-02", ".inf", ".nan", "99999999999999999999", "1e400",
	"5 minutes", "3 days", "64 kilobytes", "{{k}}", "{k}", "'{{k}}'", "'{{'", "' '", "''", "\"a\\nb\"", "[[]]", "[{}]", "{a: [~]}", "[A=b]", "[a, 1, ~, {b: c}, [d]]",
	"{? [a] : b}", "{1: 2, true: 3}",
}

// maker makes up definitions. One that is careful makes few mistakes: whether it does
// is drawn for each definition.
type maker struct {
	*rand.Rand
	careful bool
}

// makerOf makes the same of the same bucket and number, whatever others there are.
func makerOf(bucket string, i int) maker {
	h := fnv.New64a()
	h.Write([]byte(bucket))
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(i)))
	return maker{r, r.IntN(5) < 3}
}

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m maker) odds(n int) bool { return m.IntN(n) == 0 }

// slip is true now and then, and hardly ever of a careful maker.
func (m maker) slip(n int) bool { return m.odds(n) && (!m.careful || m.odds(4)) }

// value is one for a field: good, another field's, a probe, or a changed good one.
func (m maker) value(field string) *yaml.Node {
	good := goodValues[field]
	n := m.IntN(10)
	if m.careful && !m.odds(5) {
		n = 0
	}
	switch {
	case n < 4 && good != nil:
		return node(m.one(good...))
	case n < 8 && good != nil:
		v := node(m.one(good...))
		for range 1 + m.IntN(2) {
			v = m.changed(v)
		}
		return v
	case n == 8:
		return node(m.one(goodValues[m.one(companions...)]...))
	}
	return m.probe()
}

func (m maker) probe() *yaml.Node {
	if m.odds(4) {
		return node(m.one(oddValues...))
	}
	return node(m.one(probes...))
}

// changed is a value with one thing in it made another.
func (m maker) changed(v *yaml.Node) *yaml.Node {
	all := []*yaml.Node{}
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		all = append(all, n)
		for i, c := range n.Content {
			if n.Kind != yaml.MappingNode || i%2 == 1 {
				walk(c)
			}
		}
	}
	walk(v)
	n := all[m.IntN(len(all))]
	if len(n.Content) > 0 && n.Kind == yaml.MappingNode && !m.odds(3) {
		i := 2 * m.IntN(len(n.Content)/2)
		key := *n.Content[i]
		switch m.IntN(5) {
		case 0:
			n.Content = slices.Delete(n.Content, i, i+2)
		case 1:
			key.Value = m.mistyped(key.Value)
			n.Content[i] = &key
		case 2: // twice
			n.Content = append(n.Content, &key, m.probe())
		case 3:
			n.Content = append(n.Content, node(m.one("zzz", "key", "for", "reconcile", "higher_is_better", "1", "<<")), m.probe())
		default:
			n.Content[i+1] = m.probe()
		}
		return v
	}
	old := *n
	switch m.IntN(4) {
	case 0:
		*n = yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{&old}}
	case 1:
		*n = yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{node(m.one("a", "key", "when", "default")), &old}}
	default:
		if n.Kind == yaml.SequenceNode && m.odds(2) {
			n.Content = append(n.Content, m.probe())
			break
		}
		*n = *m.probe()
	}
	return v
}

func (m maker) mistyped(key string) string {
	if len(key) < 2 {
		return key + "x"
	}
	i := m.IntN(len(key))
	switch m.IntN(3) {
	case 0:
		return key[:i] + key[i+1:]
	case 1:
		return key[:i] + "e" + key[i:]
	}
	return strings.ToUpper(key)
}

// agent is one of a type with a field in it, beside others.
func (m maker) agent(field string, types []definition.Type) *yaml.Node {
	typ := types[m.IntN(len(types))]
	if m.slip(10) {
		typ = definition.Type(m.one(goodValues["type"]...))
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, v *yaml.Node) {
		if key == field || !has(n, key) {
			n.Content = append(n.Content, node(key), v)
		}
	}
	if !m.slip(30) {
		add("name", node("a"))
	}
	if !m.odds(4) && field != "type" {
		add("type", node(string(typ)))
	}
	if !m.slip(8) {
		var need map[string]json.RawMessage
		_ = json.Unmarshal([]byte("{"+needed[typ]+"}"), &need) // it is written above
		for _, key := range slices.Sorted(maps.Keys(need)) {
			if key != field {
				add(key, node(string(need[key])))
			}
		}
	}
	for range m.IntN(4) {
		if c := m.one(companions...); c != field && (!m.careful || hasField(typ, c)) {
			v := node(m.one(goodValues[c]...))
			if m.slip(3) {
				v = m.value(c)
			}
			add(c, v)
		}
	}
	name := field
	if m.slip(20) {
		name = m.mistyped(field)
	}
	add(name, m.value(field))
	if m.slip(30) { // twice
		add(field, m.value(field))
	}
	// In any order.
	pairs := len(n.Content) / 2
	m.Shuffle(pairs, func(i, j int) {
		n.Content[2*i], n.Content[2*j] = n.Content[2*j], n.Content[2*i]
		n.Content[2*i+1], n.Content[2*j+1] = n.Content[2*j+1], n.Content[2*i+1]
	})
	if m.odds(12) && pairs > 2 { // some of it in config
		at := 2 * m.IntN(pairs-1)
		inner := &yaml.Node{Kind: yaml.MappingNode, Content: slices.Clone(n.Content[at : at+4])}
		n.Content = append(slices.Delete(n.Content, at, at+4), node("config"), inner)
	}
	return n
}

// hasField reports whether agents of a type, at the root or elsewhere, have a field.
func hasField(typ definition.Type, name string) bool {
	fields := definition.Fields()
	i := slices.IndexFunc(fields, func(f definition.Field) bool { return f.Name == name })
	return i >= 0 && !fields[i].Root && (fields[i].Types == nil || slices.Contains(fields[i].Types, typ))
}

func has(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// document is a definition with a field somewhere in it, and what its refs lead to.
func (m maker) document(f definition.Field) (text, part string) {
	types := f.Types
	if types == nil {
		for _, t := range goodValues["type"] {
			types = append(types, definition.Type(t))
		}
	}
	a := m.agent(f.Name, types)
	part = "name: p\ntext: p\n"
	shape := m.IntN(12)
	if m.careful && !m.odds(3) {
		shape = m.IntN(4)
	}
	if f.Root && (m.careful || shape > 0) {
		shape = 11
	}
	switch {
	case shape < 4: // a step of a loop
		a = around("name: root, type: loop, sub_agents: [{name: o, text: s, output_key: k}, {ref: part.yaml}]", a)
	case shape < 6:
		a = around("name: root, sub_agents: [{name: o, instructions: x, output_key: k}]", a)
		a = around("name: outer, type: loop, max_iterations: 2, sub_agents: []", a)
	case shape == 6:
		a = around("name: seq, type: sequential, sub_agents: [{name: o, text: s, output_key: k}]", a)
		a = around("name: root, type: loop, sub_agents: []", a)
	case shape == 7: // a tool
		t := node("{name: root, instructions: go, tools: [exit_loop]}")
		tools := t.Content[len(t.Content)-1]
		tools.Content = append(tools.Content, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{node("agent"), a}})
		a = t
	case shape == 8: // in a file of its own
		part = m.written(a)
		a = node("{name: root, type: loop, sub_agents: [{name: o, text: s, output_key: k}, {ref: part.yaml}]}")
	case shape == 9: // an alias stands for it, or for a part of it
		b := around("name: root, type: sequential, sub_agents: [{name: o, text: s, output_key: k}]", a)
		subs := b.Content[len(b.Content)-1]
		a.Anchor = "x"
		alias := &yaml.Node{Kind: yaml.AliasNode, Value: "x", Alias: a}
		merges := []*yaml.Node{node("name"), node("b"), {Kind: yaml.ScalarNode, Value: "<<"}, alias}
		subs.Content = append(subs.Content, &yaml.Node{Kind: yaml.MappingNode, Content: merges})
		if m.odds(4) {
			subs.Content = append(subs.Content, alias)
		}
		a = b
	}
	return m.written(a), part
}

// around puts an agent at the end of the sub-agents of another.
func around(outer string, a *yaml.Node) *yaml.Node {
	n := node("{" + outer + "}")
	subs := n.Content[len(n.Content)-1]
	subs.Content = append(subs.Content, a)
	return n
}

func node(text string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return doc.Content[0]
}

// written is a value as YAML, in the block style, the flow style or some of both.
func (m maker) written(n *yaml.Node) string {
	var b strings.Builder
	flow := m.odds(8)
	m.write(&b, n, 0, flow, true)
	b.WriteByte('\n')
	return b.String()
}

func (m maker) write(b *strings.Builder, n *yaml.Node, depth int, flow, ownLine bool) {
	if n.Kind == yaml.AliasNode {
		b.WriteString("*" + n.Value + " ")
		return
	}
	block := !flow && n.Kind != yaml.ScalarNode && len(n.Content) > 0 && !m.odds(3)
	if n.Anchor != "" {
		b.WriteString("&" + n.Anchor)
		if b.WriteByte(' '); block {
			ownLine = false
		}
	}
	indent := strings.Repeat("  ", depth)
	switch {
	case n.Kind == yaml.ScalarNode:
		b.WriteString(scalarText(n))
	case block:
		for i := 0; i < len(n.Content); i++ {
			if i > 0 || !ownLine {
				b.WriteString("\n" + indent)
			}
			if n.Kind == yaml.SequenceNode {
				b.WriteString("- ")
				m.write(b, n.Content[i], depth+1, false, true)
				continue
			}
			if key := n.Content[i]; key.Kind == yaml.ScalarNode {
				b.WriteString(scalarText(key) + ": ")
			} else {
				b.WriteString("? ")
				m.write(b, key, depth+1, true, true)
				b.WriteString("\n" + indent + ": ")
			}
			i++
			m.write(b, n.Content[i], depth+1, false, false)
		}
	default:
		ends := map[yaml.Kind]string{yaml.SequenceNode: "[]", yaml.MappingNode: "{}"}[n.Kind]
		b.WriteByte(ends[0])
		for i := 0; i < len(n.Content); i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			if n.Kind == yaml.MappingNode {
				if n.Content[i].Kind != yaml.ScalarNode {
					b.WriteString("? ")
				}
				m.write(b, n.Content[i], depth, true, false)
				b.WriteString(": ")
				i++
			}
			m.write(b, n.Content[i], depth, true, false)
		}
		b.WriteByte(ends[1])
	}
}

// scalarText is a scalar as it was written. One that breaks off is quoted.
func scalarText(n *yaml.Node) string {
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.ShortTag() + " "
	}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		data, _ := json.Marshal(n.Value)
		return tag + string(data)
	case n.Style&yaml.SingleQuotedStyle != 0:
		return tag + "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
	}
	return tag + n.Value
}
