// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Compared returns the keys of the variable root that the expression compares directly with a
// number, such as state.review >= 8, sorted.
func (p *Program) Compared(root string) []string {
	r := reader{root: root}
	var keys []string
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		if e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 2 && compared(e.AsCall().FunctionName()) {
			args := e.AsCall().Args()
			for i, x := range args {
				if key, ok := r.access(x, false); ok && isNumber(args[1-i]) {
					keys = append(keys, key)
				}
			}
		}
		for _, c := range children(e) {
			visit(c)
		}
	}
	visit(p.ast.Expr())
	slices.Sort(keys)
	return slices.Compact(keys)
}

func isNumber(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	switch e.AsLiteral().(type) {
	case types.Int, types.Double, types.Uint:
		return true
	}
	return false
}

func compared(function string) bool {
	return comparisons[function] != "" && comparisons[function] != "!="
}
