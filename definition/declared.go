// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/vocabulary"
)

// shapeParts declares the shape of a value of the state.
var shapeParts = parts[taskagent.Shape]{rows: []row[taskagent.Shape]{
	field("type", "number, int, bool, or file or folder: a path that exists inside the run's root; string if left out", as(oneWord("string", "int", "number", "bool", "file", "folder"), func(word string) taskagent.ShapeType { return shapeTypes[InputType(word)] }), func(s *taskagent.Shape) *taskagent.ShapeType { return &s.Type }),
	field("choices", choicesDoc, aChoice, func(s *taskagent.Shape) *[]string { return &s.Choices }),
	field("pattern", patternDoc, aPattern, func(s *taskagent.Shape) *string { return &s.Pattern }),
}, what: "a shape", settled: func(p place, s *taskagent.Shape) {
	if n := p.a.nodes[p.field]; s.Free() && n.Kind == source.Map && len(n.Content) == 0 {
		p.report(n, CodeTask, "%s declares nothing", p.field).Hint = "give it a type, choices or a pattern"
	}
}}

const (
	choicesDoc = "texts that the value can be"
	patternDoc = "regular expression (RE2) that matches the whole value"
)

// shapeTypes maps the types of inputs to types of values that may stand in a command.
var shapeTypes = map[InputType]taskagent.ShapeType{
	InputInt: taskagent.ShapeInt, InputNumber: taskagent.ShapeNumber, InputBool: taskagent.ShapeBool, InputFile: taskagent.ShapeFile,
	InputFolder: taskagent.ShapeFolder,
}

var aChoice = each(aWords, listing{empty: "name some, or leave it out", unique: true})

var aPattern = value[string]{schema.Word, func(p place, n *source.Node) (string, bool) {
	text, ok := aWord.read(p, n)
	if !ok {
		return "", false
	}
	if _, err := taskagent.ParsePattern(text); err != nil {
		p.report(n, CodeValue, "%s is not a regular expression: %v", p.field, err).err = err
		return "", false
	}
	return text, true
}}

func (in *Input) shape() taskagent.Shape {
	return taskagent.Shape{Type: shapeTypes[in.Type], Choices: in.Choices, Pattern: in.Pattern}
}

// declare collects the shapes of values: those that the file declares for keys, inputs and answers, and those of the
// numbers and booleans in the initial state. The names are those of placeholders.
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
	for a := range d.Root.All {
		if a.races() {
			a.Parallel.Race.declare(all)
		}
	}
	d.shapes = all
}

