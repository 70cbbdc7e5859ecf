// SPDX-License-Identifier: Apache-2.0

// Package canonical writes JSON in the one form that seals are computed from: the JSON of
// [json.Marshal] with the fields of all objects sorted by their names. Of fields with the same
// name it keeps the last. Numbers keep their digits.
//
//	text, err := canonical.Append(nil, []byte(`{"b":1,"a":"<"}`)) // {"a":"\u003c","b":1}
package canonical

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Append appends the canonical form of src, which is one JSON value. It fails if src is not JSON.
func Append(dst, src []byte) ([]byte, error) {
	if isCanonical(src) && json.Valid(src) {
		return append(dst, src...), nil
	}
	compact, err := json.Marshal(json.RawMessage(src))
	if err != nil {
		return dst, err
	}
	return sort(dst, compact)
}

// AppendJSON appends the canonical form of a value's JSON.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	w := Writer{Buf: slices.Grow(dst, 256)}
	if err := w.Value(v); err != nil {
		return dst, err
	}
	return w.Buf, nil
}

// Same reports whether two values have the same JSON. A value that has none is the same as no other.
func Same(a, b any) bool {
	textA, errA := AppendJSON(nil, a)
	textB, errB := AppendJSON(nil, b)
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}

// isCanonical reports whether valid JSON is in its canonical form. It returns false for some that is, such as JSON with a
// \u escape: sort then writes the same text.
func isCanonical(src []byte) bool {
	if !utf8.Valid(src) || bytes.ContainsAny(src, "<>&\u2028\u2029") { // the canonical form escapes them
		return false
	}
	var few [16][]byte // on the stack
	names := few[:0]   // for each enclosing object or list, the last name in it
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case ' ', '\t', '\r', '\n':
			return false
		case '{', '[':
			names = append(names, nil)
		case '}', ']':
			if len(names) == 0 {
				return false
			}
			names = names[:len(names)-1]
		case '"':
			from, escaped := i+1, false
			for i = from; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i, escaped = i+1, true
					if i == len(src) || src[i] == 'u' || src[i] == '/' {
						return false
					}
				}
			}
			if i+1 < len(src) && src[i+1] == ':' {
				name, top := src[from:i], len(names)-1
				if escaped || top < 0 || names[top] != nil && bytes.Compare(names[top], name) >= 0 {
					return false
				}
				names[top] = name
			}
		}
	}
	return true
}

// sort decodes src and encodes the values.
func sort(dst, src []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return dst, err
	}
	text, err := json.Marshal(plain)
	return append(dst, text...), err
}
