// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// With returns a copy of the plan with another value of one field, for back-tests and forms. The path
// has the JSON names of the fields, with dots: score.min_delta_percent, or steps.critic.retry.attempts.
// The value is JSON, but texts need no quotes, a time can be 90s or a number of seconds, and null
// removes the field. With does not check the result; see [Plan.Check].
func (p *Plan) With(path, value string) (*Plan, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // keep the digits of numbers as written
	var plan any
	if err := d.Decode(&plan); err != nil {
		return nil, err
	}
	w := pathSetter{path, value}
	plan, err = w.into(plan, reflect.TypeFor[Plan](), strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), "."))
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(plan); err != nil {
		return nil, err
	}
	changed := new(Plan)
	if err := decodeStrict(text, changed); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", path, value, withoutGoTypes(err))
	}
	return changed, nil
}

func decodeStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// withoutGoTypes rewrites a type error without the names of Go types.
func withoutGoTypes(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s cannot be %s", e.Value, kindOf(e.Type))
	}
	return err
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Uint, reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	}
	return "a " + t.Kind().String()
}

// pathSetter goes down the JSON of a plan along the Go types of its fields.
type pathSetter struct{ path, value string }

// into returns v, of type t, after setting the value at the path rest.
func (w pathSetter) into(v any, t reflect.Type, rest []string) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(rest) == 0 {
		return w.leaf(t)
	}
	switch {
	case t == reflect.TypeFor[Condition]():
		if expr, plain := v.(string); plain {
			v = map[string]any{"expr": expr}
		}
		return w.field(v, t, rest)
	case t.Kind() == reflect.Struct:
		return w.field(v, t, rest)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return w.element(v, t.Elem(), rest)
	}
	return nil, fmt.Errorf("%s: there is nothing below %s", w.path,
		strings.TrimSuffix(w.path, "."+strings.Join(rest, ".")))
}

// field sets the value in a field of an object. Its errors suggest a similar name.
func (w pathSetter) field(v any, t reflect.Type, rest []string) (any, error) {
	names, types := fieldsOf(t)
	i := slices.Index(names, rest[0])
	if i < 0 {
		msg := fmt.Sprintf("%s: there is no field %q", w.path, rest[0])
		if near := suggest.Nearest(rest[0], names); near != "" {
			return nil, fmt.Errorf("%s (did you mean %q?)", msg, near)
		}
		if below := fieldBelow(names, types, rest[0]); below != "" {
			return nil, fmt.Errorf("%s (did you mean %q?)", msg, below)
		}
		return nil, fmt.Errorf("%s (there are %s)", msg, strings.Join(names, ", "))
	}
	m, ok := v.(map[string]any)
	if !ok {
		m = make(map[string]any)
	}
	inner, err := w.into(m[rest[0]], types[i], rest[1:])
	if err != nil {
		return nil, err
	}
	if m[rest[0]] = inner; inner == nil {
		delete(m, rest[0])
	}
	return m, nil
}

// fieldBelow looks for a field in the objects that are values of other fields, and returns its path, such as
// score.target; "" if it is in none.
func fieldBelow(names []string, types []reflect.Type, name string) string {
	for i, t := range types {
		if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
			continue
		}
		if inner, _ := fieldsOf(t.Elem()); slices.Contains(inner, name) {
			return names[i] + "." + name
		}
	}
	return ""
}

// fieldsOf returns the JSON names of a struct's fields, and their types.
func fieldsOf(t reflect.Type) (names []string, types []reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names, types = append(names, name), append(types, f.Type)
		}
	}
	return names, types
}

// element sets the value in an element of a list. It finds the element by its index or, for steps, by its name.
func (w pathSetter) element(v any, t reflect.Type, rest []string) (any, error) {
	list, _ := v.([]any)
	at := -1
	var names []string
	for i := range list {
		m, _ := list[i].(map[string]any)
		name, _ := m["name"].(string)
		names = append(names, name)
		if name != "" && name == rest[0] {
			at = i
		}
	}
	if n, err := strconv.Atoi(rest[0]); at < 0 && err == nil && n >= 0 && n < len(list) {
		at = n
	}
	if at < 0 {
		msg := fmt.Sprintf("%s: there is no %q in a list of %d", w.path, rest[0], len(list))
		if near := suggest.Nearest(rest[0], names); near != "" {
			msg += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return nil, errors.New(msg)
	}
	inner, err := w.into(list[at], t, rest[1:])
	if err != nil {
		return nil, err
	}
	if inner == nil {
		return nil, fmt.Errorf("%s: an element of a list cannot be removed", w.path)
	}
	list[at] = inner
	return list, nil
}

// leaf parses the value for a field of type t. It returns nil to remove the field.
func (w pathSetter) leaf(t reflect.Type) (any, error) {
	if w.value == "null" {
		return nil, nil
	}
	switch {
	case t == reflect.TypeFor[Duration]():
		if seconds, err := strconv.ParseFloat(w.value, 64); err == nil {
			return time.Duration(seconds * float64(time.Second)).String(), nil
		}
		if _, err := time.ParseDuration(w.value); err != nil {
			return nil, fmt.Errorf("%s=%s: give a time such as 90s or 5m", w.path, w.value)
		}
		return w.value, nil
	case t.Kind() == reflect.String, t == reflect.TypeFor[Condition]() && !strings.HasPrefix(w.value, "{"):
		return w.value, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String && !strings.HasPrefix(w.value, "["):
		list := []any{}
		for item := range strings.FieldsSeq(strings.ReplaceAll(w.value, ",", " ")) {
			list = append(list, item)
		}
		return list, nil
	}
	d := json.NewDecoder(strings.NewReader(w.value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return nil, fmt.Errorf("%s=%s: give %s, or null to remove it", w.path, w.value, kindOf(t))
	}
	return v, nil
}
