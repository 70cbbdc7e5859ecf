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

var update = flag.Bool("update", false, "rewrite doc/requirements.md")

// covered are the requirements that are built: each has a test that names it.
const covered = `
A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16 A17 A18 A19 A20 A21 A22 A23 A24 A25 A26 A27 A28 A29
B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12
C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 C16 C17 C18 C19 C20 C21 C22 C23 C24 C25 C26 C27 C28 C29 C30 C31 C32 C33
D1 D2 D3 D4 D5 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D17 D18 D19 D20 D21
E1 E2 E3 E4 E5 E6 E7
F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12
G1 G2 G3 G4 G5 G6 G7 G8 G9 G10
K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11
M1 M2 M3 M4 M5 M6 M7 M8 M9 M10 M11 M12 M13 M14 M15 M16 M17 M18
O1 O2 O3 O4 O5 O6 O7 O8 O9 O10 O11 O12
T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T14 T15 T16 T17 T18 T19 T20 T21 T22 T23 T24 T25 T26 T27 T28 T29 T30 T31 T32 T33
U8 U9 U10 U11
X1 X2 X3 X4
`

const requirementsDoc = "doc/requirements.md"

// TestRequirementsHaveTests keeps doc/requirements.md, which says which test
// shows which requirement, in step with the comments of the tests.
func TestRequirementsHaveTests(t *testing.T) {
	tests := requirementTests(t)
	for id := range strings.FieldsSeq(covered) {
		if len(tests[id]) == 0 {
			t.Errorf("requirement %s has no test that names it in a comment", id)
		}
	}
	want := requirementsText(tests)
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

func requirementsText(tests map[string][]string) string {
	var b strings.Builder
	b.WriteString("# Which test shows which requirement\n\n" +
		"Made from the comments of the tests by `go test . -update`; do not edit.\n\n| ID | tests |\n|---|---|\n")
	ids := slices.SortedFunc(maps.Keys(tests), func(a, b string) int {
		x, _ := strconv.Atoi(a[1:])
		y, _ := strconv.Atoi(b[1:])
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(x, y))
	})
	for _, id := range ids {
		fmt.Fprintf(&b, "| %s | %s |\n", id, strings.Join(tests[id], "<br>"))
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
			if path.Ext(name) == ".go" && !foreign(name) && path.Dir(name) != "." {
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
