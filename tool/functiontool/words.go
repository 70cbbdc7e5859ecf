// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// is reports whether a value is of a JSON type.
func is(v any, kind string) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	default:
		n, ok := number(v)
		return ok && (kind == "number" || kind == "integer" && n == math.Trunc(n))
	}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// same reports whether two values are one in JSON: the number of a schema may be
// any of Go's.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

// expectation says in words what a schema asks for.
func expectation(s *jsonschema.Schema) string {
	if s.Enum != nil {
		all := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			text, _ := json.Marshal(e)
			all[i] = string(text)
		}
		return "one of " + strings.Join(all, ", ")
	}
	var names []string
	for _, t := range types(s) {
		switch t {
		case "null": // nobody needs to be told to send it
		case "array", "object", "integer":
			names = append(names, "an "+t)
		default:
			names = append(names, "a "+t)
		}
	}
	text := strings.Join(names, " or ")
	if text == "" {
		text = "a value"
	}
	if s.Minimum != nil {
		text += " of at least " + strconv.FormatFloat(*s.Minimum, 'g', -1, 64)
	}
	if s.Maximum != nil {
		if s.Minimum != nil {
			text += " and"
		} else {
			text += " of"
		}
		text += " at most " + strconv.FormatFloat(*s.Maximum, 'g', -1, 64)
	}
	return text
}

// describe says in words what was sent instead.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return fmt.Sprintf("the string %q", brief.Clip(v, 60))
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a %T", v)
	}
	return "the number " + string(text)
}
