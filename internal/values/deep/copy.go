// SPDX-License-Identifier: Apache-2.0

// Package deep copies values with all that is in them.
//
//	own := deep.Copy(state) // the caller may edit its lists and objects
package deep

import (
	"reflect"
	"slices"
)

// Copy returns a copy of v. The structs that pointers in it lead to, lists and maps are copied. Bytes, functions and
// unexported fields are shared. So are pointers of the given types, and the value in an interface, unless the interface
// is an any with a list or a map.
func Copy[T any](v T, shared ...reflect.Type) T {
	if state, ok := any(v).(map[string]any); ok {
		own, _ := plain(state, 0).(T)
		return own
	}
	own, _ := copyValue(reflect.ValueOf(&v).Elem(), shared, 0).Interface().(T)
	return own
}

// deepest limits the copy of a value that contains itself: what is deeper is shared.
const deepest = 1000

func copyValue(v reflect.Value, shared []reflect.Type, depth int) reflect.Value {
	t := v.Type()
	if depth++; depth > deepest {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || slices.Contains(shared, t) {
			return v
		}
		own := reflect.New(t.Elem())
		own.Elem().Set(copyValue(v.Elem(), shared, depth))
		return own
	case reflect.Slice:
		if v.IsNil() || t.Elem().Kind() == reflect.Uint8 {
			return v
		}
		own := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			own.Index(i).Set(copyValue(v.Index(i), shared, depth))
		}
		return own
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		own := reflect.MakeMapWithSize(t, v.Len())
		for key, value := range v.Seq2() {
			own.SetMapIndex(key, copyValue(value, shared, depth))
		}
		return own
	case reflect.Struct:
		own := reflect.New(t).Elem()
		own.Set(v)
		for _, field := range own.Fields() {
			if field.CanSet() {
				field.Set(copyValue(field, shared, depth))
			}
		}
		return own
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return v
		}
		switch elem := v.Interface().(type) {
		case map[string]any, []any:
			return reflect.ValueOf(plain(elem, depth))
		}
		if kind := v.Elem().Kind(); kind == reflect.Map || kind == reflect.Slice {
			return copyValue(v.Elem(), shared, depth)
		}
	}
	return v
}

// plain copies the lists and the objects of JSON, which states are made of, without reflection.
func plain(v any, depth int) any {
	if depth++; depth > deepest {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		own := make(map[string]any, len(v))
		for key, value := range v {
			own[key] = plain(value, depth)
		}
		return own
	case []any:
		if v == nil {
			return v
		}
		own := make([]any, len(v))
		for i, value := range v {
			own[i] = plain(value, depth)
		}
		return own
	case nil, string, bool, float64, int64:
		return v
	}
	return copyValue(reflect.ValueOf(&v).Elem(), nil, depth).Interface()
}
