// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// maxSpoken is how many bytes of a judge's words are looked at.
const maxSpoken = 16 << 10

// spoken finds the score in what a judge has said in words. It is the number that
// the word score is followed by, be it the final one, one on a line of its own, or
// the only one; else the number that the text begins with; else that of 6/10 or 6
// out of 10. The number of a list, as in "1. Fix the intro", is none.
//
// Of a long text its beginning counts: nobody grades in more words, and each look
// costs as much as the text is long.
func spoken(text string) (float64, error) {
	text = text[:min(len(text), maxSpoken)]
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
			return only(text, found)
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
		if m[1] < len(text) && text[m[1]] == '/' || m[0] > 0 && text[m[0]-1] == '/' { // a date
			continue
		}
		if f, err := expr.Number(text[m[0]:]); err == nil {
			found = append(found, f)
		}
	}
	switch {
	case len(found) > 0:
		return only(text, found)
	case begins:
		return expr.Number(bare)
	}
	return 0, fmt.Errorf("%q has neither a number nor JSON with one; %s", excerpt(text), pinned)
}

// only is the one number that was found, however often.
func only(text string, found []float64) (float64, error) {
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
	// labelParts are in the words of labelled, however their letters are written: one of
	// them is in a text that has a label. Most long texts have none, and to find that out
	// by the expression takes a hundred times as long.
	labelParts = []string{"core", "ating", "grade", "nota", "pontua"}

	listed = lazyregexp.New(`^[0-9]+[.)]\s+\S`)
	counts = lazyregexp.New(`^[-+−]?[0-9.,]+\s+[\pL]`)
)

// excerpt is the beginning of a text, on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= 80 {
		return text
	}
	return string([]rune(text)[:79]) + "…"
}
