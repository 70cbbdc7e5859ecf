// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// checker collects all that is wrong with a value: the validator stops at the
// first problem, and a model that is told one at a time needs a turn for each.
// It looks at the keywords that models get wrong and leaves the others.
type checker struct {
	problems []string
}

func (c *checker) add(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	c.problems = append(c.problems, text)
}

func (c *checker) value(s *jsonschema.Schema, v any, path string) {
	if all := types(s); len(all) > 0 && !slices.ContainsFunc(all, func(t string) bool { return is(v, t) }) {
		c.add(path, "expected %s, got %s", expectation(s), describe(v))
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return same(e, v) }) {
		c.add(path, "expected %s, got %s", expectation(s), describe(v))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(s, v, path)
	case []any:
		for i, item := range v {
			if s.Items != nil {
				c.value(s.Items, item, path+"["+strconv.Itoa(i)+"]")
			}
		}
	default:
		c.limits(s, v, path)
	}
}

func (c *checker) object(s *jsonschema.Schema, m map[string]any, path string) {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			what := "a value"
			if p := s.Properties[name]; p != nil {
				what = expectation(p)
			}
			c.add(join(path, name), "is missing, expected %s", what)
		}
	}
	if isClosed(s) {
		c.unknown(s, m, path)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p := s.Properties[name]
		if p == nil {
			if p = s.AdditionalProperties; p == nil || isClosed(s) {
				continue
			}
		}
		if m[name] == nil && !admitsNull(p) && !slices.Contains(s.Required, name) {
			delete(m, name) // models say null where they mean nothing
			continue
		}
		c.value(p, m[name], join(path, name))
	}
}

// unknown complains about properties that the schema does not name.
func (c *checker) unknown(s *jsonschema.Schema, m map[string]any, path string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if s.Properties[name] != nil || len(s.PatternProperties) > 0 {
			continue
		}
		known := slices.Sorted(maps.Keys(s.Properties))
		if len(known) == 0 {
			c.add(join(path, name), "is unknown, no arguments are taken")
		} else {
			c.add(join(path, name), "is unknown, expected only %s", strings.Join(known, ", "))
		}
	}
}

func (c *checker) limits(s *jsonschema.Schema, v any, path string) {
	n, ok := number(v)
	if !ok {
		return
	}
	low, high := math.Inf(-1), math.Inf(1)
	if s.Minimum != nil {
		low = *s.Minimum
	}
	if s.Maximum != nil {
		high = *s.Maximum
	}
	if n < low || n > high {
		c.add(path, "expected %s, got %s", expectation(s), describe(v))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
