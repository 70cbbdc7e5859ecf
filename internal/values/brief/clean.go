// SPDX-License-Identifier: Apache-2.0

package brief

import (
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Text from a model, a tool or a file can control a terminal, hide itself, or reverse the direction of the text after
// it. Only the functions of this file make such text safe for people. All of them replace a byte that is not UTF-8 by
// U+FFFD.

// Clean makes untrusted text safe to print on one line of a terminal. Line breaks and tabs become spaces. Clean
// removes control characters, invisible characters, private-use characters and those that change the direction of
// text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t', '\r', '\u2028', '\u2029':
			return ' '
		}
		return visible(r)
	}, s)
}

// CleanText does what [Clean] does for a text of several lines; it keeps line breaks and tabs. It removes whole
// escape sequences, such as the one for a color.
func CleanText(s string) string {
	if strings.ContainsAny(s, "\x1b\u009b") {
		s = commands().ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t':
			return r
		case '\r', '\u2028', '\u2029':
			return '\n'
		}
		return visible(r)
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// commands matches the escape sequences of a terminal, which contain numbers or a text.
var commands = lazyregexp.New(`(\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?`)

// visible returns -1 for an invisible character, and any other character unchanged.
func visible(r rune) rune {
	switch {
	case r == '\u200d': // joins emoji
		return r
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co): // directions, tags, zero width
		return -1
	}
	return r
}

// Line returns the first most characters of an untrusted text on one line, cleaned by [Clean] and with one space between words.
func Line(s string, most int) string {
	return Clip(strings.Join(strings.Fields(Clean(s)), " "), most)
}

// Printable returns an untrusted text on one line with the same number of characters, so that a column still names
// the same place. Line breaks and tabs become spaces, and other invisible characters become U+FFFD.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// IsCommand reports whether a character controls a terminal, changes the direction of a text, or is a Unicode line or
// paragraph separator, which only some programs treat as the end of a line. It returns false for a line feed and a
// tab.
func IsCommand(r rune) bool {
	return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r)
}
