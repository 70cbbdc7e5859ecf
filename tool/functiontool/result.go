// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/session"
)

// resultKey is where a result that is no object is found.
const resultKey = "result"

// result turns what a handler returns into what a model is given.
type result struct {
	declared *jsonschema.Schema   // for the model; nil says nothing
	resolved *jsonschema.Resolved // of the schema in the config; nil checks nothing
}

func newResult(schema *jsonschema.Schema, t reflect.Type) (*result, error) {
	if schema != nil {
		resolved, err := schema.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("schema of the result: %w", err)
		}
		return &result{declared: wrap(schema), resolved: resolved}, nil
	}
	if t.Kind() == reflect.Interface {
		return &result{}, nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	inferred, err := jsonschema.ForType(t, nil)
	if err != nil {
		// Not everything that JSON can hold can be described, a tree for one;
		// the model does without.
		return &result{}, nil
	}
	return &result{declared: wrap(inferred)}, nil
}

// wrap is the schema of what the model is given.
func wrap(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Type == "object" {
		return s
	}
	return &jsonschema.Schema{
		Type: "object", Required: []string{resultKey},
		Properties: map[string]*jsonschema.Schema{resultKey: s},
	}
}

// of returns a result as a JSON object; nil for null.
func (r *result) of(out any) (map[string]any, error) {
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	v, err := session.PlainJSON(text)
	if err != nil {
		return nil, err
	}
	if r.resolved != nil {
		if err := r.resolved.Validate(v); err != nil {
			return nil, err
		}
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	default:
		return map[string]any{resultKey: v}, nil
	}
}
