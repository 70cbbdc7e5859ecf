// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/parser"
)

var comparisons = map[string]string{
	operators.Greater:       ">",
	operators.GreaterEquals: ">=",
	operators.Less:          "<",
	operators.LessEquals:    "<=",
	operators.Equals:        "==",
	operators.NotEquals:     "!=",
}

// Comparison is an expression split at its outermost comparison.
type Comparison struct {
	Left, Right *Program
	Op          string // > >= < <= == !=
}

// Comparison splits an expression such as state.score >= 8.0, so that the values of both sides can
// be shown; ok is false if it is not a comparison.
func (p *Program) Comparison() (c Comparison, ok bool) {
	p.apart.Do(func() { p.sides, p.compared = p.takeApart() })
	return p.sides, p.compared
}

func (p *Program) takeApart() (c Comparison, ok bool) {
	e := p.ast.Expr()
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return c, false
	}
	if c.Op, ok = comparisons[e.AsCall().FunctionName()]; !ok {
		return c, false
	}
	if c.Left, ok = p.part(e.AsCall().Args()[0]); !ok {
		return c, false
	}
	c.Right, ok = p.part(e.AsCall().Args()[1])
	return c, ok
}

// part compiles one operand by itself.
func (p *Program) part(e ast.Expr) (*Program, bool) {
	src, err := parser.Unparse(e, p.ast.SourceInfo())
	if err != nil {
		return nil, false
	}
	part, err := Compile(src, p.vars...)
	return part, err == nil
}
