// SPDX-License-Identifier: Apache-2.0

package template

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// unfillable is an error by which lookup reports its own failure to the caller of Fill. Any other error is an
// ordinary value.
type unfillable interface {
	error
	Unfillable()
}

// text returns a value as text.
func text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case unfillable:
		return "", v
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case json.RawMessage:
		return string(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return brief.Number(v, 64), nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && r.IsNil() {
		return "", nil
	}
	switch v := v.(type) {
	case encoding.TextMarshaler:
		b, err := v.MarshalText()
		return string(b), err
	case fmt.Stringer:
		return v.String(), nil
	case error:
		return v.Error(), nil
	}
	switch r.Kind() {
	case reflect.Pointer:
		return text(r.Elem().Interface())
	case reflect.String:
		return r.String(), nil
	case reflect.Bool:
		return strconv.FormatBool(r.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(r.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(r.Uint(), 10), nil
	case reflect.Float32:
		return brief.Number(r.Float(), 32), nil
	case reflect.Float64:
		return brief.Number(r.Float(), 64), nil
	}
	return compactJSON(v)
}

// compactJSON leaves <, > and & alone, which json.Marshal does not.
func compactJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// elements returns the items of a section: none, the items of a list, or the value itself.
func elements(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	case []byte: // a text, not a list
		return elements(string(v))
	case json.RawMessage:
		return elements(string(v))
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return nil
		}
		return elements(r.Elem().Interface())
	case reflect.Slice, reflect.Array:
		items := make([]any, r.Len())
		for i := range items {
			items[i] = r.Index(i).Interface()
		}
		return items
	case reflect.Map:
		if r.IsNil() {
			return nil
		}
	case reflect.String, reflect.Bool:
		if r.IsZero() {
			return nil
		}
	}
	return []any{v}
}

// descend follows the fields of maps and structs.
func descend(v any, fields []string) (any, bool) {
	for _, name := range fields {
		var ok bool
		if v, ok = field(v, name); !ok {
			return nil, false
		}
	}
	return v, true
}

// field reads one field of a map, or of a struct by its name in JSON.
func field(v any, name string) (any, bool) {
	if m, ok := v.(map[string]any); ok {
		f, ok := m[name]
		return f, ok
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	switch {
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String:
		f := r.MapIndex(reflect.ValueOf(name).Convert(r.Type().Key()))
		if !f.IsValid() {
			return nil, false
		}
		return f.Interface(), true
	case r.Kind() == reflect.Struct:
		f, ok := object(v)[name]
		return f, ok
	}
	return nil, false
}

// object converts a struct to a map as JSON does; nil if its JSON is not an object.
func object(v any) map[string]any {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // large integers keep their digits
	var m map[string]any
	if dec.Decode(&m) != nil {
		return nil
	}
	return m
}
