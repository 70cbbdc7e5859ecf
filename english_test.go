// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foreignErrors lists the files that may search the text of an error, each with the reason. Most: the error of another project has no type for what
// must be known.
var foreignErrors = map[string]string{
	"agent/drive/failure.go":                      "takes the beginning that an address in the log makes off a recorded text",
	"agent/taskagent/internal/testcount/junit.go": "encoding/xml has no sentinel for a file that ends too early",
	"command/internal/doctor/checks.go":           "cuts a text after its first line",
	"command/internal/term/flags.go":              "pflag's error for an unknown flag",
	"internal/runs/operations/problem/problem.go": "os.Root has no sentinel for a path that leads out of it",
	"internal/web/wire/answer.go":                 "encoding/json has no type for an unknown field",
	"model/gemini/model.go":                       "genai puts its whole config, with secrets, into the text",
}

// searching lists the functions that find something in a text.
var searching = []string{"Contains", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "TrimPrefix", "TrimSuffix", "Index", "Split", "EqualFold",
	"MatchString", "FindString", "FindStringSubmatch", "Sscanf"}

// Code reads the fields of an error, never its text.
func TestNoErrorIsReadByItsText(t *testing.T) {
	seen := make(map[string]bool)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || d.Name() == "testdata" || d.Name() == "testkit" || strings.HasSuffix(d.Name(), "test")):
			return fs.SkipDir // the suites for stores and models read errors, as tests do
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fn, ok := call.Fun.(*ast.SelectorExpr); !ok || !slices.Contains(searching, fn.Sel.Name) || !slices.ContainsFunc(call.Args, isErrorText) {
				return true
			}
			name := filepath.ToSlash(name)
			if seen[name] = true; foreignErrors[name] == "" {
				t.Errorf("%s searches the text of an error: give the error a type with fields, or give a reason in foreignErrors", set.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range foreignErrors {
		if !seen[name] {
			t.Errorf("foreignErrors names %s, which searches no text of an error: remove it", name)
		}
	}
}

// isErrorText reports whether an expression calls Error without arguments.
func isErrorText(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	fn, ok := call.Fun.(*ast.SelectorExpr)
	return ok && fn.Sel.Name == "Error"
}
