// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// What the parser says of a value that does not fit, and of a field that does not exist.
var (
	misfit  = lazyregexp.New("^cannot construct !!(\\w+)(?: `(?s:(.*))`)? into (.+)$")
	unknown = lazyregexp.New(`^field (?s:(.+)) not found in type (.+)$`)
)

// shapeNames has the words for the parser's tags, and shapes has what to write where a Go type is filled.
var (
	shapeNames = map[string]string{
		"seq": "a list", "map": "a map", "str": "a text", "int": "a whole number", "float": "a number with a fraction",
		"bool": "true or false", "null": "null",
	}
	shapes = []struct {
		suffix, write string
		fields        []string
	}{
		{"[]libyaml.Node", "a list, such as answers: [{text: Hello}]", nil},
		{"[]scripted.Call", "a list, such as calls: [{name: lookup, args: {id: 7}}]", nil},
		{"[]string", "a list of texts", nil},
		{"scripted.Answer", "a map, such as {text: Hello}", []string{
			"agent", "turn", "match", "match_request", "repeat", "thought", "text", "json", "calls", "finish", "refusal", "usage", "delay",
			"pace", "chunks", "error", "cut", "garbage", "hang"}},
		{"scripted.Call", "a map, such as {name: lookup, args: {id: 7}}", []string{"id", "name", "args", "raw"}},
		{"scripted.Usage", "a map, such as {prompt: 100, output: 20}", []string{"prompt", "cached", "output", "thoughts"}},
		{"scripted.Failure", "a map, such as {status: 503}", []string{"status", "code", "message", "retry_after"}},
		{"map[string]interface {}", "a map", nil},
		{"Duration", "a time, such as 2s", nil},
		{"string", "a text", nil},
		{"bool", "true or false", nil},
		{"int", "a whole number", nil},
		{"int32", "a whole number", nil},
		{"}", "a map, such as {answers: [{text: Hello}]}", []string{"name", "answers", "repeat_last"}},
	}
)

// explain says in words of the script what the parser says in Go's types. Another message stays as it is.
func explain(msg string) string {
	if m := misfit().FindStringSubmatch(msg); m != nil {
		for _, s := range shapes {
			if strings.HasSuffix(m[3], s.suffix) && shapeNames[m[1]] != "" {
				value := ""
				if m[2] != "" {
					value = ": " + brief.Line(m[2], 40)
				}
				return fmt.Sprintf("here stands %s%s; write %s", shapeNames[m[1]], value, s.write)
			}
		}
	}
	if m := unknown().FindStringSubmatch(msg); m != nil {
		for _, s := range shapes {
			if strings.HasSuffix(m[2], s.suffix) {
				hint := "; there are " + strings.Join(s.fields, ", ")
				if near := suggest.Nearest(m[1], s.fields); near != "" {
					hint = fmt.Sprintf("; did you mean %q?", near)
				}
				return fmt.Sprintf("unknown field %q", brief.Clip(m[1], 40)) + hint
			}
		}
	}
	return msg
}
