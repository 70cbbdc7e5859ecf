// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/refrain-dev/refrain/expr"
)

var comparisons = map[string]string{
	operators.Greater:       ">",
	operators.GreaterEquals: ">=",
	operators.Less:          "<",
	operators.LessEquals:    "<=",
	operators.Equals:        "==",
	operators.NotEquals:     "!=",
}

// Test implements expr.Program. It leaves out the compared values of a condition that used a quarter of its greatest cost.
func (p *program) Test(s expr.Scope) (expr.Verdict, error) {
	holds, cost, err := p.evalBool(s)
	if err != nil {
		return expr.Verdict{}, err
	}
	v := expr.Verdict{Holds: holds}
	c := p.comparison()
	if c == nil || cost > maxCost/4 { // the sides are evaluated again, only to be shown
		return v, nil
	}
	l, errL := c.left.EvalIn(context.Background(), s)
	r, errR := c.right.EvalIn(context.Background(), s)
	if errL == nil && errR == nil {
		v.Op, v.Left, v.Right = c.op, expr.Side{Value: l}, expr.Side{Value: r}
	}
	return v, nil
}

// comparison is an expression split at its outermost comparison.
type comparison struct {
	op          string
	left, right *program
}

// split returns the parts of a comparison such as state.score >= 8.0, and nil for any other
// expression.
func (p *program) split() *comparison {
	e := p.ast.Expr()
	if e.Kind() != ast.CallKind {
		return nil
	}
	op, args := comparisons[e.AsCall().FunctionName()], e.AsCall().Args()
	if op == "" || len(args) != 2 {
		return nil
	}
	left, errL := p.part(args[0])
	right, errR := p.part(args[1])
	if errL != nil || errR != nil {
		return nil
	}
	return &comparison{op: op, left: left, right: right}
}

// part makes a program of an operand, which the checker has seen already.
func (p *program) part(e ast.Expr) (*program, error) {
	env, err := environment(p.vars)
	if err != nil {
		return nil, err
	}
	tree := ast.NewCheckedAST(ast.NewAST(e, p.ast.SourceInfo()), p.ast.TypeMap(), p.ast.ReferenceMap())
	return plan(env, tree, p.vars)
}

// plan makes a program of a checked syntax tree.
func plan(env *cel.Env, tree *ast.AST, vars []expr.Var) (*program, error) {
	prg, err := env.PlanProgram(tree, programOptions(tree.Expr())...)
	if err != nil {
		return nil, err
	}
	p := &program{vars: vars, prg: prg, ast: tree, typ: typeOf(tree.GetType(tree.Expr().ID()))}
	p.comparison = sync.OnceValue(p.split)
	return p, nil
}

// Compared implements expr.Program.
func (p *program) Compared(root string) []string {
	r := reader{root: root}
	var keys []string
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		if e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 2 && isComparison(e.AsCall().FunctionName()) {
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

func isComparison(function string) bool {
	return comparisons[function] != "" && comparisons[function] != "!="
}
