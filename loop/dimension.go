// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/refrain-dev/refrain/expr"
)

// Dimension is one part of a score.
type Dimension struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// parts reads a value of state as a score with its dimensions.
func (s *Score) parts(v any) (reading, error) {
	dims, err := s.dimensions(v)
	if err != nil {
		return reading{}, err
	}
	score, err := s.number(v)
	if err != nil && len(dims) > 0 && s.Label == "" {
		score, err = mean(dims), nil
	}
	if err == nil {
		score, err = finite(score)
	}
	return reading{score, dims}, err
}

func mean(dims []Dimension) float64 {
	sum := 0.0
	for _, d := range dims {
		sum += d.Value
	}
	return tidy(sum / float64(len(dims)))
}

// dimensions finds the parts in a value, sorted by name if the plan names none.
func (s *Score) dimensions(v any) ([]Dimension, error) {
	object := objectOf(v)
	held, _ := object["dimensions"].(map[string]any)
	if len(s.Dimensions) == 0 {
		var dims []Dimension
		if len(held) > 0 {
			for _, name := range slices.Sorted(maps.Keys(held)) {
				if f, err := plain(held[name]); err == nil && len(dims) < maxDims {
					dims = append(dims, Dimension{clip(name), f})
				}
			}
		}
		if dims == nil && s.DimensionTarget != nil {
			return nil, lacks(v, object, `object "dimensions"`)
		}
		return dims, nil
	}
	dims := make([]Dimension, 0, len(s.Dimensions))
	for _, name := range s.Dimensions {
		d, ok := held[name]
		if !ok {
			d, ok = object[name]
		}
		if !ok {
			return nil, lacks(v, object, fmt.Sprintf("dimension %q", name))
		}
		f, err := plain(d)
		if err != nil {
			return nil, fmt.Errorf("dimension %q: %w", name, err)
		}
		dims = append(dims, Dimension{name, f})
	}
	return dims, nil
}

// lacks says that a value has not a part of the score, what was said instead, and how to get it. The
// object is the JSON in the value, if it has any.
func lacks(v any, object map[string]any, part string) error {
	if object == nil {
		return fmt.Errorf("%s is no JSON, so it has no %s; give the step an output_schema with it", said(v), part)
	}
	return fmt.Errorf("no %s in %s; give the step an output_schema with it", part, said(v))
}

// said is the beginning of a value, as an error quotes it.
func said(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(excerpt(text))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return kind(v)
	}
	return excerpt(string(b))
}

// objectOf is the JSON object that a value is, or that a text holds.
func objectOf(v any) map[string]any {
	switch x := v.(type) {
	case map[string]any:
		return x
	case string:
		if got, err := expr.JSON(x); err == nil {
			m, _ := got.(map[string]any)
			return m
		}
	case nil, bool, float64, int, int64, json.Number, []any:
	default:
		if b, err := json.Marshal(v); err == nil {
			got, _ := expr.JSON(string(b))
			m, _ := got.(map[string]any)
			return m
		}
	}
	return nil
}

// plain reads a number without looking deeper.
func plain(v any) (float64, error) {
	switch v.(type) {
	case map[string]any, []any:
		return 0, fmt.Errorf("no number but a %s", kind(v))
	}
	f, err := new(Score).number(v)
	if err != nil {
		return 0, err
	}
	return finite(f)
}
