// SPDX-License-Identifier: Apache-2.0

// Package cel is the engine of expressions: a program that imports it can use conditions, scores and tasks with expressions.
//
//	import _ "github.com/refrain-dev/refrain/expr/cel"
//
// The language is CEL (https://cel.dev), extended for people who write stop conditions:
//
//   - Numbers mix. state.level + 1 works whether level is an int or a float64,
//     so an expression does not change its meaning when its state was stored
//     as JSON and read back. For the same reason numbers that come from state
//     divide exactly (7 by 2 is 3.5), and a division by zero is an error for
//     every kind of number. Only where the checker sees two ints, as in 7 / 2
//     or size(state.items) / 2, the division is CEL's integer division.
//   - The remainder needs whole numbers, an unsigned number that is too large is an
//     error, and so is a map literal with a key twice.
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
// the dearest of the calls that the tests measure used 0.5 seconds of a core.
//
// [Reads], [Paths] and [Mentions] look at sources that may not compile, and [Functions] describes the language for people.
package cel

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"github.com/refrain-dev/refrain/expr"
)

func init() {
	expr.Register(func(src string, vars ...expr.Var) (expr.Program, error) {
		p, err := compile(src, vars)
		if err != nil {
			return nil, err // and no nil program in an interface
		}
		return p, nil
	})
}

// program implements expr.Program.
type program struct {
	src  string
	vars []expr.Var
	prg  cel.Program
	ast  *ast.AST
	typ  expr.Type

	comparison func() *comparison
}

// compile is the engine's expr.Compile.
func compile(src string, vars []expr.Var) (p *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, expr.Errors{{Line: 1, Column: 1, Msg: fmt.Sprintf("cannot compile: %v", r)}}
		}
	}()
	if strings.TrimSpace(src) == "" {
		return nil, expr.Errors{{Line: 1, Column: 1, Msg: "empty expression"}}
	}
	env, err := environment(vars)
	if err != nil {
		return nil, expr.Errors{{Line: 1, Column: 1, Msg: err.Error()}}
	}
	checked, issues := env.Compile(src)
	if issues != nil && issues.Err() != nil {
		return nil, compileErrors(issues, env, vars)
	}
	if p, err = plan(env, checked.NativeRep(), vars); err != nil {
		return nil, expr.Errors{{Line: 1, Column: 1, Msg: err.Error()}}
	}
	p.src = src
	return p, nil
}

// String implements expr.Program.
func (p *program) String() string { return p.src }

// Type implements expr.Program.
func (p *program) Type() expr.Type { return p.typ }
