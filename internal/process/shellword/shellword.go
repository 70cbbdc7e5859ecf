// SPDX-License-Identifier: Apache-2.0

// Package shellword quotes words for a POSIX shell as a person would type them.
//
//	fmt.Printf("git apply %s\n", shellword.Of(file))
package shellword

import (
	"strings"
	"unicode"
)

// Of returns a word that a shell reads as s and that no program takes for an option; -x becomes ./-x.
func Of(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	special := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" '\"\\$`&|;<>()*?[]#~!{}", r) }
	if s == "" || strings.ContainsFunc(s, special) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
