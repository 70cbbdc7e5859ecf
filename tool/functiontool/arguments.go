// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/session"
)

// ArgumentsError reports what is wrong with the arguments of a call, in a text that a model can act
// on. It matches [ErrInvalidArgument].
type ArgumentsError struct {
	// Tool is the name of the tool that was called.
	Tool string
	// Problems has a line for each problem, such as
	//	score: expected a number, got the string "high"
	Problems []string
}

// Error lists the problems.
func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("invalid arguments for %s: %s", e.Tool, strings.Join(e.Problems, "; "))
}

// Unwrap returns [ErrInvalidArgument].
func (e *ArgumentsError) Unwrap() error { return ErrInvalidArgument }

// arguments checks and decodes what a model sends.
type arguments struct {
	*Shape
	tool   string
	strict bool // the arguments are a struct: others than its fields would be lost
}

func newArguments(name string, schema *jsonschema.Schema, t reflect.Type) (*arguments, error) {
	base := t
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if base.Kind() != reflect.Struct && base.Kind() != reflect.Map {
		return nil, fmt.Errorf("input must be a struct or a map or a pointer to those types, but received: %v: %w", t,
			ErrInvalidArgument)
	}
	if schema == nil {
		var err error
		if schema, err = jsonschema.ForType(base, nil); err != nil {
			return nil, fmt.Errorf("infer the schema of the arguments: %w", err)
		}
	}
	shape, err := NewShape(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of the arguments: %w", err)
	}
	return &arguments{Shape: shape, tool: name, strict: base.Kind() == reflect.Struct}, nil
}

// complete returns a copy of the arguments, completed by defaults, if they are as
// the schema says.
func (a *arguments) complete(args any) (map[string]any, error) {
	m, err := object(args)
	if err != nil {
		return nil, a.wrong(err.Error())
	}
	if err := a.resolved.ApplyDefaults(&m); err != nil {
		return nil, fmt.Errorf("defaults of tool %q: %w", a.tool, err)
	}
	var c checker
	if a.strict && a.schema.AdditionalProperties == nil {
		c.unknown(a.schema, m, "")
	}
	if problems := a.check(&c, m); len(problems) > 0 {
		return nil, a.wrong(problems...)
	}
	return m, nil
}

// decode fills in the handler's arguments. What fails although the schema lets
// it pass is up to the types: a date, a number out of range.
func (a *arguments) decode(args map[string]any, into any) error {
	text, err := json.Marshal(args)
	if err != nil {
		return a.wrong(err.Error())
	}
	if err = json.Unmarshal(text, into); err == nil {
		return nil
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		alone, err := json.Marshal(map[string]any{name: args[name]})
		if err == nil {
			err = json.Unmarshal(alone, reflect.New(reflect.TypeOf(into).Elem()).Interface())
		}
		if err != nil {
			problems = append(problems, name+": "+reason(err))
		}
	}
	if problems == nil { // each for itself is fine
		problems = []string{reason(err)}
	}
	return a.wrong(problems...)
}

func (a *arguments) wrong(problems ...string) error {
	return &ArgumentsError{Tool: a.tool, Problems: problems}
}

// object is a copy of the arguments as JSON has them.
func object(args any) (map[string]any, error) {
	if args == nil {
		return map[string]any{}, nil
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	v, err := session.PlainJSON(text)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case nil:
		return map[string]any{}, nil
	default:
		return nil, fmt.Errorf("expected an object, got %s", describe(v))
	}
}

// reason is why a value cannot be decoded, without Go's names for it.
func reason(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("a %s does not fit (%s)", t.Value, t.Type)
	}
	return err.Error()
}
