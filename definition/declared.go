// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
	"github.com/refrain-dev/refrain/internal/source"
	"github.com/refrain-dev/refrain/template"
)

// shapeParts declare the shape of a value of the state.
var shapeParts = parts[taskagent.Shape]{rows: []row[taskagent.Shape]{
	field("type", "number, int, bool or file: a path inside the run's root; string if left out", as(oneWord("string", "int", "number", "bool", "file"), func(word string) taskagent.ShapeType { return shapeTypes[InputType(word)] }), func(s *taskagent.Shape) *taskagent.ShapeType { return &s.Type }),
	field("choices", choicesDoc, aChoice, func(s *taskagent.Shape) *[]string { return &s.Choices }),
	field("pattern", patternDoc, aPattern, func(s *taskagent.Shape) *string { return &s.Pattern }),
}, what: "a shape", settled: func(p place, s *taskagent.Shape) {
	if n := p.a.nodes[p.field]; s.Free() && n.Kind == source.Map && len(n.Content) == 0 {
		p.report(p.src.Of(n), CodeTask, "%s declares nothing", p.field).Hint = "give it a type, choices or a pattern"
	}
}}

const (
	choicesDoc = "texts that the value can be"
	patternDoc = "regular expression (RE2) that matches the whole value"
)

// shapeTypes are the types of values that may stand in a command, by the type of an input.
var shapeTypes = map[InputType]taskagent.ShapeType{
	InputInt: taskagent.ShapeInt, InputNumber: taskagent.ShapeNumber, InputBool: taskagent.ShapeBool, InputFile: taskagent.ShapeFile,
}

var aChoice = each(aWords, listing{empty: "name some, or leave it out", unique: true})

var aPattern = plain(wordShape, func(r *reader, n *source.Node, what string) (string, bool) {
	text, ok := r.word(n, what)
	if !ok {
		return "", false
	}
	if _, err := taskagent.ParsePattern(text); err != nil {
		r.report(r.src.Of(n), CodeValue, "%s is not a regular expression: %v", what, err).err = err
		return "", false
	}
	return text, true
})

func (in *Input) shape() taskagent.Shape {
	return taskagent.Shape{Type: shapeTypes[in.Type], Choices: in.Choices, Pattern: in.Pattern}
}

// declare collects the shapes of values: what the file says of keys, of inputs and of answers, and the
// numbers and truth values that the state begins with. The names are those of placeholders.
func (d *Definition) declare() {
	all := make(map[string]taskagent.Shape)
	for a := range d.Root.All {
		if a.answer != nil && a.OutputKey != "" {
			d.declareSchema(all, a.OutputKey, a.answer)
		}
	}
	declareValues(all, "", d.State)
	for _, in := range d.Inputs {
		if s := in.shape(); !s.Free() {
			all[in.Name] = s
		}
	}
	maps.Copy(all, d.Shapes)
	d.shapes = all
}

// declareValues adds the shapes of initial values, which are numbers and truth values.
func declareValues(all map[string]taskagent.Shape, prefix string, values map[string]any) {
	for key, v := range values {
		switch v := v.(type) {
		case int64, float64:
			all[prefix+key] = taskagent.Shape{Type: taskagent.ShapeNumber}
		case bool:
			all[prefix+key] = taskagent.Shape{Type: taskagent.ShapeBool}
		case map[string]any:
			declareValues(all, prefix+key+".", v)
		}
	}
}

// declareSchema adds the shapes of a value that a JSON Schema describes, and of its properties.
func (d *Definition) declareSchema(all map[string]taskagent.Shape, name string, s *jsonschema.Schema) {
	for key, of := range s.Properties {
		d.declareSchema(all, name+"."+key, of)
	}
	kind := s.Type
	if len(s.Types) > 0 { // the second is null
		kind = s.Types[0]
	}
	shape := taskagent.Shape{Pattern: s.Pattern}
	switch kind {
	case "integer":
		shape.Type = taskagent.ShapeInt
	case "number":
		shape.Type = taskagent.ShapeNumber
	case "boolean":
		shape.Type = taskagent.ShapeBool
	}
	if d.files[s] {
		shape.Type = taskagent.ShapeFile
	}
	for _, v := range s.Enum {
		if v != nil {
			shape.Choices = append(shape.Choices, fmt.Sprint(v))
		}
	}
	if !shape.Free() {
		all[name] = shape
	}
}

