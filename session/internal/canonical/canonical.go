// SPDX-License-Identifier: Apache-2.0

// Package canonical writes JSON in its one form that seals are made over: the JSON of
// [json.Marshal] with the fields of all objects sorted by their names. Of fields that have
// one name it keeps the last. Numbers keep their digits.
//
//	text, err := canonical.Append(nil, []byte(`{"b":1,"a":"<"}`)) // {"a":"\u003c","b":1}
package canonical

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// escaped is how jsontext writes the canonical form of what it reads.
var escaped = []jsontext.Options{jsontext.ReorderRawObjects(true), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true)}

// Append appends the canonical form of src, which is one JSON value. It fails for what is
// no JSON.
func Append(dst, src []byte) ([]byte, error) {
	if sortsAlike(src) {
		out, err := jsontext.AppendFormat(dst, src, escaped...)
		if err == nil {
			return out, nil
		}
	}
	compact, err := json.Marshal(json.RawMessage(src))
	if err != nil {
		return dst, err
	}
	return reread(dst, compact)
}

// sortsAlike reports whether jsontext sorts the names in src as we do: it compares them by UTF-16, in
// which a rune of two units comes before U+E000. Such runes begin with a byte of 0xEE or more, or are escaped.
func sortsAlike(src []byte) bool {
	for i, b := range src {
		if b >= 0xee || b == '\\' && i+1 < len(src) && src[i+1] == 'u' {
			return false
		}
	}
	return true
}

// AppendJSON appends the canonical form of a value's JSON.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return dst, err
	}
	return Append(dst, text)
}

// reread decodes src and encodes the values. It is the slow way, for what jsontext refuses or sorts
// in another way, such as fields that have one name.
func reread(dst, src []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return dst, err
	}
	text, err := json.Marshal(plain)
	return append(dst, text...), err
}
