// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A digest marks the texts of models and programs, so that they cannot be taken for
// its own sentences. They are on one line in quotation marks, or have a mark before
// every line.

func chars(s string) int { return utf8.RuneCountInString(s) }

// isPlain reports whether a name can stand without quotation marks.
func isPlain(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:", r)
	})
}

// quoteLines returns the first limit characters of a text on one line, in quotation marks.
func quoteLines(text string, limit int) string {
	var b strings.Builder
	b.WriteByte('"')
	n, space := 0, false
	for _, r := range text { // each invalid byte becomes U+FFFD, as in JSON
		switch {
		case unicode.IsSpace(r):
			space = n > 0
			continue
		case unicode.IsControl(r):
			continue
		}
		if n >= limit {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			n, space = n+1, false
		}
		if r == '"' || r == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		n++
	}
	b.WriteByte('"')
	return b.String()
}

const blockMark = "> "

// endsLine reports whether a rune ends a line on screen.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// blockChars returns the number of characters that block needs for a whole text.
func blockChars(text string) int {
	n := len(blockMark) + 1
	for _, r := range text {
		if n++; endsLine(r) {
			n += len(blockMark)
		}
	}
	return n
}

// cut says how much of a text was kept.
type cut struct{ kept, chars int }

// block returns a text with a mark before every line, in at most limit characters. whole reports whether the text is
// complete, and of says how much of it was kept.
func block(text string, limit int) (quoted string, whole bool, of cut) {
	var b strings.Builder
	b.Grow(min(len(text), max(0, limit)) + 64)
	b.WriteString(blockMark)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	n := len(blockMark) + 1
	for _, r := range text {
		of.chars++
		more := 1
		if endsLine(r) {
			more += len(blockMark)
		}
		if n += more; n > limit {
			continue // count the rest
		}
		of.kept++
		if endsLine(r) {
			b.WriteString("\n" + blockMark)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('\n')
	return b.String(), of.kept == of.chars, of
}