// parameters describe the arguments of the call if the agent is a tool with a command, or finds out
// whether one took place; nil otherwise.
func (a *Agent) parameters() *jsonschema.Schema {
	if a.parent == nil || a.parent.LLM == nil {
		return nil
	}
	for _, t := range a.parent.LLM.Tools {
		if t.Agent != nil && (t.Agent == a || t.Agent.Reconcile == a) {
			return t.Parameters
		}
	}
	return nil
}

// parameter reports whether a placeholder of the agent names a parameter, or a field of one.
func (a *Agent) parameter(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	s := a.parameters()
	return s != nil && s.Properties[head] != nil
}

// places are the shapes of the values that an agent's command can name, and the names of its parameters.
func (a *Agent) places() (map[string]taskagent.Shape, []string) {
	s := a.parameters()
	if s == nil {
		return a.def.shapes, nil
	}
	all := maps.Clone(a.def.shapes)
	maps.DeleteFunc(all, func(name string, _ taskagent.Shape) bool { return a.parameter(name) })
	for name, of := range s.Properties {
		a.def.declareSchema(all, name, of)
	}
	return all, slices.Sorted(maps.Keys(s.Properties))
}

// shaped reports shapes of keys that nobody writes.
func (c *checker) shaped() {
	for _, name := range slices.Sorted(maps.Keys(c.def.Shapes)) {
		head, _, _ := strings.Cut(name, ".")
		if _, known := c.keys[head]; known || slices.Contains(vocabulary.BuiltIn, name) || strings.Contains(head, ":") {
			continue
		}
		root := c.def.Root
		c.report(root.src.Of(root.nodes["key of shapes."+name]), CodeUnknownKey, "shapes names the key %q, which no agent writes", head).
			Hint = meant.Hint(head, slices.Sorted(maps.Keys(c.keys)), "")
	}
}

// misplaced is a placeholder in a command whose value may be any text.
type misplaced struct {
	read
	err *taskagent.ShapeError
}

// misplace notes one. It is reported when it is known that there is such a key.
func (c *checker) misplace(a *Agent, e *taskagent.ShapeError) {
	field, _ := splitField(e.Error())
	texts, dialect := textsOf(a)
	t, _ := template.Parse(texts[field], template.Options{Dialect: dialect}) // it has a placeholder
	for _, ref := range t.Keys() {
		if ref.Name == e.Name {
			rd := read{agent: a, field: field, name: ref.Name, line: ref.Line, column: ref.Column, form: formOf(ref),
				inner: ref.Inner, soft: ref.Optional}
			c.misplaced = append(c.misplaced, misplaced{rd, e})
			return
		}
	}
}

// shapeless reports the placeholders that need a declared shape, with what to write instead.
func (c *checker) shapeless() {
	for _, m := range c.misplaced {
		if !m.known(c.keys) && !m.inner && !m.soft && !m.agent.parameter(m.name) && m.name != taskagent.KeyCallID {
			continue // that is an error of its own
		}
		_, message := splitField(m.err.Error())
		message, _, _ = strings.Cut(message, "; ")
		p := c.report(m.place(), CodeTask, "%s: %s", m.field, message)
		p.err, p.Hint = m.err, c.instead(m.agent, m.field, m.name)
	}
}

// instead are the lines to write for a placeholder that cannot stand where it does.
func (c *checker) instead(a *Agent, field, name string) string {
	declared := c.declaration(a, name)
	if field == "command[0]" || field == "dir" {
		return "declare what it can be: " + declared + "; or say unsafe: true"
	}
	variable := taskagent.FreePrefix + strings.ToUpper(notInVariable().ReplaceAllString(name, "_"))
	lines := fmt.Sprintf("write env: {%s: \"{{%s}}\"}", variable, name)
	if _, given := a.nodes["stdin"]; !given {
		lines += fmt.Sprintf(" or stdin: \"{{%s}}\"", name)
	}
	if declared != "" {
		lines += "; or declare what it can be: " + declared
	}
	return lines
}

var notInVariable = lazyregexp.New(`[^A-Za-z0-9]+`)

// declaration is a line that declares the shape of a value; empty if none can.
func (c *checker) declaration(a *Agent, name string) string {
	rd := read{agent: a, name: name}
	switch kind, _ := rd.split(); {
	case a.parameter(name):
		return fmt.Sprintf("parameters: {type: object, properties: {%s: {enum: [a, b]}}}", name)
	case kind == "outside" || kind == "built in" && name != "user_input":
		return ""
	case kind == "loop":
		_, name, _ = strings.Cut(name, ".")
	}
	field := "shapes"
	if c.given(name) != "" {
		field = "inputs"
	}
	return fmt.Sprintf("%s: {%s: {choices: [a, b]}}, {pattern: \"[a-z]+\"} or {type: file}", field, name)
}
