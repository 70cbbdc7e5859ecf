// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"strings"
	"unicode"
)

// Says reports whether a text consists of a phrase, ignoring case, white space, punctuation and
// formatting. "**No major issues found!**" says "no major issues found"; "I would not say no major
// issues found" does not. The result is false for a phrase without a letter or digit.
func Says(text, phrase string) bool {
	want := words(phrase)
	return want != "" && words(text) == want
}

// words returns the letters and digits of a text, in lower case, with a space in place of any other characters
// between them. An apostrophe in a word is left out.
func words(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		switch {
		case r == '\'' || r == '’':
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if gap && b.Len() > 0 {
				b.WriteByte(' ')
			}
			gap = false
			b.WriteRune(unicode.ToLower(r))
		default:
			gap = true
		}
	}
	return b.String()
}
