// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// Whoever counts tokens asks model.Tokens: the sums of a provider's counts differ in what they leave out.
func TestTokensAreAddedUpInOnePlace(t *testing.T) {
	may := []string{
		"model/tokens.go", "tool/usage.go", // the sum of one request, and of several
		"session/pack.go", // the stored form
	}
	read := make(map[string]bool)
	walk(t, func(name string) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasSuffix(sel.Sel.Name, "TokenCount") {
				if read[name] = true; !slices.Contains(may, name) {
					t.Errorf("%s reads %s: use model.Tokens", fset.Position(sel.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	})
	for _, name := range may {
		if !read[name] {
			t.Errorf("%s reads no token counts: take it off the list", name)
		}
	}
}
