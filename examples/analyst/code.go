// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// What a function may have at the most.
const (
	mostLines   = 40
	mostNesting = 3
)

// code is told a Go file under "code". It answers with a quality from 0 to 10 and
// with what it has found: each finding costs two.
func code(in map[string]any) (map[string]any, error) {
	text, ok := in["code"].(string)
	if !ok {
		return nil, errors.New(`send {"code": "package …"}`)
	}
	findings := []any{}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "the file", text, parser.ParseComments)
	if err != nil {
		return map[string]any{"quality": 0.0, "findings": append(findings, err.Error())}, nil
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		name := f.Name.Name
		if f.Name.IsExported() && !strings.HasPrefix(f.Doc.Text(), name+" ") {
			findings = append(findings, fmt.Sprintf("%s has no comment that begins with its name", name))
		}
		if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1; n > mostLines {
			findings = append(findings, fmt.Sprintf("%s has %d lines, and %d are enough", name, n, mostLines))
		}
		if n := nesting(f.Body); n > mostNesting {
			findings = append(findings, fmt.Sprintf("%s is nested %d deep, and %d are enough", name, n, mostNesting))
		}
	}
	return map[string]any{"quality": max(0, 10-2*float64(len(findings))), "findings": findings}, nil
}

// nesting is how many blocks stand in one another below n.
func nesting(n ast.Node) int {
	deepest := 0
	ast.Inspect(n, func(child ast.Node) bool {
		if _, ok := child.(*ast.BlockStmt); !ok || child == n {
			return true
		}
		deepest = max(deepest, 1+nesting(child))
		return false
	})
	return deepest
}
