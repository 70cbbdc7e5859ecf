// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// form says how values of a type are written.
type form int

const (
	other form = iota // by encoding/json
	boolean
	text
	integer
	float
	moment // a time.Time
	raw    // a json.RawMessage
	values // a map[string]any
	list
	pointer
	record // a struct
)

// layout is what the writer knows of a type.
type layout struct {
	form   form
	fields []field // of a struct, by name
}

// field is a field of a struct's JSON.
type field struct {
	name                string
	quoted              string // the name as JSON, with its colon
	index               []int
	omitEmpty, omitZero bool
}

var layouts sync.Map // of layout, by reflect.Type

func layoutOf(t reflect.Type) layout {
	if l, ok := layouts.Load(t); ok {
		return l.(layout)
	}
	l := layout{form: formOf(t)}
	if l.form == record {
		var ok bool
		if l.fields, ok = fieldsOf(t); !ok {
			l.form = other
		}
	}
	layouts.Store(t, l)
	return l
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[time.Time]():
		return moment
	case reflect.TypeFor[json.RawMessage]():
		return raw
	case reflect.TypeFor[json.Number]():
		return other
	case reflect.TypeFor[map[string]any]():
		return values
	}
	if p := reflect.PointerTo(t); p.Implements(jsonMarshaler) || p.Implements(textMarshaler) {
		return other
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolean
	case reflect.String:
		return text
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer
	case reflect.Float64:
		return float
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // bytes become base64
			return list
		}
	case reflect.Pointer:
		return pointer
	case reflect.Struct:
		return record
	}
	return other
}

// fieldsOf returns the fields of a struct by their names in JSON. It returns false for a struct whose fields follow rules of
// encoding/json that are rare: a name that occurs twice, an embedded pointer, or the option string.
func fieldsOf(t reflect.Type) (fields []field, ok bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			if f.Type.Kind() != reflect.Struct {
				return nil, false
			}
			continue // its own fields are among the visible ones
		}
		if !f.IsExported() || len(f.Index) > 1 && !embedsOnly(t, f.Index) {
			return nil, false
		}
		quoted, err := json.Marshal(cmp.Or(name, f.Name))
		if err != nil {
			return nil, false
		}
		one := field{name: cmp.Or(name, f.Name), quoted: string(quoted) + ":", index: f.Index}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				one.omitEmpty = true
			case "omitzero":
				if _, has := f.Type.MethodByName("IsZero"); has && f.Type != reflect.TypeFor[time.Time]() {
					return nil, false
				}
				one.omitZero = true
			case "string":
				return nil, false
			}
		}
		fields = append(fields, one)
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(fields); i++ {
		if fields[i].name == fields[i-1].name {
			return nil, false
		}
	}
	return fields, true
}

// embedsOnly reports whether all structs around a promoted field are embedded without a name in JSON and without JSON of their own.
func embedsOnly(t reflect.Type, index []int) bool {
	for n := 1; n < len(index); n++ {
		around := t.FieldByIndex(index[:n])
		if around.Type.Kind() != reflect.Struct || around.Tag.Get("json") != "" || formOf(around.Type) != record {
			return false
		}
	}
	return true
}
