// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/template"
)

// read is one place where an agent reads a key.
type read struct {
	agent        *Agent
	field        string
	name         string // as a template writes it: draft, prev.draft, best.score
	line, column int    // in the field's value
	code         bool   // in an expression
	bare         bool   // the field's value is the key
	inner        bool   // it may be a field of a section's item
	soft         bool   // it need not be a key, or need not be there
	section      bool   // a template asks whether it is there
	form         string // how a template writes it: {{%s}}, {{%s?}}, {%s}
	any          bool   // it may be every key, of state or of prev
}

// declared notes the keys of inputs and state.
func (c *checker) declared() {
	root := c.def.Root
	inputs := make(map[string]bool)
	for _, in := range c.def.Inputs {
		inputs[in.Name] = true
		c.key(root.src.Of(in.node), in.Name, "an input")
		c.keys[in.Name] = "an input"
	}
	for _, key := range slices.Sorted(maps.Keys(c.def.State)) {
		at := root.src.Of(root.nodes["key of state."+key])
		c.key(at, key, "state")
		if inputs[key] {
			c.report(at, CodeConflict, "%q is both an input and in state; remove one", key)
		}
		c.keys[key] = "state"
	}
}

// written notes and checks the keys that an agent writes.
func (c *checker) written(a *Agent) {
	by := "written by " + a.Name
	for _, k := range []struct{ field, key string }{{"output_key", a.OutputKey}, {"result_key", a.ResultKey}} {
		if k.key == "" {
			if n, given := a.nodes[k.field]; given && source.PlainText(n) && n.Value == "" {
				c.report(a.at(k.field), CodeKeyName, "%s is empty", k.field)
			}
			continue
		}
		if k.field == "output_key" && k.key == LoopOutput {
			if a.parent != nil && a.parent.loopAround() == nil {
				c.wrote(LoopOutput, by, a)
			}
			continue
		}
		if c.key(a.at(k.field), k.key, k.field) {
			c.wrote(k.key, by, a)
			c.silent(a)
		}
	}
	if a.Expression == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(a.Expression.Set)) {
		if c.key(a.at("key of set."+key), key, "set") {
			c.wrote(key, by, a)
		}
	}
}

// wrote notes that an agent writes a key.
func (c *checker) wrote(key, by string, a *Agent) {
	c.keys[key] = by
	c.writers[key] = append(c.writers[key], a)
}

// silent warns of a workflow agent whose result is never there.
func (c *checker) silent(a *Agent) {
	if !a.Type.Workflow() || a.OutputKey == "" || len(a.SubAgents) == 0 || a.Type == TypeParallel {
		return
	}
	for sub := range a.All {
		if !sub.Type.Workflow() && sub.Type != TypeExpression {
			return
		}
	}
	c.warn(a.at("output_key"), CodeNeverSet, "output_key of %q is never written: no agent in it returns text", a.Name).
		Hint = `let a finalizer say the result, as text: "{{key}}"`
}

// key checks that a key of the state can be one.
func (c *checker) key(at source.Span, key, what string) bool {
	wrong := vocabulary.Key(key, what)
	if wrong == nil {
		c.spelled(at, key)
		return true
	}
	code := CodeKeyName
	if wrong.Taken {
		code = CodeKeyTaken
	}
	c.report(at, code, "%s", wrong.Message).Hint = wrong.Hint
	return false
}

// spelled notes a key in another spelling than snake_case.
func (c *checker) spelled(at source.Span, key string) {
	usual := vocabulary.SnakeCase(key)
	if usual == key {
		return
	}
	p := c.note(at, CodeKeyName, "the key %q is not in snake_case", key)
	p.Hint = "write " + usual + ", so that all keys are spelled alike"
	if strings.Contains(key, "-") {
		p.Hint = fmt.Sprintf("write %s: in an expression, state.%s subtracts", usual, key)
	}
}

// programReads notes what an expression reads of the state.
func (c *checker) programReads(a *Agent, field string, p *expr.Program) {
	keys, all := p.Reads("state")
	c.keyReads(a, field, p.String(), keys, all)
}

// keyReads notes the keys that an expression reads.
func (c *checker) keyReads(a *Agent, field, text string, keys []string, all bool) {
	for _, key := range keys {
		c.exprRead(a, field, text, key, false)
	}
	if all {
		c.exprRead(a, field, text, "", true)
	}
}

// exprRead notes one key that an expression reads.
func (c *checker) exprRead(a *Agent, field, text, name string, any bool) {
	if any && strings.Contains(text, "prev") {
		name = "prev"
	}
	line, column := keyIn(text, name)
	c.reads = append(c.reads, read{agent: a, field: field, name: name, line: line, column: column, code: true,
		any: any})
}

// keyIn finds where an expression names a key. It need not be right, only near.
func keyIn(text, name string) (line, column int) {
	root, key := "state", name
	if k, ok := strings.CutPrefix(name, "prev."); ok {
		root, key = "prev", k
	}
	at := 0
	for _, form := range []string{root + "." + key, root + ".?" + key, root + `["` + key, root + `['` + key, key} {
		if i := strings.Index(text, form); i >= 0 {
			at = i
			break
		}
	}
	line = 1 + strings.Count(text[:at], "\n")
	column = 1 + len([]rune(text[strings.LastIndexByte(text[:at], '\n')+1:at]))
	return line, column
}

// place is where the read is in the file.
func (rd *read) place() source.Span {
	n, ok := rd.agent.nodes[rd.field]
	if !ok {
		return rd.agent.at(rd.field)
	}
	at := rd.agent.src.Within(n, rd.line, rd.column)
	if n.Kind == source.Scalar && at.Length == 1 {
		at.Length = len([]rune(rd.String()))
	}
	return at
}

// String is the read as the file has it.
func (rd *read) String() string {
	switch {
	case rd.bare:
		return rd.name
	case rd.code && strings.HasPrefix(rd.name, "prev."):
		return rd.name
	case rd.code:
		return "state." + rd.name
	}
	return fmt.Sprintf(rd.form, rd.name)
}

// formOf is how a template writes a name.
func formOf(ref template.Ref) string {
	form := "%s"
	if ref.Optional {
		form = "%s?"
	}
	if ref.Single {
		return "{" + form + "}"
	}
	return "{{" + form + "}}"
}

// sharedKeys notes output keys that are written by two agents, or given to the run:
// one takes the place of the other. What belongs together is left out: an agent in
// another that writes the same key hands it on, and one in a loop goes on with what
// one before the loop has begun.
func (c *checker) sharedKeys() {
	first := make(map[string]*Agent)
	for a := range c.def.Root.All {
		key := a.OutputKey
		if key == "" || key == LoopOutput {
			continue
		}
		if at := c.given(key); at != "" {
			c.note(a.at("output_key"), CodeSharedKey, "%q overwrites %q, which %s gives", a.Name, key, at).
				Hint = "give the result a key of its own, unless you want to overwrite the input"
		}
		before := first[key]
		switch {
		case before == nil:
			first[key] = a
		case !a.in(before) && a.loopAround() == before.loopAround():
			c.note(a.at("output_key"), CodeSharedKey, "%q and %q both write %q: the later result overwrites the "+
				"earlier one",
				before.Name, a.Name, key).Hint = "give each result a key of its own, unless you want to overwrite one"
		}
	}
}

// given says what gives a key to a run before any agent runs; empty if nothing does.
func (c *checker) given(key string) string {
	for _, in := range c.def.Inputs {
		if in.Name == key {
			return "an input"
		}
	}
	return ""
}
