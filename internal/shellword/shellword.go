// SPDX-License-Identifier: Apache-2.0

// Package shellword writes words as a person would type them in a shell of POSIX.
//
//	fmt.Printf("git apply %s\n", shellword.Of(file))
package shellword

import (
	"strings"
	"unicode"
)

// Of is a word that a shell reads as s, and no program takes for an option: the file -x becomes ./-x.
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
