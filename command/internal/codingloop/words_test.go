// SPDX-License-Identifier: Apache-2.0

package codingloop_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/codingloop"
)

// What is taken is split as a shell splits it.
func FuzzWords(f *testing.F) {
	for _, line := range []string{
		"gemini --acp", ` a  'b c' d"e f"g\ h `, `a "\$x\"\\\n" '' ""`, `a\'b '"' "'"`, `a '$x' "a*b"`, "a\tb", `a ~b 'c`, "é ~ x~",
		"a # b", "a; b", "a $x", "a\\", "~/a", "", "''", "a\nb", "a=b c", "-n x",
	} {
		f.Add(line)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := codingloop.Words(line)
		if err != nil || strings.ContainsAny(line, "\x00\r\v\f\n{}!=^") || strings.ToValidUTF8(line, "") != line {
			return
		}
		out, err := exec.Command(sh, "-c", "for word in "+line+`; do printf '%s\0' "$word"; done`).Output()
		if want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is split into %q; the shell says %q, %v", line, got, want, err)
		}
	})
}

// What is not taken says why.
func TestWordsThatAreNone(t *testing.T) {
	for line, want := range map[string]string{
		"":                 "the command line names no program",
		"'' x":             "the command line names no program",
		"a 'b":             "a quote is not closed, or the line ends with a backslash",
		`a \`:              "a quote is not closed, or the line ends with a backslash",
		"~/bin/a":          `no shell reads this command line, so '~' has no special meaning`,
		`"$HOME/a" --acp`:  `no shell reads this command line, so '$' has no special meaning`,
		"gemini --acp | a": `no shell reads this command line, so '|' has no special meaning`,
	} {
		if _, err := codingloop.Words(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %s", line, err, want)
		}
	}
}
