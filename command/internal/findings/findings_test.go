// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/findings"
)

func Example() {
	r := findings.Read(map[string]string{
		"security": "I looked at [all] of it.\n```json\n[{\"file\": \"a.go\", \"line\": 3, \"severity\": \"High\", \"problem\": \"A path may lead out.\"}]\n```",
		"tests":    `[{"file": "./a.go", "line": 3, "severity": "medium", "problem": "No test has a path with dots."}]`,
	}, false)
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
		{"a line that is no number", `[{"file": "a", "line": "3-5", "severity": "low", "problem": "x"}]`, false, true, false,
			"No finding is above low. No list of findings from: r (finding 1: json: cannot unmarshal string into Go struct field Finding.line of type int)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := findings.Read(map[string]string{"r": tt.answer}, tt.last)
			if got, want := []any{r.Open, r.Fix, r.Verdict}, []any{tt.open, tt.fix, tt.verdict}; !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"[]", `[{"file": "a", "severity": "high", "problem": "x"}]`, "[[[", "{[]}", "[{}]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		r := findings.Read(map[string]string{"r": answer}, false)
		if strings.Count(r.Text, "\n") != len(r.Findings) || strings.ContainsAny(r.Text, "\x1b\r") {
			t.Errorf("%q: %q", answer, r.Text)
		}
		if r.Fix && !r.Open {
			t.Errorf("%q: %+v", answer, r)
		}
	})
}
