// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite doc/testdata/requirements.md")

const (
	requirementsDoc  = "doc/testdata/requirements.md"
	requirementsText = "doc/testdata/requirements.txt"
)

// TestRequirementsHaveTests checks that each requirement has a test that names it,
// that doc/testdata/requirements.md says so, and that tests name no other requirement.
func TestRequirementsHaveTests(t *testing.T) {
	asks, tests := requirements(t), requirementTests(t)
	for _, id := range slices.SortedFunc(maps.Keys(asks), compareIDs) {
		if len(tests[id]) == 0 {
			t.Errorf("requirement %s has no test that names it in a comment", id)
		}
	}
	for id, names := range tests {
		if asks[id] == "" {
			t.Errorf("%s cites %s, which %s does not list", names[0], id, requirementsText)
		}
	}
	want := requirementsPage(asks, tests)
	if *update {
		if err := os.WriteFile(requirementsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(requirementsDoc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test . -update (-want +got):\n%s", requirementsDoc, diff)
	}
}

// requirements reads what each requirement asks for, by its ID.
func requirements(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(requirementsText)
	if err != nil {
		t.Fatal(err)
	}
	asks := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		id, ask, ok := strings.Cut(line, ": ")
		if !ok || requirementID.FindString(id) != id || asks[id] != "" {
			t.Fatalf("%s: bad or second line %q", requirementsText, line)
		}
		asks[id] = ask
	}
	return asks
}

func compareIDs(a, b string) int {
	x, _ := strconv.Atoi(a[1:])
	y, _ := strconv.Atoi(b[1:])
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(x, y))
}

func requirementsPage(asks map[string]string, tests map[string][]string) string {
	var b strings.Builder
	b.WriteString("# What each requirement asks for, and which tests show it\n\n" +
		"Made from " + requirementsText + " and the comments of the tests by `go test . -update`; do not edit.\n" +
		"C-rows settle contradictions between the documents that Refrain unites.\n\n" +
		"| ID | asks for | tests |\n|---|---|---|\n")
	for _, id := range slices.SortedFunc(maps.Keys(asks), compareIDs) {
		by := strings.Join(tests[id], "<br>")
		if by == "" {
			by = "not built yet"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", id, strings.ReplaceAll(asks[id], "|", `\|`), by)
	}
	return b.String()
}

// requirementID is one row of the requirements, as a comment names it.
var requirementID = regexp.MustCompile(`\b[ABCDEFGKMOTUX][1-9][0-9]?\b`)

// requirementTests finds, by requirement, the tests whose comments name it.
func requirementTests(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	note := func(comment, test string) {
		for _, id := range requirementID.FindAllString(comment, -1) {
			if !slices.Contains(found[id], test) {
				found[id] = append(found[id], test)
			}
		}
	}
	walk(t, func(name string) {
		switch {
		case strings.HasSuffix(name, ".txtar"):
			text, err := os.ReadFile(name)
			if err != nil {
				t.Error(err)
			}
			script, _, _ := strings.Cut(string(text), "\n-- ")
			for line := range strings.Lines(script) {
				if strings.HasPrefix(line, "#") {
					note(line, "`"+name+"`")
				}
			}
		case strings.HasSuffix(name, "_test.go") || path.Dir(name) == "session/sessiontest" || path.Dir(name) == "agent/agenttest":
			if ours := !foreign(name) || path.Dir(name) == "temporal"; ours && path.Ext(name) == ".go" && path.Dir(name) != "." {
				noteFile(t, name, note)
			}
		}
	})
	for id := range found {
		slices.Sort(found[id])
	}
	return found
}

// noteFile takes down the functions of a test file with the comments in and
// above them.
func noteFile(t *testing.T, name string, note func(comment, test string)) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		from := fn.Pos()
		if fn.Doc != nil {
			from = fn.Doc.Pos()
		}
		for _, group := range file.Comments {
			if group.Pos() >= from && group.End() <= fn.End() {
				note(group.Text(), "`"+path.Dir(name)+"` "+fn.Name.Name)
			}
		}
	}
}

// The rules that tests cite as LOOP 30 stand in doc/loop.md, numbered from 1. Texts that are
// not in the repository are not cited.
func TestRulesOfTheLoopAreListed(t *testing.T) {
	text, err := os.ReadFile("doc/loop.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "## The rules by number")
	rules := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^([0-9]+)\. `).FindAllStringSubmatch(list, -1) {
		if rules[m[1]] = true; m[1] != strconv.Itoa(len(rules)) {
			t.Errorf("rule %s stands at place %d", m[1], len(rules))
		}
	}
	if !ok || len(rules) == 0 {
		t.Fatal("doc/loop.md has no rules by number")
	}
	cited := regexp.MustCompile(`\bLOOP ([0-9]+)\b`)
	elsewhere := regexp.MustCompile(`(?m)^\s*(?://|#).*\b([Ii]ssue [0-9]+|(?:STYLE|DESIGN)\b.*|LOOP\.md|S[0-9]:[0-9]+)`)
	walk(t, func(name string) {
		if ext := path.Ext(name); ext != ".go" && ext != ".txtar" {
			return
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		for _, m := range cited.FindAllStringSubmatch(string(source), -1) {
			if !rules[m[1]] {
				t.Errorf("%s cites LOOP %s, which doc/loop.md does not list", name, m[1])
			}
		}
		for _, m := range elsewhere.FindAllStringSubmatch(string(source), -1) {
			t.Errorf("%s cites %q, which is not in the repository: say it in words", name, m[1])
		}
	})
}
