// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/progress/prose"
)

// Listed joins names with commas; of more than eight it shows the first eight.
func Listed(names []string) string {
	if len(names) > 8 {
		names = append(names[:8:8], "…")
	}
	return strings.Join(names, ", ")
}

// OneLine is a text on one line of at most so many characters, without what would
// command a terminal or turn the direction of what follows it.
func OneLine(s string, most int) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// ShellWord is a word as a person would type it.
func ShellWord(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\$`&|;<>()*?[]#~!{}", r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// Counted is a number with its noun, which gets an s unless the number is 1.
func Counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Indented writes a text of somebody else's, each line with a margin.
func Indented(w io.Writer, text, margin string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Fprintln(w, strings.TrimRight(margin+progress.Clean(strings.TrimRight(line, "\r\n")), " "))
	}
}

// Clipped is a text that is not longer than so many letters.
func Clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// Note is a finding on a line.
func Note(f prose.Finding) string {
	text := f.String()
	if strings.Contains(string(f.Loop), "/") {
		text = string(f.Loop) + ": " + text
	}
	return "Note: " + strings.Join(strings.Fields(text), " ")
}
