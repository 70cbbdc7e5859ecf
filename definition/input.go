// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/deep"
)

// Input is an input of a run; its value is stored under a key of the state.
type Input struct {
	Name        string    `json:"name"`
	Type        InputType `json:"type"`
	Description string    `json:"description,omitempty"`
	// Required reports that there is no default.
	Required bool `json:"required,omitempty"`
	Default  any  `json:"default,omitempty"`
	// Choices and Pattern limit the value, as in a taskagent.Shape; empty if the file does not set them.
	Choices []string `json:"choices,omitempty"`
	Pattern string   `json:"pattern,omitempty"`

	node *source.Node // where its name stands
}

// InputType is the type of an input's value.
type InputType string

// The types of inputs, with the Go types of their values in the state.
const (
	InputString InputType = "string"
	InputInt    InputType = "int"    // int64
	InputNumber InputType = "number" // float64, or int64 beyond 2^53
	InputBool   InputType = "bool"
	InputList   InputType = "list" // []any
	InputMap    InputType = "map"  // map[string]any
	// InputPath is the path of a file or a directory. A relative default is looked up beside the
	// definition and is absolute in the state; a value from the run is not changed.
	InputPath InputType = "path"
	// InputFile is the path of a file inside the root of the run, which may stand in a command.
	InputFile InputType = "file"
	// InputFolder is the path of such a folder.
	InputFolder InputType = "folder"
)

var inputTypes = []string{"string", "int", "number", "bool", "list", "map", "path", "file", "folder"}

// inputKinds maps the types of inputs to those of JSON Schema.
var inputKinds = map[InputType]string{
	InputString: "string", InputInt: "integer", InputNumber: "number", InputBool: "boolean", InputList: "array",
	InputMap: "object", InputPath: "string", InputFile: "string", InputFolder: "string",
}

var inputParts = parts[Input]{rows: []row[Input]{
	field("type", "type of the value; string if there is no default",
		plain(func() shape { return schema.OneOf(inputTypes...) }, (*reader).inputType),
		func(in *Input) *InputType { return &in.Type }),
	special("default", "value if the run gives none; without a default the input is required",
		func() shape { return &jsonschema.Schema{} }, takesDefault),
	field("description", "text that explains the input", aText, func(in *Input) *string { return &in.Description }),
	field("choices", choicesDoc, aChoice, func(in *Input) *[]string { return &in.Choices }),
	field("pattern", patternDoc, aPattern, func(in *Input) *string { return &in.Pattern }),
}, what: "an input", has: "a map as a default is written {type: map, default: {…}}", settled: fitDefault,
	also: defaultsFit}

// inputShape returns the shape {type, default, description}, or a default alone.
func inputShape() shape {
	return schema.Either(&jsonschema.Schema{Not: &jsonschema.Schema{Type: "object"}, Title: "value"}, inputParts.shape())
}

// defaultsFit adds to the shape which defaults each type allows.
func defaultsFit(s shape) {
	for _, name := range inputTypes {
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{name}}},
			Required: []string{"type"}}
		fits := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"default": {Types: []string{inputKinds[InputType(name)], "null"}}}}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is, Then: fits})
	}
}

// takesInputs reads the root's inputs.
func takesInputs(r place, n *source.Node, d *Definition) bool {
	ps, ok := r.pairs(n, "inputs")
	for _, p := range ps {
		r.a.nodes["inputs."+p.key] = p.value
		in := Input{Name: p.key, node: p.at}
		if p.value.Kind == source.Map {
			long, _ := inputParts.read(r.at("inputs."+p.key), p.value)
			name := in.Name
			in = *long
			in.Name, in.node = name, p.at
		} else if v, ok := r.any(p.value, "inputs."+p.key); ok {
			if in.Default, in.Type = v, typeOfValue(v); in.Type == "" {
				in.Type, in.Required = InputString, true
			}
			r.typeAsDefault(p.key, p.value)
		}
		d.Inputs = append(d.Inputs, in)
	}
	return ok
}

