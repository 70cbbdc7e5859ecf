// SPDX-License-Identifier: Apache-2.0

package study

import (
	"maps"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Matching returns a text that a regular expression matches, with at least the given number of
// characters if the expression allows them; "" if the expression cannot be parsed. It is a guess,
// as assertions such as \b are left out.
func Matching(pattern string, least int) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	re = re.Simplify()
	var short, more strings.Builder
	spellOut(&short, re, 1)
	if n := len([]rune(short.String())); n == 0 || n >= least {
		return short.String()
	}
	spellOut(&more, re, least)
	return more.String()
}

// maxSpelled limits the length of the text, in bytes.
const maxSpelled = 4 << 10

// spellOut writes a match of a simplified expression. A part that may repeat is repeated often times.
func spellOut(b *strings.Builder, re *syntax.Regexp, often int) {
	if b.Len() > maxSpelled {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(member(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture, syntax.OpAlternate:
		spellOut(b, re.Sub[0], often)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			spellOut(b, sub, often)
		}
	case syntax.OpPlus, syntax.OpStar:
		for range often {
			if often > 1 || re.Op == syntax.OpPlus {
				spellOut(b, re.Sub[0], 1)
			}
		}
	}
}

// member is a character of a class, a readable one if there is one.
func member(ranges []rune) rune {
	for _, good := range "ax1A0_- " {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= good && good <= ranges[i+1] {
				return good
			}
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		if unicode.IsPrint(ranges[i]) {
			return ranges[i]
		}
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'x'
}

func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
