// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/refrain-dev/refrain/progress"
)

// T6: what could command a terminal, or hide, is no part of a line.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mb\x1b]0;t\ac":   "a[31mb]0;tc",
		"a\u009b31mb\x7f\x00":     "a31mb",
		"x\u202ecod.exe\u2066y":   "xcod.exey",
		"a\u200bb\ufeffc\u00ad":   "abc",
		"one\r\ntwo\tthree\u2028": "one  two three ",
		"日本 👩\u200d💻 é":           "日本 👩\u200d💻 é",
		"\xff\xfe":                "\ufffd\ufffd",
		"\U000e0041hidden":        "hidden",
	} {
		if got := progress.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// T6: what a page shows has its lines, and nothing that cannot be seen.
func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"a \x1b[31mred\x1b[0m b":            "a red b",
		"\x1b]0;title\x07a\x1b]8;;x\x1b\\b": "ab",
		"one\r\ntwo\n\tthree\u2028four\r":   "one\ntwo\n\tthree\nfour\n",
		"x\u202ecod.exe\x1b(B":              "xcod.exe(B",
		"日本 👩\u200d💻 é":                     "日本 👩\u200d💻 é",
	} {
		if got := progress.CleanText(in); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 850 * time.Millisecond: "850ms", 9*time.Second + 900*time.Millisecond: "9s",
		8*time.Minute + 32*time.Second: "8m 32s", 2*time.Hour + 5*time.Minute + 59*time.Second: "2h 05m",
	} {
		if got := progress.Clock(d); got != want {
			t.Errorf("Clock(%v) = %q, want %q", d, got, want)
		}
	}
}
