// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// testName is the name of a test or an example as doc/adk.md writes it: the package, unless it is loopagent, the
// function, and the subtest.
var testName = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Example)[A-Za-z0-9_]*)(?:/([^`]+))?`")

// Each difference from ADK that doc/adk.md lists names the tests that show it, and they exist.
func TestRowsOfTheADKDocumentHaveTests(t *testing.T) {
	text, err := os.ReadFile("doc/adk.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, rows, tested := testTexts(t), 0, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(line, " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			tested = false
			continue
		case strings.HasSuffix(line, "| test |"):
			tested = true
			continue
		case !tested || strings.HasPrefix(line, "|---"):
			continue
		}
		rows++
		names := testName.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(names) == 0 {
			t.Errorf("no test in the row\n%s", line)
		}
		for _, n := range names {
			pkg := n[1]
			if pkg == "" {
				pkg = "loopagent"
			}
			if !hasTest(tests, pkg, n[2], strings.ReplaceAll(n[3], "_", " ")) {
				t.Errorf("%s names %s, which does not exist", strings.TrimSpace(cells[0]), n[0])
			}
		}
	}
	if rows < 80 {
		t.Errorf("found only %d rows", rows)
	}
}

// hasTest reports whether a package whose path ends in a name has a test, and the text of a subtest in its tests. The
// subtests of a suite are in the suite's package.
func hasTest(tests map[string]string, pkg, name, sub string) bool {
	for dir, text := range tests {
		in := dir == pkg || strings.HasSuffix(strings.TrimSuffix(dir, "/v2"), "/"+pkg)
		switch {
		case sub != "":
			if (in || strings.HasSuffix(dir, pkg+"test")) && strings.Contains(text, `"`+sub+`"`) {
				return true
			}
		case in && strings.Contains(text, "\nfunc "+name+"("):
			return true
		}
	}
	return false
}

// testTexts returns the texts of the test files of each folder, and all texts of suites.
func testTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	walk(t, func(name string) {
		if dir := path.Dir(name); strings.HasSuffix(name, "_test.go") || strings.HasSuffix(dir, "test") && path.Ext(name) == ".go" {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Error(err)
			}
			texts[dir] += string(text)
		}
	})
	return texts
}
