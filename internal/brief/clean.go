// SPDX-License-Identifier: Apache-2.0

package brief

import (
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// Text of a model, a tool or a file can command a terminal, hide, or turn the direction of the text behind it. The functions of
// this file are the only ones that clean such a text for people. A byte that is not UTF-8 becomes U+FFFD in all of them.

// Clean makes untrusted text safe to print on one line of a terminal: line breaks and tabs become
// spaces; control characters, invisible characters, those of private use and those that change the
// direction of text are removed.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t', '\r', '\u2028', '\u2029':
			return ' '
		}
		return visible(r)
	}, s)
}

// CleanText is [Clean] for a text of several lines: line breaks and tabs stay. A sequence that commands
// a terminal, such as a color, is removed as a whole.
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

// commands are the sequences of a terminal: a command with numbers, or one with a text.
var commands = lazyregexp.New(`(\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?`)

// visible returns -1 for a character that cannot be seen.
func visible(r rune) rune {
	switch {
	case r == '\u200d': // holds an emoji together
		return r
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co): // directions, tags, zero width
		return -1
	}
	return r
}

// Line returns the beginning of an untrusted text on one line: what [Clean] leaves, with one space between its words.
func Line(s string, most int) string {
	return Clip(strings.Join(strings.Fields(Clean(s)), " "), most)
}

// Printable returns an untrusted text on one line with as many characters as before, so that a column still
// names the same place: line breaks and tabs become spaces, and other characters that cannot be seen U+FFFD.
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

// IsCommand reports whether a character commands a terminal, turns the direction of a text, or is a
// separator of lines or paragraphs, at which programs disagree whether a line ends. Line breaks and tabs
// are none of these.
func IsCommand(r rune) bool {
	return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r)
}
