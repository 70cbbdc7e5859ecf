// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// InputType is the type of an input's value.
type InputType string

// The types of inputs, and what their values are in the state.
const (
	InputString InputType = "string"
	InputInt    InputType = "int"    // int64
	InputNumber InputType = "number" // float64, or int64 beyond 2^53
	InputBool   InputType = "bool"
	InputList   InputType = "list" // []any
	InputMap    InputType = "map"  // map[string]any
	// InputPath is a string that names a file or a folder. A default that is
	// relative is looked for beside the definition, and is absolute in the state; a
	// value that is given to a run stays as it is.
	InputPath InputType = "path"
)

var inputTypes = []string{"string", "int", "number", "bool", "list", "map", "path"}

// Input is something that a run is given, under a key of its state.
type Input struct {
	Name        string
	Type        InputType
	Description string
	// Required says that there is no default.
	Required bool
	Default  any

	node *yaml.Node // where its name stands
}

// takesInputs reads the root's inputs.
func takesInputs(r place, n *yaml.Node, d *Definition) bool {
	ps, ok := r.pairs(n, "inputs")
	for _, p := range ps {
		r.a.nodes["inputs."+p.key] = p.value
		in := Input{Name: p.key, node: p.at}
		if p.value.Kind == yaml.MappingNode {
			r.input(&in, p.value)
		} else if v, ok := r.any(p.value, "inputs."+p.key); ok {
			if in.Default, in.Type = v, typeOfValue(v); in.Type == "" {
				in.Type, in.Required = InputString, true
			}
		}
		d.Inputs = append(d.Inputs, in)
	}
	return ok
}

// input reads the long form of an input.
func (r *reader) input(in *Input, n *yaml.Node) {
	what := "inputs." + in.Name
	ps, _ := r.pairs(n, what)
	var def, typ *yaml.Node
	for _, p := range ps {
		switch p.key {
		case "type":
			typ = p.value
		case "default":
			def = p.value
		case "description":
			in.Description, _ = r.text(p.value, what+".description")
		default:
			r.report(r.src.Of(p.at), CodeField, "unknown field %q of an input", p.key).
				Hint = didYouMean(p.key, Parts("inputs"), "%q", "a map as a default is written {type: map, default: {…}}")
		}
	}
	if typ != nil {
		text, ok := r.text(typ, what+".type")
		if ok && !slices.Contains(inputTypes, text) {
			r.report(r.src.Of(typ), CodeValue, "there is no type %q of input", text).
				Hint = typeNamed(text, inputTypes, "the types are string, int, number, bool, list, map and path")
			ok = false
		}
		if !ok {
			in.Type = InputString
			return
		}
		in.Type = InputType(text)
	}
	r.inputDefault(in, def)
}

// alsoTypes are what other languages call the types of inputs and of schemas.
var alsoTypes = map[string][]string{
	"integer": {"int"}, "int": {"integer"}, "long": {"int", "integer"}, "float": {"number"}, "double": {"number"}, "boolean": {"bool"}, "bool": {"boolean"},
	"array": {"list"}, "list": {"array"}, "object": {"map"}, "map": {"object"}, "dict": {"map", "object"}, "text": {"string"}, "str": {"string"},
}

// typeNamed is the hint for a type that there is not.
func typeNamed(typed string, known []string, otherwise string) string {
	for _, name := range alsoTypes[strings.ToLower(typed)] {
		if slices.Contains(known, name) {
			return fmt.Sprintf("did you mean %q?", name)
		}
	}
	return didYouMean(typed, known, "%q", otherwise)
}

func (r *reader) inputDefault(in *Input, def *yaml.Node) {
	if def == nil || source.IsNull(def) {
		in.Required = true
		if in.Type == "" {
			in.Type = InputString
		}
		return
	}
	what := "the default of " + in.Name
	v, ok := r.any(def, what)
	if !ok {
		return
	}
	if in.Type == "" {
		in.Type = typeOfValue(v)
	}
	if in.Default, ok = in.Type.fit(v); !ok {
		r.wrong(def, what, in.Type.article())
	}
}

// typeOfValue is the type of an input with that value; empty for nil.
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

// fit returns the value as one of the type.
func (t InputType) fit(v any) (any, bool) {
	if i, ok := v.(int64); ok && t == InputNumber {
		return exactly(i), true
	}
	if t == InputPath {
		return v, typeOfValue(v) == InputString
	}
	return v, typeOfValue(v) == t
}

// exactly is a whole number as a float64, unless that would change its digits.
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
	case InputString, InputPath:
		return "text"
	}
	return fmt.Sprintf("a %s", t)
}

// takesState reads the root's initial state.
func takesState(r place, n *yaml.Node, d *Definition) bool {
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
