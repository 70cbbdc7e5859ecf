// SPDX-License-Identifier: Apache-2.0

// Package expr compiles and evaluates typed expressions without side effects over the values of a
// run. The language is CEL (https://cel.dev), extended for people who write stop conditions:
//
//   - Numbers mix. state.level + 1 works whether level is an int or a float64,
//     so an expression does not change its meaning when its state was stored
//     as JSON and read back. For the same reason numbers that come from state
//     divide exactly (7 by 2 is 3.5), and a division by zero is an error for
//     every kind of number. Only where the checker sees two ints, as in 7 / 2
//     or size(state.items) / 2, the division is CEL's integer division.
//   - number(text) is the first number in a text, json(text) the JSON in it.
//   - says(text, phrase) reports whether a text says a phrase and nothing else;
//     case, white space and punctuation do not count.
//   - A key that is not there is an error that names it; has(state.key) and
//     state.?key.orValue(0) ask first.
//   - Maps are walked in the order of their keys, so the same values always
//     give the same result.
//
// An expression has no clock, no input or output and no unbounded loop. Every function is charged for the
// time that its arguments ask before it starts, and an expression that costs too much is stopped with an error:
// the dearest that was measured used 1.3 seconds of a core.
//
//	p, err := expr.Compile("state.score >= 8.0", expr.Var{Name: "state", Type: expr.Map})
//	...
//	ok, err := p.EvalBool(map[string]any{"state": state})
package expr

import (
	"context"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	src  string
	vars []Var
	prg  cel.Program
	ast  *ast.AST
	typ  Type

	comparison func() *comparison
}

// Compile compiles a source and checks it against the variables. Its error is [Errors], with a
// position for each mistake.
func Compile(src string, vars ...Var) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, Errors{{Line: 1, Column: 1, Msg: fmt.Sprintf("cannot compile: %v", r)}}
		}
	}()
	if strings.TrimSpace(src) == "" {
		return nil, Errors{{Line: 1, Column: 1, Msg: "empty expression"}}
	}
	env, err := environment(vars)
	if err != nil {
		return nil, Errors{{Line: 1, Column: 1, Msg: err.Error()}}
	}
	checked, issues := env.Compile(src)
	if issues != nil && issues.Err() != nil {
		return nil, compileErrors(issues, env, vars)
	}
	if p, err = plan(env, checked.NativeRep(), vars); err != nil {
		return nil, Errors{{Line: 1, Column: 1, Msg: err.Error()}}
	}
	p.src = src
	return p, nil
}

// String returns the source.
func (p *Program) String() string { return p.src }

// Type returns the type of the result, or Dyn if it is not known before evaluation.
func (p *Program) Type() Type { return p.typ }

// Eval evaluates the expression. The result is an int64, float64, string, bool, []any,
// map[string]any or nil, or a uint64 for an integer too large for an int64; a time is a text in RFC
// 3339, a duration a text such as "90s". The result shares nothing with vals.
//
// A missing key is a [*KeyError]. A variable without a value, an operation on types that do not
// fit, and a cost above the limit are errors too.
func (p *Program) Eval(vals map[string]any) (any, error) {
	return p.EvalIn(context.Background(), Values(vals))
}

// EvalBool is Eval for a condition: a result that is not a bool is an error.
func (p *Program) EvalBool(vals map[string]any) (bool, error) {
	holds, _, err := p.evalBool(Values(vals))
	return holds, err
}
