// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/findings"
)

func Example() {
	r := findings.Read(map[string]string{
		"security": "I looked at [all] of it.\n```json\n[{\"file\": \"a.go\", \"line\": 3, \"severity\": \"High\", \"problem\": \"A path may lead out.\"}]\n```",
		"tests":    `[{"file": "./a.go", "line": 3, "severity": "medium", "problem": "No test has a path with dots."}]`,
	}, false, nil)
	fmt.Print(r.Text)
	fmt.Println(r.Verdict, r.Open, r.Fix)
	// Output:
	// - high, a.go:3: A path may lead out. / No test has a path with dots.
	// 1 finding is above low. true true
}

func TestRead(t *testing.T) {
	const low = `[{"file": "a.go", "severity": "low", "problem": "A name."}]`
	for _, tt := range []struct {
		name, answer string
		last         bool
		open, fix    bool
		verdict      string
	}{
		{"nothing", "Fine.\n[]", false, false, false, "No finding is above low."},
		{"low", low, false, false, false, "No finding is above low."},
		{"the last round", `[{"file": "a", "severity": "critical", "problem": "x"}]`, true, true, false, "1 finding is above low."},
		{"two places", `[{"file": "a", "line": 1, "severity": "high", "problem": "x"}, {"file": "a", "line": 2, "severity": "medium", "problem": "x"}]`,
			false, true, true, "2 findings are above low."},
		{"an object around it", `{"findings": ` + low + `}`, false, false, false, "No finding is above low."},
		{"an earlier list", `First [{"file": "a", "severity": "high", "problem": "x"}], then ` + low, false, false, false, "No finding is above low."},
		{"text", "I found nothing.", false, true, false, "No finding is above low. No list of findings from: r (no list in JSON)."},
		{"an agent without words", " \n", false, true, false, "No finding is above low. No list of findings from: r (no answer)."},
		{"cut off", `[{"file": "a", "severity": "high", "problem": "It returns [] for`, false, true, false,
			"No finding is above low. No list of findings from: r (no list in JSON)."},
		{"a severity of its own", `[{"file": "a", "severity": "major", "problem": "x"}]`, false, true, false,
			`No finding is above low. No list of findings from: r (finding 1: severity "major" is none of critical, high, medium, low).`},
		{"a severity of its own beside others", `[{"file": "a", "severity": "nit", "problem": "x"}, {"file": "b", "severity": "high", "problem": "y"}]`,
			false, true, true, `1 finding is above low. No list of findings from: r (finding 1: severity "nit" is none of critical, high, medium, low).`},
		{"a text beside others", `[{"file": "a", "severity": "high", "problem": "x"}, "and so on"]`, false, true, true, "1 finding is above low. " +
			"No list of findings from: r (finding 2: it is no object with the texts file, severity and problem)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := findings.Read(map[string]string{"r": tt.answer}, tt.last, nil)
			if got, want := []any{r.Open, r.Fix, r.Verdict}, []any{tt.open, tt.fix, tt.verdict}; !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

// A line is read in all forms in which reviewers write it.
func TestLine(t *testing.T) {
	for line, want := range map[string]int{`12`: 12, `"12"`: 12, `"3-5"`: 3, `"L7"`: 7, `[8, 9]`: 8, `4.0`: 4, `-1`: 0, `null`: 0, `"?"`: 0, `""`: 0,
		`{"start": 6, "end": 9}`: 6} {
		r := findings.Read(map[string]string{"r": `[{"file": "a", "line": ` + line + `, "severity": "high", "problem": "x"}]`}, false, nil)
		if len(r.Findings) != 1 || r.Findings[0].Line != want || len(r.Unread) > 0 {
			t.Errorf("line %s: got %+v", line, r)
		}
	}
}

// Answers with lists in lists are read in a moment; it was more than a minute.
func TestDeep(t *testing.T) {
	for _, text := range []string{"[", "[\n", `[{"a":`, `[{"a":[],"b":`} {
		if r := findings.Read(map[string]string{"r": strings.Repeat(text, 100_000)}, false, nil); len(r.Unread) != 1 {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"[]", `[{"file": "a", "severity": "high", "problem": "x"}]`, "[[[", "{[]}", "[{}]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		r := findings.Read(map[string]string{"r": answer}, false, nil)
		if strings.Count(r.Text, "\n") != len(r.Findings) || strings.ContainsAny(r.Text, "\x1b\r") {
			t.Errorf("%q: %q", answer, r.Text)
		}
		if r.Fix && !r.Open {
			t.Errorf("%q: %+v", answer, r)
		}
	})
}

// Reviewers work in copies of their own, so their absolute names differ for the same file.
func TestAbsoluteNames(t *testing.T) {
	exists := func(name string) bool { return name == "server/port.go" || name == "port.go" }
	list := func(file string) string {
		return `[{"file": "` + file + `", "line": 3, "severity": "high", "problem": "x"}]`
	}
	r := findings.Read(map[string]string{"a": list("/copies/clean-1/server/port.go"), "b": list("server/port.go"), "c": list("/copies/2/server/port.go"),
		"d": list("/copies/2/gone.go")}, false, exists)
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.File)
	}
	if want := []string{"/copies/2/gone.go", "server/port.go"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
