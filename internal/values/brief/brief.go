// SPDX-License-Identifier: Apache-2.0

// Package brief writes times, numbers and untrusted text in a form for people.
//
//	brief.Clock(90 * time.Minute)    // 1h 30m
//	brief.Count(2, "step")           // 2 steps
//	brief.Line(body, 160)            // the beginning of a text, on one line, safe for a terminal
package brief

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Duration writes a duration as a definition has it, without its zero parts: 5m and not 5m0s. [Clock] writes one for people.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Clip shortens a text to its first most characters and an ellipsis. A text of at most most characters stays as it is.
func Clip(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}

// ClipBytes shortens a text as [Clip] does, to a limit in bytes that includes the ellipsis. It never splits a
// character, and replaces a byte that is not UTF-8 by U+FFFD.
func ClipBytes(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	cut := most - len("…")
	if cut < 0 {
		return ""
	}
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// End shortens a text to an ellipsis and its last most characters. A text of at most most characters stays as it is.
func End(s string, most int) string {
	at := len(s)
	for n := 0; n < most && at > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	if at == 0 {
		return s
	}
	return "…" + s[at:]
}

// EndBytes shortens a text as [End] does, to a limit in bytes that does not include the ellipsis. It never splits a
// character, and replaces a byte that is not UTF-8 by U+FFFD.
func EndBytes(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	at := len(s) - most
	if at <= 0 {
		return s
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return "…" + s[at:]
}