// typeAsDefault warns of an input whose default is the name of a type.
func (r *reader) typeAsDefault(name string, n *source.Node) {
	word := n.Value
	if also := alsoTypes[word]; also != nil && !slices.Contains(inputTypes, word) {
		word = also[0]
	}
	if source.PlainText(n) && slices.Contains(inputTypes, word) {
		r.warn(r.src.Of(n), CodeValue, "the default of the input %q is the text %q", name, n.Value).
			Hint = fmt.Sprintf("if it is the type, write %s: {type: %s}", name, word)
	}
}

// inputType reads the type of an input.
func (r *reader) inputType(n *source.Node, what string) (InputType, bool) {
	text, ok := r.text(n, what)
	if ok && !slices.Contains(inputTypes, text) {
		r.report(n, CodeValue, "there is no type %q of input", text).
			suggest(typeNamed(text, inputTypes, "the types are string, int, number, bool, list, map, path and file"))
		return "", false
	}
	return InputType(text), ok
}

// alsoTypes maps types of inputs and schemas to their names in other languages.
var alsoTypes = map[string][]string{
	"integer": {"int"}, "int": {"integer"}, "long": {"int", "integer"}, "float": {"number"}, "double": {"number"}, "boolean": {"bool"}, "bool": {"boolean"},
	"array": {"list"}, "list": {"array"}, "object": {"map"}, "map": {"object"}, "dict": {"map", "object"}, "text": {"string"}, "str": {"string"},
}

// typeNamed returns the hint for an unknown type.
func typeNamed(typed string, known []string, otherwise string) (hint, suggestion string) {
	for _, name := range alsoTypes[strings.ToLower(typed)] {
		if slices.Contains(known, name) {
			return meant.Name(name)
		}
	}
	return meant.Hint(typed, known, otherwise)
}

// takesDefault does nothing, because fitDefault reads the default when the type is known.
func takesDefault(place, *source.Node, *Input) bool { return true }

// fitDefault reads the default, which must fit the input's type, or sets the type.
func fitDefault(p place, in *Input) {
	if in.Type == "" && p.a.nodes[p.field+".type"] != nil { // it could not be read
		in.Type = InputString
		return
	}
	def := p.a.nodes[p.field+".default"]
	if def == nil || source.IsNull(def) {
		in.Required = true
		in.Type = cmp.Or(in.Type, InputString)
		return
	}
	what := "the default of " + strings.TrimPrefix(p.field, "inputs.")
	v, ok := p.any(def, what)
	if !ok {
		return
	}
	in.Type = cmp.Or(in.Type, typeOfValue(v))
	if in.Default, ok = in.Type.fit(v); !ok {
		p.wrong(def, what, in.Type.article())
		return
	}
	if s := in.shape(); !s.Free() {
		if err := s.Check(in.Default); err != nil {
			p.report(def, CodeValue, "%s %v", what, err)
		}
	}
}

// typeOfValue returns the type of an input with that value; empty for nil.
func typeOfValue(v any) InputType {
	switch v.(type) {
	case string:
		return InputString
	case int64:
		return InputInt
	case float64:
		return InputNumber
	case bool:
		return InputBool
	case []any:
		return InputList
	case map[string]any:
		return InputMap
	}
	return ""
}

// fit converts the value to the type.
func (t InputType) fit(v any) (any, bool) {
	if i, ok := v.(int64); ok && t == InputNumber {
		return exactly(i), true
	}
	if t == InputPath || t == InputFile || t == InputFolder {
		return v, typeOfValue(v) == InputString
	}
	return v, typeOfValue(v) == t
}

// exactly returns a whole number as a float64, or as an int64 if a float64 would change its digits.
func exactly(i int64) any {
	if i < -1<<53 || i > 1<<53 {
		return i
	}
	return float64(i)
}

