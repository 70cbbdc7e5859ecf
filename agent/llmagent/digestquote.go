// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts of models and programs stand in a digest so that they cannot pass for
// the digest's own words: on one line in quotation marks, or with a mark before
// every line.

func chars(s string) int { return utf8.RuneCountInString(s) }

// isPlain reports whether a name can stand without quotation marks.
func isPlain(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:", r)
	})
}

// quoted is the beginning of a text on one line, in quotation marks.
func quoted(text string, limit int) string {
	var b strings.Builder
	b.WriteByte('"')
	n, space := 0, false
	for _, r := range text { // bytes that are no text are U+FFFD each, as in JSON
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

// block is a text with a mark before every line. It has at most so many
// characters; whole says that nothing was left out.
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
			continue // to count the rest
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
