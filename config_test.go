// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutEffect are the fields of Config types that no code reads, because they exist only for programs that set them.
// The comment of each says so.
var withoutEffect = []string{"server/adkrest.DebugTelemetryConfig.TraceCapacity", "server/adkrest.ServerConfig.DebugConfig"}

// Every exported field of a type that is called Config, or …Config, is read somewhere: one that is only declared would
// lose what a program sets in it.
func TestConfigFieldsAreRead(t *testing.T) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f",
		`{{.ImportPath}}|{{.Export}}|{{.Dir}}|{{join .GoFiles ","}}`, "./...").Output()
	if err != nil {
		t.Fatalf("list the packages: %v", err)
	}
	exports := make(map[string]string)
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var ours [][]string
	for line := range strings.Lines(string(out)) {
		pkg := strings.Split(strings.TrimSpace(line), "|")
		exports[pkg[0]] = pkg[1]
		if pkg[0] == module || strings.HasPrefix(pkg[0], module+"/") {
			ours = append(ours, pkg)
		}
	}
	// A field of a compiled package and the same of its source are two objects in one place.
	place := func(f types.Object) string {
		at := fset.Position(f.Pos())
		return fmt.Sprintf("%s/%s:%d %s", f.Pkg().Path(), filepath.Base(at.Filename), at.Line, f.Name())
	}
	declared, read := make(map[string]string), make(map[string]bool)
	var declare func(s *types.Struct, name string)
	declare = func(s *types.Struct, name string) {
		for f := range s.Fields() {
			if part, ok := f.Type().Underlying().(*types.Struct); ok && f.Embedded() { // its fields are those of the config
				declare(part, name)
			} else if f.Exported() {
				declared[place(f)] = name + "." + f.Name()
			}
		}
	}
	for _, pkg := range ours {
		var files []*ast.File
		for name := range strings.SplitSeq(pkg[3], ",") {
			file, err := parser.ParseFile(fset, filepath.Join(pkg[2], name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection), Defs: make(map[*ast.Ident]types.Object)}
		if _, err := (&types.Config{Importer: compiled}).Check(pkg[0], fset, files, info); err != nil {
			t.Fatal(err)
		}
		for _, obj := range info.Defs {
			if name, ok := obj.(*types.TypeName); ok && name.Exported() && strings.HasSuffix(name.Name(), "Config") {
				if s, ok := name.Type().Underlying().(*types.Struct); ok {
					declare(s, strings.TrimPrefix(pkg[0]+"."+name.Name(), module+"/"))
				}
			}
		}
		set := make(map[ast.Expr]bool) // what is only assigned to
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					if n.Tok == token.ASSIGN {
						for _, to := range n.Lhs {
							set[to] = true
						}
					}
				case *ast.SelectorExpr:
					if s := info.Selections[n]; s != nil && s.Kind() == types.FieldVal && !set[n] {
						read[place(s.Obj())] = true
					}
				}
				return true
			})
		}
	}
	if len(declared) < 100 {
		t.Fatalf("found only %d fields", len(declared))
	}
	for _, at := range slices.Sorted(maps.Keys(declared)) {
		if field := declared[at]; read[at] == slices.Contains(withoutEffect, field) {
			if read[at] {
				t.Errorf("%s is read: it does not belong to withoutEffect", field)
			} else {
				t.Errorf("nothing reads %s: build what its comment says, or remove it", field)
			}
		}
	}
}