// declareValues adds the shapes of initial values that are numbers or booleans.
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
	if path := d.paths[s]; path != "" {
		shape.Type = path
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

// parameters returns the schema of the call's arguments if the agent is a tool with a command, or its reconcile; nil
// otherwise.
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

// places returns the shapes of the values that an agent's command can name, and the names of its parameters.
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

// shaped reports shapes of keys that no agent writes.
func (c *checker) shaped() {
	for _, name := range slices.Sorted(maps.Keys(c.def.Shapes)) {
		head, _, _ := strings.Cut(name, ".")
		if _, known := c.keys[head]; known || slices.Contains(vocabulary.BuiltIn, name) || strings.Contains(head, ":") ||
			c.def.hasCode() {
			continue
		}
		root := c.def.Root
		c.report(root.src.Of(root.nodes["key of shapes."+name]), CodeUnknownKey, "shapes names the key %q, which no agent writes", head).
			suggest(meant.Hint(head, slices.Sorted(maps.Keys(c.keys)), ""))
	}
}

// misplacement reports a placeholder in a command whose value may be any text.
type misplacement struct {
	read
	err *taskagent.ShapeError
}

// misplace notes a misplaced placeholder. The checker reports it when it knows that the key exists.
func (c *checker) misplace(a *Agent, e *taskagent.ShapeError) {
	field := filePath(e.Field)
	texts, dialect := textsOf(a)
	t, _ := template.Parse(texts[field], template.Options{Dialect: dialect}) // it has a placeholder
	for _, ref := range t.Keys() {
		if ref.Name == e.Name {
			rd := read{agent: a, field: field, name: ref.Name, line: ref.Line, column: ref.Column, form: formOf(ref),
				inner: ref.Inner, soft: ref.Optional}
			c.misplaced = append(c.misplaced, misplacement{rd, e})
			return
		}
	}
}

// shapeless reports the placeholders that need a declared shape, with the lines to write instead.
func (c *checker) shapeless() {
	for _, m := range c.misplaced {
		if !m.known(c.keys) && !m.inner && !m.soft && !m.agent.parameter(m.name) && m.name != taskagent.KeyCallID {
			continue // that is an error of its own
		}
		message := m.err.Problem()
		if advice := m.err.Advice(); advice != "" && !m.err.Code && !m.err.Shape.Free() { // else the hint says what to do
			message += "; " + advice
		}
		p := c.report(m.place(), CodeTask, "%s: %s", m.field, message)
		p.err, p.Hint = m.err, c.instead(m)
	}
}

// instead returns the lines to write for a placeholder that is not allowed at its place.
func (c *checker) instead(m misplacement) string {
	a, field, name := m.agent, m.field, m.name
	kinds := "{choices: [a, b]}, {pattern: \"[a-z]+\"} or {type: file}"
	switch {
	case field == "dir":
		kinds = "{choices: [a, b]} or {type: folder}"
	case field == "command[0]" || m.err.Code:
		kinds = "{choices: [a, b]}"
	case m.err.Shape.Type == taskagent.ShapeFile || m.err.Shape.Type == taskagent.ShapeFolder:
		return ""
	}
	declared := c.declaration(a, name, kinds)
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

// declaration returns a line that declares the shape of a value, which is one of kinds; empty if no line can.
func (c *checker) declaration(a *Agent, name, kinds string) string {
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
	if c.input(name) {
		field = "inputs"
	}
	return fmt.Sprintf("%s: {%s: %s}", field, name, kinds)
}

// schema reads a JSON Schema that every provider supports; nil if it has a problem. Properties keep the order of the
// file, because models write them in that order.
func (r *reader) schema(n *source.Node, what string) *jsonschema.Schema {
	n = source.Deref(n)
	if n.Kind != source.Map {
		r.wrong(n, what, "a JSON Schema, which is a map")
		return nil
	}
	before := len(r.problems)
	s := &schemaReader{reader: r, node: n, what: what, at: make(map[string]*source.Node)}
	ps, _ := r.pairs(n, what)
	for _, p := range ps {
		s.at[p.key] = p.value
		s.keyword(p)
	}
	if len(r.problems) == before {
		s.whole()
	}
	if len(r.problems) > before {
		return nil
	}
	return &s.out
}

// schemaReader reads one schema without its sub-schemas.
type schemaReader struct {
	*reader
	node     *source.Node
	what     string // where it stands
	at       map[string]*source.Node
	nullable bool
	out      jsonschema.Schema
}

func (s *schemaReader) keyword(p pair) {
	f, n, out := s.what+"."+p.key, p.value, &s.out
	switch p.key {
	case "type":
		s.types(n, f)
	case "title":
		out.Title, _ = s.text(n, f)
	case "description":
		out.Description, _ = s.text(n, f)
	case "format":
		out.Format, _ = s.text(n, f)
	case "pattern":
		out.Pattern, _ = s.text(n, f)
		if _, err := regexp.Compile(out.Pattern); err != nil {
			s.report(n, CodeValue, "%s is not a regular expression: %v", f, err).err = err
		}
	case "default":
		if v, ok := s.any(n, f); ok {
			out.Default, _ = json.Marshal(v)
		}
	case "example", "$schema", "$id", "$comment": // for readers of the file
	case "examples":
		s.items(n, f)
	case "enum":
		s.enum(n, f)
	case "const":
		if v, ok := s.any(n, f); ok {
			out.Enum = []any{v}
		}
	case "nullable":
		s.nullable, _ = s.boolean(n, f)
	case "anyOf":
		items, ok := s.items(n, f)
		if ok && len(items) == 0 {
			s.report(n, CodeValue, "%s is an empty list", f)
		}
		for i, item := range items {
			out.AnyOf = append(out.AnyOf, s.schema(item, index(f, i)))
		}
	case "items":
		out.Items = s.schema(n, f)
	case "properties":
		s.properties(n, f)
	case "required":
		out.Required = s.list(n, f, s.text)
	case "additionalProperties":
		if open, ok := s.boolean(n, f); ok && open {
			s.report(n, CodeValue, "%s cannot be true: an answer has only the properties that the schema names", f).Hint = "leave it out"
		}
	case "minimum":
		out.Minimum = s.numberPointer(n, f)
	case "maximum":
		out.Maximum = s.numberPointer(n, f)
	default:
		size := map[string]**int{
			"minLength": &out.MinLength, "maxLength": &out.MaxLength, "minItems": &out.MinItems, "maxItems": &out.MaxItems,
			"minProperties": &out.MinProperties, "maxProperties": &out.MaxProperties,
		}[p.key]
		if size == nil {
			s.unknown(p)
		} else if v, ok := s.count(n, f); ok {
			*size = new(int(v))
		}
	}
}

func (s *schemaReader) unknown(p pair) {
	if instead, ok := schema.OtherKeywords[p.key]; ok {
		s.report(p.at, CodeField, "%s: not every provider takes %q in a schema", s.what, p.key).Hint = instead
		return
	}
	problem := s.report(p.at, CodeField, "%s: JSON Schema has no %q", s.what, p.key)
	t := p.value.Value
	if also := alsoTypes[t]; also != nil && !slices.Contains(schema.Types, t) {
		t = also[len(also)-1]
	}
	if source.PlainText(p.value) && slices.Contains(schema.Types, t) {
		problem.Hint = fmt.Sprintf("write properties: {%s: {type: %s}}", p.key, t)
		return
	}
	problem.suggest(meant.Hint(p.key, schema.Keywords, "describe each value in properties, under its name"))
}

// types reads one type, or one and "null".
func (s *schemaReader) types(n *source.Node, f string) {
	all := []string{}
	if n.Kind == source.List {
		all = s.list(n, f, s.text)
	} else if text, ok := s.text(n, f); ok {
		all = []string{text}
	}
	for i, t := range all {
		if !slices.Contains(schema.Types, t) && t != "" {
			at := n
			if n.Kind == source.List {
				at = source.Deref(n.Content[i])
			}
			s.report(at, CodeValue, "%s: JSON Schema has no type %q", s.what, t).
				suggest(typeNamed(t, schema.Types, "the types are "+strings.Join(schema.Types, ", ")))
			return
		}
	}
	if i := slices.Index(all, "null"); i >= 0 && len(all) > 1 {
		s.nullable = true
		all = slices.Delete(all, i, i+1)
	}
	if len(all) > 1 {
		s.report(n, CodeValue, "%s can be one type, or one and null", f).
			Hint = fmt.Sprintf("write anyOf: [{type: %s}, {type: %s}]", all[0], all[1])
		return
	}
	if s.out.Type = strings.Join(all, ""); s.out.Type == "file" || s.out.Type == "folder" {
		if s.def.paths == nil {
			s.def.paths = make(map[*jsonschema.Schema]taskagent.ShapeType)
		}
		s.def.paths[&s.out], s.out.Type = taskagent.ShapeType(s.out.Type), "string"
	}
}

func (s *schemaReader) enum(n *source.Node, f string) {
	items, ok := s.items(n, f)
	if ok && len(items) == 0 {
		s.report(n, CodeValue, "%s is an empty list", f)
	}
	for i, item := range items {
		if v, ok := s.any(item, index(f, i)); ok {
			s.out.Enum = append(s.out.Enum, v)
		}
	}
}

func (s *schemaReader) properties(n *source.Node, f string) {
	ps, ok := s.pairs(n, f)
	if ok && len(ps) == 0 {
		s.report(n, CodeMissing, "%s is empty: an object needs properties", f)
	}
	s.out.Properties = make(map[string]*jsonschema.Schema, len(ps))
	for _, p := range ps {
		s.out.Properties[p.key] = s.schema(p.value, f+"."+p.key)
		s.out.PropertyOrder = append(s.out.PropertyOrder, p.key)
	}
}

// whole checks how the keywords of a schema go together.
func (s *schemaReader) whole() {
	out := &s.out
	if s.at["const"] != nil && s.at["enum"] != nil {
		s.report(s.node, CodeConflict, "%s has const and enum; give one of them", s.what)
		return
	}
	if out.Type == "" {
		out.Type = s.meant()
	}
	switch {
	case out.Type == "" && out.AnyOf == nil:
		s.report(s.node, CodeMissing, "%s needs a type", s.what).Hint = "the types are " + strings.Join(schema.Types, ", ")
	case out.Type == "array" && out.Items == nil:
		s.report(s.node, CodeMissing, "%s is an array and needs items", s.what).Hint = "write items, such as items: " +
			"{type: string}"
	case out.Type == "object" && len(out.Properties) == 0:
		s.report(s.node, CodeMissing, "%s is an object and needs properties", s.what)
	}
	for i, name := range out.Required {
		if _, ok := out.Properties[name]; !ok {
			s.report(source.Deref(s.at["required"].Content[i]), CodeValue,
				"%s requires %q, which is not among its properties", s.what, name).
				suggest(meant.Hint(name, slices.Sorted(slices.Values(out.PropertyOrder)), ""))
		}
	}
	s.values()
	if s.nullable && out.Type != "" && out.Type != "null" {
		out.Type, out.Types = "", []string{out.Type, "null"}
		if out.Enum != nil {
			out.Enum = append(out.Enum, nil)
		}
	}
	s.fallback()
}

// fallback checks whether the default is a value of the schema.
func (s *schemaReader) fallback() {
	if s.out.Default == nil {
		return
	}
	resolved, err := s.out.CloneSchemas().Resolve(nil)
	if err != nil {
		return
	}
	var v any
	if err := json.Unmarshal(s.out.Default, &v); err == nil && resolved.Validate(v) != nil {
		s.report(s.at["default"], CodeValue, "%s: the default does not match the schema", s.what)
	}
}

// meant returns the type of a value whose type the schema does not declare.
func (s *schemaReader) meant() string {
	_, text := first(s.out.Enum).(string)
	switch {
	case s.out.AnyOf != nil:
	case s.out.Properties != nil:
		return "object"
	case s.out.Items != nil:
		return "array"
	case text:
		return "string"
	}
	return ""
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// values checks whether the values of enum are of the type. The type says whether null is allowed.
func (s *schemaReader) values() {
	for i, v := range s.out.Enum {
		f, ok := v.(float64)
		n, whole := v.(int64)
		if whole {
			f, ok = float64(n), true
			s.out.Enum[i] = f // as in JSON
		}
		_, text := v.(string)
		if text && s.out.Type == "string" || ok && s.out.Type == "number" ||
			ok && f == math.Trunc(f) && s.out.Type == "integer" {
			continue
		}
		at, hint := s.at["const"], ""
		if list := s.at["enum"]; list != nil {
			at = source.Deref(list.Content[i])
		}
		switch {
		case v == nil:
			hint = "write nullable: true in its place"
		case !slices.Contains([]string{"string", "number", "integer"}, s.out.Type):
			s.report(at, CodeValue, "%s: enum and const can have only strings and numbers", s.what)
			return
		}
		s.report(at, CodeValue, "%s: %s is not of type %s", s.what, source.Describe(at), s.out.Type).Hint = hint
	}
}
