// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// Clean makes untrusted text safe to print on one line of a terminal: line breaks and tabs become
// spaces; control characters, invisible characters and those that change the direction of text are
// removed. Bytes that are not UTF-8 become replacement characters.
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
	if strings.Contains(s, "\x1b") {
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
var commands = lazyregexp.New(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`)

// visible returns -1 for a character that cannot be seen.
func visible(r rune) rune {
	switch {
	case r == '\u200d': // holds an emoji together
		return r
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r): // directions, tags, zero width
		return -1
	}
	return r
}

// Clock formats a duration for people: "850ms", "32s", "8m 32s", "2h 05m". Milliseconds are shown
// under a second only.
func Clock(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(0, d).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
}
