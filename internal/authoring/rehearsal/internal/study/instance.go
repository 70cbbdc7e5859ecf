// SPDX-License-Identifier: Apache-2.0

package study

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/genai"
)

// instance is a value that fits a schema. Its texts are the given one, as far as the schema lets
// them.
func instance(s *genai.Schema, text string) any {
	if s == nil {
		return text
	}
	if len(s.Enum) > 0 {
		return fit(s, s.Enum[0], text)
	}
	switch typeOf(s) {
	case genai.TypeObject:
		m := make(map[string]any, len(s.Properties))
		for name, sub := range s.Properties {
			m[name] = instance(sub, text)
		}
		for _, name := range s.Required {
			if _, there := m[name]; !there {
				m[name] = text
			}
		}
		for n := 1; s.MinProperties != nil && int64(len(m)) < *s.MinProperties && n < 1<<10; n++ {
			m[fmt.Sprintf("more_%d", n)] = text
		}
		if s.MaxProperties != nil {
			leaveOut(m, s.Required, *s.MaxProperties)
		}
		return m
	case genai.TypeArray:
		n := int64(1)
		if s.MinItems != nil {
			n = max(n, *s.MinItems)
		}
		if s.MaxItems != nil {
			n = min(n, *s.MaxItems)
		}
		all := make([]any, min(n, 1<<10))
		for i := range all {
			all[i] = instance(s.Items, text)
		}
		return all
	case genai.TypeNumber, genai.TypeInteger:
		return within(s, 5)
	case genai.TypeBoolean:
		return false
	case genai.TypeNULL:
		return nil
	case genai.TypeString:
		return spell(s, text)
	}
	for _, sub := range s.AnyOf {
		if typeOf(sub) != genai.TypeNULL {
			return instance(sub, text)
		}
	}
	return text
}

// typeOf is the type of a schema, in upper case.
func typeOf(s *genai.Schema) genai.Type { return genai.Type(strings.ToUpper(string(s.Type))) }

// leaveOut removes optional fields from an object that has too many.
func leaveOut(m map[string]any, required []string, most int64) {
	for _, name := range slices.Backward(SortedKeys(m)) {
		if int64(len(m)) > most && !slices.Contains(required, name) {
			delete(m, name)
		}
	}
}

// fit changes a value so that it fits a schema. A value of another type is replaced.
func fit(s *genai.Schema, v any, text string) any {
	if typ := typeOf(s); len(s.Enum) > 0 {
		return chosen(s, typ, v)
	}
	switch typ := typeOf(s); typ {
	case genai.TypeNumber, genai.TypeInteger:
		if f, ok := asFloat(v); ok {
			return within(s, f)
		}
	case genai.TypeString:
		switch x := v.(type) {
		case string:
			return spell(s, x)
		case float64:
			return spell(s, Decimal(x))
		}
	case genai.TypeBoolean:
		if b, ok := v.(bool); ok {
			return b
		}
	case genai.TypeArray:
		if all, ok := v.([]any); ok && (s.MinItems == nil || int64(len(all)) >= *s.MinItems) &&
			(s.MaxItems == nil || int64(len(all)) <= *s.MaxItems) {
			return v
		}
	case genai.TypeObject:
		if _, ok := v.(map[string]any); ok {
			return v
		}
	default:
		if len(s.AnyOf) == 0 {
			return v
		}
		for _, sub := range s.AnyOf {
			if got := fit(sub, v, text); got == v {
				return got
			}
		}
	}
	return instance(s, text)
}

// chosen is the value if the enum has it, else the first one of the enum.
func chosen(s *genai.Schema, typ genai.Type, v any) any {
	word := fmt.Sprint(v)
	if f, ok := v.(float64); ok {
		word = Decimal(f)
	}
	if !slices.Contains(s.Enum, word) {
		word = s.Enum[0]
	}
	switch typ {
	case genai.TypeNumber, genai.TypeInteger:
		if f, err := strconv.ParseFloat(word, 64); err == nil {
			return f
		}
	case genai.TypeBoolean:
		return word == "true"
	}
	return word
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// within is the nearest number that the schema allows.
func within(s *genai.Schema, x float64) float64 {
	integer := typeOf(s) == genai.TypeInteger
	if integer {
		x = math.Round(x)
	}
	if s.Minimum != nil && x < *s.Minimum {
		if x = *s.Minimum; integer {
			x = math.Ceil(x)
		}
	}
	if s.Maximum != nil && x > *s.Maximum {
		if x = *s.Maximum; integer {
			x = math.Floor(x)
		}
	}
	return x
}

// formats are texts by the format of a schema.
var formats = map[string]string{
	"date-time": "2020-01-01T00:00:00Z", "date": "2020-01-01", "time": "00:00:00Z", "duration": "PT1M",
	"email": "somebody@example.org", "uri": "https://example.org/", "url": "https://example.org/", "uri-reference": "/", "hostname": "example.org",
	"uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
}

// spell is a text that fits a schema: the given one if possible.
func spell(s *genai.Schema, text string) string {
	if s.Pattern != "" {
		re, err := regexp.Compile(s.Pattern)
		if err != nil || re.MatchString(text) && fits(s, text) {
			return long(s, text)
		}
		if own := Matching(s.Pattern, lengthOf(s)); re.MatchString(own) {
			return own
		}
		return long(s, text)
	}
	if own, ok := formats[strings.ToLower(s.Format)]; ok {
		return own
	}
	return long(s, text)
}

func lengthOf(s *genai.Schema) int {
	if s.MinLength == nil {
		return 0
	}
	return int(min(*s.MinLength, 1<<10))
}

func fits(s *genai.Schema, text string) bool { return long(s, text) == text }

// long cuts or lengthens a text to the limits of a schema.
func long(s *genai.Schema, x string) string {
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
