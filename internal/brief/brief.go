// SPDX-License-Identifier: Apache-2.0

// Package brief writes times, numbers and texts from outside as people read them.
//
//	brief.Duration(90 * time.Minute) // 1h30m
//	brief.Count(2, "step")           // 2 steps
//	brief.Line(body, 160)            // the beginning of a text, on one line, safe for a terminal
package brief

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration writes a duration without its zero parts: 5m and not 5m0s.
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

// Count writes a number with its noun, which gets an s unless the number is 1.
func Count[N int | int64 | uint](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Number writes a number without an exponent, unless most of its digits would be zeros. bits is the size of its type: 32 or 64.
func Number(f float64, bits int) string {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

// Clip returns the text if it has at most most characters. Of a longer one it returns the beginning, most characters and an
// ellipsis.
func Clip(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
