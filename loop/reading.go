// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
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
	return roundDecimals(sum / float64(len(dims)))
}

// dimensions returns the dimensions in a value. It sorts them by name if the plan names none.
func (s *Score) dimensions(v any) ([]Dimension, error) {
	object := objectOf(v)
	held, _ := object["dimensions"].(map[string]any)
	if len(s.Dimensions) == 0 {
		var dims []Dimension
		if len(held) > 0 {
			for _, name := range slices.Sorted(maps.Keys(held)) {
				if f, err := plain(held[name]); err == nil && len(dims) < maxDims {
					dims = append(dims, Dimension{truncate(name), f})
				}
			}
		}
		if dims == nil && s.DimensionTarget != nil {
			return nil, missingPart(v, object, `object "dimensions"`)
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
			return nil, missingPart(v, object, fmt.Sprintf("dimension %q", name))
		}
		f, err := plain(d)
		if err != nil {
			return nil, fmt.Errorf("dimension %q: %w", name, err)
		}
		dims = append(dims, Dimension{name, f})
	}
	return dims, nil
}

// missingPart returns an error for a value that lacks a part of the score. The error quotes the value and says how to get the
// part. object is the JSON object in the value; nil if there is none.
func missingPart(v any, object map[string]any, part string) error {
	if object == nil {
		return fmt.Errorf("%s is no JSON, so it has no %s; give the step an output_schema with it", valueText(v), part)
	}
	return fmt.Errorf("no %s in %s; give the step an output_schema with it", part, valueText(v))
}

// valueText returns the beginning of a value, for an error message.
func valueText(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(excerpt(text))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return kind(v)
	}
	return excerpt(string(b))
}

// objectOf returns the JSON object that a value is or, if the value is text, contains. It returns nil if there is none.
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

// plain reads a value as a number. Unlike number, it refuses maps and lists.
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

// maxScoreText is the number of bytes at the beginning of a judge's text that scoreInText reads.
const maxScoreText = 16 << 10

// scoreInText finds the score in a judge's text. It takes, in this order: the number after "final score" (or overall, or
// total), the number after "score" at the beginning of a line, the number after "score" anywhere else, the number that
// the text begins with, and a number in a form like 6/10 or 6 out of 10. A count that begins the text, as in "3
// issues", is used only if no other form is found. The number of a list item, as in "1. Fix the intro", is not a score.
// If a form occurs more than once, all its numbers must be equal.
//
// It reads only the first maxScoreText bytes, because a score does not come later and the cost of each search grows with
// the text.
func scoreInText(text string) (float64, error) {
	text = text[:min(len(text), maxScoreText)]
	lower := strings.ToLower(text)
	tiers := [3][]float64{}
	var labels [][]int
	if slices.ContainsFunc(labelParts, func(part string) bool { return strings.Contains(lower, part) }) {
		labels = labelled().FindAllStringSubmatchIndex(text, -1)
	}
	for _, m := range labels {
		tier := 2
		switch line := strings.TrimLeft(text[strings.LastIndexByte(text[:m[0]], '\n')+1:m[0]], decoration); {
		case m[2] >= 0:
			tier = 0
		case line == "":
			tier = 1
		}
		if f, err := expr.Number(text[m[4]:]); err == nil {
			tiers[tier] = append(tiers[tier], f)
		}
	}
	for _, found := range tiers {
		if len(found) > 0 {
			return soleNumber(text, found)
		}
	}
	bare := strings.TrimLeft(text, decoration)
	begins := bare != "" && strings.ContainsRune("+-.0123456789", rune(bare[0])) && !listed().MatchString(bare)
	if begins && !counts().MatchString(bare) {
		return expr.Number(bare)
	}
	var found []float64
	var parts [][]int
	if strings.Contains(lower, "/") || strings.Contains(lower, "out of") {
		parts = fractions().FindAllStringIndex(text, -1)
	}
	for _, m := range parts {
		if m[1] < len(text) && text[m[1]] == '/' || m[0] > 0 && text[m[0]-1] == '/' { // part of a date
			continue
		}
		if f, err := expr.Number(text[m[0]:]); err == nil {
			found = append(found, f)
		}
	}
	switch {
	case len(found) > 0:
		return soleNumber(text, found)
	case begins:
		return expr.Number(bare)
	}
	return 0, fmt.Errorf("%q has neither a number nor JSON with one; %s", excerpt(text), pinned)
}

// soleNumber returns the number in found. It returns an error if found has different numbers.
func soleNumber(text string, found []float64) (float64, error) {
	for _, f := range found {
		if f != found[0] {
			return 0, fmt.Errorf("%q has both %s and %s; %s", excerpt(text), num(found[0]), num(f), pinned)
		}
	}
	return finite(found[0])
}

const (
	decoration = " \t\r\n*_#>`\"'|•"
	pinned     = "set label to the word before the number, or give the step an output_schema"
)

var (
	labelled = lazyregexp.New(`(?i)\b(?:(overall|final|total)\s+)?(?:score|rating|grade|nota|pontuação)[\s*_"'` +
		"`" + `]*(?:[:=]|is|of)[\s*_"'` + "`" + `]*([-+−]?[.]?[0-9])`)
	fractions = lazyregexp.New(`(?i)[-+−]?[0-9]+(?:[.,][0-9]+)?\s*(?:/|out of)\s*(?:5|10|20|100)\b`)
	// labelParts are parts of the words in labelled. A text with a label contains at least one of them in lower case.
	// Most long texts contain none, and searching for these parts is a hundred times faster than matching the
	// expression.
	labelParts = []string{"core", "ating", "grade", "nota", "pontua"}

	listed = lazyregexp.New(`^[0-9]+[.)]\s+\S`)
	counts = lazyregexp.New(`^[-+−]?[0-9.,]+\s+[\pL]`)
)

// excerpt returns the beginning of a text, on one line.
func excerpt(text string) string { return brief.Line(text, 79) }
