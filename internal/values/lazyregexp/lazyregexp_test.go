// SPDX-License-Identifier: Apache-2.0

package lazyregexp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

func TestNew(t *testing.T) {
	digits := lazyregexp.New(`^[0-9]+$`)
	if first, second := digits(), digits(); first != second || !first.MatchString("12") || first.MatchString("x") {
		t.Errorf("two calls gave %p and %p, for the pattern %s", first, second, first)
	}
	invalid := lazyregexp.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("an invalid pattern did not panic")
		}
	}()
	invalid()
}

// No package compiles an expression when the program starts, and what is compiled later is valid.
func TestPatternsOfPackages(t *testing.T) {
	root, found := os.DirFS("../../.."), 0
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "bench" || name == "model/modeltest": // the command does not import them
			return fs.SkipDir
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if _, ok := decl.(*ast.GenDecl); !ok {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					_, inner := n.(*ast.FuncLit)
					return !inner
				}
				fun, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				switch pkg, _ := fun.X.(*ast.Ident); {
				case pkg == nil:
				case pkg.Name == "regexp":
					t.Errorf("%s compiles an expression when the program starts: use lazyregexp.New", name)
				case pkg.Name == "lazyregexp":
					found++
					if pattern, ok := literal(call.Args[0]); ok {
						if _, err := regexp.Compile(pattern); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("found %d patterns: %v", found, err)
	}
}

// literal is the text of an expression of literals; false if there is anything else in it.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also
	}
	return "", false
}
