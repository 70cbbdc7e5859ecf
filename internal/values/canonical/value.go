// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxNested is how deep the writer goes before it leaves the rest to encoding/json, which reports a value that contains itself.
const maxNested = 500

// exact is where float64 begins to leave out integers.
const exact = 1 << 53

// Writer appends values. Its zero value is ready to use.
type Writer struct {
	// Buf is the JSON so far.
	Buf []byte
	// Other is true if a value was written that may be a different one after it is read back: an integer that a float64
	// cannot hold, a text that is not UTF-8, or a value of a type that JSON does not have.
	Other bool
	// KeepRaw keeps the order and the escapes of the JSON in a struct's field of the type json.RawMessage.
	KeepRaw bool
}

// Value appends a value. It fails for a value that has no JSON.
func (w *Writer) Value(v any) error { return w.value(v, 0) }

// Record appends a struct that is read back into a struct of its type.
func (w *Writer) Record(v any) error { return w.reflect(reflect.ValueOf(v), 0) }

func (w *Writer) value(v any, depth int) error {
	switch x := v.(type) {
	case nil:
		w.Buf = append(w.Buf, "null"...)
	case bool:
		w.Buf = strconv.AppendBool(w.Buf, x)
	case string:
		w.text(x)
	case float64:
		return w.float(x)
	case int:
		w.integer(int64(x))
	case int64:
		w.integer(x)
	case []any:
		return w.list(reflect.ValueOf(x), depth)
	case map[string]any:
		return w.object(x, depth)
	default:
		keeps := w.KeepRaw
		w.Other, w.KeepRaw = true, false // it is read back as an object
		err := w.reflect(reflect.ValueOf(v), depth)
		w.KeepRaw = keeps
		return err
	}
	return nil
}

func (w *Writer) text(s string) {
	from := len(w.Buf)
	w.Buf = append(w.Buf, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			w.Buf = append(w.Buf, '\\', 'n')
		case c == '"' || c == '\\':
			w.Buf = append(w.Buf, '\\', c)
		case c < ' ' || c >= utf8.RuneSelf || c == '<' || c == '>' || c == '&':
			if !utf8.ValidString(s) {
				w.Other, s = true, string([]rune(s))
			}
			data, _ := json.Marshal(s) // a text has JSON
			w.Buf = append(w.Buf[:from], data...)
			return
		default:
			w.Buf = append(w.Buf, c)
		}
	}
	w.Buf = append(w.Buf, '"')
}

func (w *Writer) float(f float64) error {
	if i := int64(f); float64(i) == f && -exact < i && i < exact && (i != 0 || !math.Signbit(f)) {
		w.Buf = strconv.AppendInt(w.Buf, i, 10)
		return nil
	}
	data, err := json.Marshal(f)
	w.Buf = append(w.Buf, data...)
	return err
}

func (w *Writer) integer(i int64) {
	w.Other = w.Other || i < -exact || i > exact
	w.Buf = strconv.AppendInt(w.Buf, i, 10)
}

func (w *Writer) list(list reflect.Value, depth int) error {
	if list.IsNil() {
		w.Buf = append(w.Buf, "null"...)
		return nil
	}
	if depth > maxNested {
		return w.json(list)
	}
	w.Buf = append(w.Buf, '[')
	for i := range list.Len() {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		if err := w.reflect(list.Index(i), depth+1); err != nil {
			return err
		}
	}
	w.Buf = append(w.Buf, ']')
	return nil
}

func (w *Writer) object(m map[string]any, depth int) error {
	if m == nil {
		w.Buf = append(w.Buf, "null"...)
		return nil
	}
	if depth > maxNested {
		return w.json(reflect.ValueOf(m))
	}
	var few [16]string // on the stack
	keys := few[:0]
	for key := range m {
		if !utf8.ValidString(key) { // several may become one
			return w.json(reflect.ValueOf(m))
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	w.Buf = append(w.Buf, '{')
	for i, key := range keys {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.text(key)
		w.Buf = append(w.Buf, ':')
		if err := w.value(m[key], depth+1); err != nil {
			return err
		}
	}
	w.Buf = append(w.Buf, '}')
	return nil
}

// json appends what encoding/json writes for a value, sorted.
func (w *Writer) json(v reflect.Value) error {
	w.Other = true
	if v.CanAddr() {
		v = v.Addr() // its method may have a pointer as its receiver
	}
	data, err := json.Marshal(v.Interface())
	if err == nil {
		w.Buf, err = Append(w.Buf, data)
	}
	return err
}

// reflect appends a value whose type says how it is written.
func (w *Writer) reflect(v reflect.Value, depth int) error {
	if v.Kind() == reflect.Interface {
		return w.value(v.Interface(), depth)
	}
	l := layoutOf(v.Type())
	switch l.form {
	case boolean:
		w.Buf = strconv.AppendBool(w.Buf, v.Bool())
	case text:
		w.text(v.String())
	case integer:
		w.integer(v.Int())
	case float:
		return w.float(v.Float())
	case moment:
		if v.CanAddr() {
			return w.time(v.Addr().Interface().(*time.Time)) // which allocates nothing
		}
		return w.time(new(v.Interface().(time.Time)))
	case raw:
		return w.raw(v.Bytes())
	case values:
		return w.object(v.Interface().(map[string]any), depth)
	case list:
		return w.list(v, depth)
	case pointer:
		if v.IsNil() {
			w.Buf = append(w.Buf, "null"...)
			return nil
		}
		if depth > maxNested {
			return w.json(v)
		}
		return w.reflect(v.Elem(), depth+1)
	case record:
		return w.record(v, l.fields, depth)
	default:
		return w.json(v)
	}
	return nil
}

func (w *Writer) raw(data []byte) (err error) {
	switch {
	case data == nil:
		w.Buf = append(w.Buf, "null"...)
	case w.KeepRaw && !isCanonical(data):
		data, err = json.Marshal(json.RawMessage(data)) // without spaces
		w.Buf = append(w.Buf, data...)
	default:
		w.Buf, err = Append(w.Buf, data)
	}
	return err
}

func (w *Writer) time(t *time.Time) error {
	data, err := t.AppendText(append(w.Buf, '"')) // the format of its JSON
	if err == nil {
		w.Buf = append(data, '"')
	}
	return err
}

func (w *Writer) record(v reflect.Value, fields []field, depth int) error {
	w.Buf = append(w.Buf, '{')
	first := true
	for i := range fields {
		f := &fields[i]
		value := v.FieldByIndex(f.index)
		if f.omitEmpty && isEmpty(value) || f.omitZero && value.IsZero() {
			continue
		}
		if !first {
			w.Buf = append(w.Buf, ',')
		}
		first = false
		w.Buf = append(w.Buf, f.quoted...)
		if err := w.reflect(value, depth+1); err != nil {
			return err
		}
	}
	w.Buf = append(w.Buf, '}')
	return nil
}

// isEmpty reports whether encoding/json leaves out a value with the option omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
