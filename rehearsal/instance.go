// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/genai"
)

// instance is a value that fits a schema. A text in it is the words, as far as
// the schema lets it; one with a pattern may not fit.
func instance(s *genai.Schema, words string) any {
	if s == nil {
		return words
	}
	if len(s.Enum) > 0 {
		return fit(s, s.Enum[0])
	}
	switch strings.ToUpper(string(s.Type)) {
	case string(genai.TypeObject):
		m := make(map[string]any, len(s.Properties))
		for name, sub := range s.Properties {
			m[name] = instance(sub, words)
		}
		return m
	case string(genai.TypeArray):
		n := int64(1)
		if s.MinItems != nil {
			n = max(n, *s.MinItems)
		}
		if s.MaxItems != nil {
			n = min(n, *s.MaxItems)
		}
		list := make([]any, n)
		for i := range list {
			list[i] = instance(s.Items, words)
		}
		return list
	case string(genai.TypeNumber), string(genai.TypeInteger):
		return fit(s, 5.0)
	case string(genai.TypeBoolean):
		return false
	case string(genai.TypeNULL):
		return nil
	}
	if len(s.AnyOf) > 0 {
		return instance(s.AnyOf[0], words)
	}
	return fit(s, words)
}

// fit brings a number or a text within the bounds of its schema.
func fit(s *genai.Schema, v any) any {
	number := strings.EqualFold(string(s.Type), string(genai.TypeNumber))
	integer := strings.EqualFold(string(s.Type), string(genai.TypeInteger))
	switch x := v.(type) {
	case float64:
		if integer {
			x = math.Round(x)
		}
		if s.Minimum != nil {
			x = max(x, *s.Minimum)
		}
		if s.Maximum != nil {
			x = min(x, *s.Maximum)
		}
		return x
	case string:
		if number || integer {
			if f, ok := parseNumber(x); ok {
				return f
			}
		}
		if n := s.MaxLength; n != nil && int64(utf8.RuneCountInString(x)) > *n {
			x = string([]rune(x)[:*n])
		}
		if n := s.MinLength; n != nil {
			if lack := *n - int64(utf8.RuneCountInString(x)); lack > 0 {
				x += strings.Repeat(".", int(min(lack, 1<<20)))
			}
		}
		return x
	}
	return v
}

func parseNumber(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}
