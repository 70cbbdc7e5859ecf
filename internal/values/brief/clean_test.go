// SPDX-License-Identifier: Apache-2.0

package brief_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

func ExampleLine() {
	fmt.Println(brief.Line("Done.\r\n\n\x1b\tAll 12 tests pass, and nothing else has changed.", 24))
	fmt.Println(brief.Line("\u202etxt.exe\u0000 \xff", 24))
	// Output:
	// Done. All 12 tests pass,…
	// txt.exe �
}

func ExampleCleanText() {
	fmt.Println(brief.CleanText("\x1b[31mfailed\x1b[0m\r\n\tin line 3\x07"))
	// Output:
	// failed
	// 	in line 3
}

func ExamplePrintable() {
	line := "name: \x1b[2Jx\u202e: y"
	fmt.Println(brief.Printable(line))
	fmt.Println(strings.Repeat(" ", strings.IndexRune(line, 'x')) + "^")
	// Output:
	// name: �[2Jx�: y
	//           ^
}

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
		"\U000e0041hidden\ue000":  "hidden",
		"a\xe2\x80":               "a\ufffd\ufffd", // cut in the middle of a character
	} {
		if got := brief.Clean(in); got != want {
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
		"a \u009b31mred\u009b0m b":          "a red b",
		"日本 👩\u200d💻 é":                     "日本 👩\u200d💻 é",
	} {
		if got := brief.CleanText(in); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", in, got, want)
		}
	}
}

// T6: whatever a text is made of, no function leaves a character that commands a terminal or turns the direction of what follows.
func FuzzCleaned(f *testing.F) {
	for _, s := range []string{"", "\x1b]0;title", "a\xe2\x80", "\xc2\x9b31m", "\u2028\u202e\u200f", "\U000e0041\ue000\ufeff", "👩\u200d💻"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hidden := func(r rune) bool {
			return r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) || brief.IsCommand(r)
		}
		for name, got := range map[string]string{
			"Clean": brief.Clean(s), "Line": brief.Line(s, 5), "Printable": brief.Printable(s),
			"CleanText": strings.NewReplacer("\n", "", "\t", "").Replace(brief.CleanText(s)),
		} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, hidden) {
				t.Errorf("%s(%q) = %q", name, s, got)
			}
		}
		if n := utf8.RuneCountInString(brief.Line(s, 5)); n > 6 {
			t.Errorf("Line(%q, 5) has %d characters", s, n)
		}
		if got, want := utf8.RuneCountInString(brief.Printable(s)), utf8.RuneCountInString(s); got != want {
			t.Errorf("Printable(%q) has %d characters, want %d", s, got, want)
		}
	})
}