func (t InputType) article() string {
	switch t {
	case InputInt:
		return "a whole number"
	case InputBool:
		return "true or false"
	case InputString, InputPath, InputFile, InputFolder:
		return "text"
	}
	return fmt.Sprintf("a %s", t)
}

// takesState reads the root's initial state.
func takesState(r place, n *source.Node, d *Definition) bool {
	ps, ok := r.pairs(n, "state")
	d.State = make(map[string]any, len(ps))
	for _, p := range ps {
		r.a.nodes["state."+p.key] = p.value
		r.a.nodes["key of state."+p.key] = p.at
		if v, ok := r.any(p.value, "state."+p.key); ok {
			d.State[p.key] = v
		}
	}
	return ok
}

// InputError reports a missing or wrong value of an input.
type InputError struct {
	Input   string
	Missing bool // the input is required, and has no value
	Msg     string
	Hint    string // what may help; "" if there is no hint
}

// Error returns the message, with the hint in brackets.
func (e *InputError) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + " (" + e.Hint + ")"
}

// InitialState returns the state with which a run begins. It combines the state of the file, the defaults of the
// inputs, and the values, by key; values override the others. A value is text, as from a command line, and is
// converted to the input's type: a list from JSON or from texts with commas between them, a map from JSON. A value
// may also replace a key of the file's state.
//
// The error joins an [*InputError] for each value that does not fit, each unknown key and each missing required
// input. The maps and lists in the state belong to the caller.
func (d *Definition) InitialState(values map[string]string) (map[string]any, error) {
	state := make(map[string]any, len(d.State)+len(d.Inputs))
	kinds, shapes := make(map[string]InputType, len(d.State)+len(d.Inputs)), make(map[string]taskagent.Shape, len(d.Inputs))
	for key, v := range d.State {
		state[key] = deep.Copy(v)
		kinds[key] = cmp.Or(typeOfValue(v), InputString)
	}
	var errs []error
	for _, in := range d.Inputs {
		kinds[in.Name], shapes[in.Name] = in.Type, in.shape()
		if _, given := values[in.Name]; given {
			continue
		}
		if in.Required {
			errs = append(errs, missing(in))
			continue
		}
		state[in.Name] = deep.Copy(in.Default)
		if name, is := in.Default.(string); is && in.Type == InputPath {
			state[in.Name] = d.beside(name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		t, known := kinds[key]
		if !known {
			names := slices.Sorted(maps.Keys(kinds))
			known := "the definition has no inputs"
			if len(names) > 0 {
				known = "its inputs: " + strings.Join(names, ", ")
			}
			hint, _ := meant.Hint(key, names, known)
			errs = append(errs, &InputError{Input: key, Msg: fmt.Sprintf("there is no input %q", key), Hint: hint})
			continue
		}
		v, err := t.parse(values[key])
		if s := shapes[key]; err == nil && !s.Free() {
			err = s.Check(v)
		}
		if err != nil {
			errs = append(errs, &InputError{Input: key, Msg: fmt.Sprintf("input %q: %v", key, err)})
			continue
		}
		state[key] = v
	}
	return state, errors.Join(errs...)
}

// beside returns the path of a file whose name is relative to the definition.
func (d *Definition) beside(name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) || d.Root == nil {
		return name
	}
	name = filepath.Join(filepath.Dir(d.Root.src.Name), name)
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return name
}

func missing(in Input) error {
	e := &InputError{Input: in.Name, Missing: true, Msg: fmt.Sprintf("input %q (%s) is required", in.Name, in.Type)}
	if in.Description != "" {
		e.Msg += ": " + in.Description
	}
	return e
}

// parse converts a text to a value of the type.
func (t InputType) parse(text string) (any, error) {
	bare := strings.TrimSpace(text)
	switch t {
	case InputInt:
		if v, err := strconv.ParseInt(bare, 10, 64); err == nil {
			return v, nil
		}
	case InputNumber:
		if v, err := strconv.ParseInt(bare, 10, 64); err == nil {
			return exactly(v), nil
		}
		if v, err := strconv.ParseFloat(bare, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v, nil
		}
	case InputBool:
		if bare == "true" || bare == "false" {
			return bare == "true", nil
		}
	case InputList:
		if !strings.HasPrefix(bare, "[") {
			return splitList(bare), nil
		}
		return t.parseJSON(bare)
	case InputMap:
		return t.parseJSON(bare)
	default:
		return text, nil
	}
	return nil, fmt.Errorf("must be %s, got %q", t.article(), text)
}

func splitList(text string) []any {
	list := []any{}
	if text == "" {
		return list
	}
	for item := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(item))
	}
	return list
}

