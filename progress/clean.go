// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Clean makes untrusted text safe to print on one line of a terminal: line breaks and tabs become
// spaces; control characters, invisible characters and those that change the direction of text are
// removed. Bytes that are not UTF-8 become replacement characters.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cc, r):
			return -1
		case r == '\u200d': // holds an emoji together
			return r
		case unicode.Is(unicode.Cf, r): // directions, tags, zero width
			return -1
		}
		return r
	}, s)
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
