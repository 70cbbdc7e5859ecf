// SPDX-License-Identifier: Apache-2.0

package cases_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
)

const manual = "../../../doc/eval.md"

// The files of cases in the manual can be read, and its tables have the fields that the reader knows.
func TestManual(t *testing.T) {
	data, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`(?m)^cases:`).MatchString(block[1]) {
			continue
		}
		found++
		set, err := cases.Read(files("doc.yaml", block[1]), "doc.yaml", "")
		if err != nil {
			t.Errorf("%v\n%s", err, block[1])
		} else if _, err := set.Grader(); err != nil {
			t.Error(err)
		}
	}
	if found < 2 {
		t.Errorf("%s has %d files of cases", manual, found)
	}
	kinds := make([]string, len(check.Kinds))
	for i, k := range check.Kinds {
		kinds[i] = string(k)
	}
	for header, want := range map[string][]string{
		"### The file\n":                known(t, "zzzzzzzz: 1"),
		"### A case\n":                  known(t, "cases: [{input: a, zzzzzzzz: 1}]"),
		"| field of every check |":      known(t, "cases: [{input: a, checks: [{completed: true, zzzzzzzz: 1}]}]")[1:],
		"| kind | value | it gives |\n": kinds,
	} {
		_, table, ok := strings.Cut(text, header)
		if !ok {
			t.Errorf("%s has no %q", manual, header)
			continue
		}
		table, _, _ = strings.Cut(strings.TrimLeft(table, "\n"), "\n\n")
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllStringSubmatch(table, -1) {
			got = append(got, row[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("the table after %q has %q, not %q", header, got, want)
		}
	}
	for _, v := range check.Variables {
		if !strings.Contains(text, "`"+v.Name+"`") {
			t.Errorf("%s does not say that an expression reads %s", manual, v.Name)
		}
	}
}

// known returns the fields that a file could have in place of zzzzzzzz, from the hint.
func known(t *testing.T, text string) []string {
	t.Helper()
	_, list, ok := strings.Cut(problems(t, "a.yaml", text), "there are ")
	if !ok {
		t.Fatalf("no hint for %s", text)
	}
	list, _, _ = strings.Cut(list, "\n")
	return strings.Split(list, ", ")
}