// parseJSON reads a list or a map. It uses the reader for YAML and its limits, because YAML's flow style contains
// JSON.
func (t InputType) parseJSON(text string) (any, error) {
	if len(text) > source.MaxFile {
		return nil, errors.New("is longer than 1 MiB")
	}
	l := newLoader()
	src := source.New("", "", 0, text)
	if at, what := source.Unreadable(text); what != "" {
		return nil, fmt.Errorf("has %s in it, at byte %d", what, at+1)
	}
	n := l.parse(src, text)
	if n == nil {
		return nil, fmt.Errorf("must be %s in JSON: %s", t.article(), l.problems[0].Message)
	}
	r := reader{loader: l, src: src}
	v, _ := r.any(n, "the value")
	if len(l.problems) > 0 {
		return nil, errors.New(l.problems[0].Message)
	}
	if typeOfValue(v) != t || !source.InFlow(n) {
		return nil, fmt.Errorf("must be %s in JSON, got %q", t.article(), text)
	}
	return v, nil
}

// NeedsRequest returns why a run needs a request of its user: an agent reads {{user_input}}, or has no other text to
// send to its model. The result is empty if the definition has a query, or if a run works without a request.
func (d *Definition) NeedsRequest() string { return d.request }

// needsRequest computes whether a run needs a request.
func (c *checker) needsRequest() {
	if c.def.Query != "" {
		return
	}
	type field struct {
		agent *Agent
		name  string
	}
	asks := make(map[field]bool) // whether there is a request: such a field can do without
	reads := slices.DeleteFunc(slices.Clone(c.reads), func(rd read) bool {
		return rd.name != "user_input" || rd.code || rd.bare || rd.soft || rd.agent.inTool()
	})
	for i := range reads {
		if rd := &reads[i]; rd.section {
			asks[field{rd.agent, rd.field}] = true
		}
	}
	for i := range reads {
		if rd := &reads[i]; !asks[field{rd.agent, rd.field}] {
			c.def.request = fmt.Sprintf("%q reads {{user_input}}", rd.agent.Name)
			return
		}
	}
	for _, a := range c.def.Root.beginning() {
		if a.Type == TypeLLM && !a.instructed() {
			c.def.request = fmt.Sprintf("%q has no instructions, so it would send an empty request to its model", a.Name)
			return
		}
	}
}

// beginning returns the agents that run first.
func (a *Agent) beginning() (all []*Agent) {
	switch {
	case len(a.SubAgents) == 0:
		return []*Agent{a}
	case a.Type == TypeLoop:
		for _, sub := range inOrder(a) {
			if sub.OutputKey != LoopOutput {
				return sub.beginning()
			}
		}
	case a.Type == TypeParallel:
		for _, sub := range a.SubAgents {
			all = append(all, sub.beginning()...)
		}
		return all
	}
	return a.SubAgents[0].beginning()
}

// instructed reports whether the model of an agent gets a text besides the request.
func (a *Agent) instructed() bool {
	if a.LLM.Instructions != "" {
		return true
	}
	for l := a.loopAround(); l != nil; l = l.loopAround() {
		if l.Loop.Goal != "" || l.Loop.Instructions != "" {
			return true
		}
	}
	return false
}
