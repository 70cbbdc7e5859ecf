// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// maxPattern is the largest program of a regular expression, in instructions.
const maxPattern = 10_000

// matching returns the function of text.matches. It compiles a pattern of the source once, and counts each text as if every
// instruction of the pattern looked at every byte.
func matching(operand interpreter.InterpretableV2) (func(m *meter, args []ref.Val) ref.Val, error) {
	run := func(m *meter, text types.String, re *regexp.Regexp, size int) ref.Val {
		m.spend(float64(len(text)+1) * (20 + 15*float64(size)))
		m.flush()
		return types.Bool(re.MatchString(string(text)))
	}
	if literal, ok := operand.(interpreter.InterpretableConst); ok {
		if source, ok := literal.Value().(types.String); ok {
			size, err := patternSize(string(source))
			if err != nil {
				return nil, err
			}
			re, err := regexp.Compile(string(source))
			if err != nil {
				return nil, err
			}
			return func(m *meter, args []ref.Val) ref.Val {
				text, ok := args[0].(types.String)
				if !ok {
					return types.NewErr("no such overload: matches")
				}
				return run(m, text, re, size)
			}, nil
		}
	}
	return func(m *meter, args []ref.Val) ref.Val {
		text, isText := args[0].(types.String)
		source, isPattern := args[1].(types.String)
		if !isText || !isPattern {
			return types.NewErr("no such overload: matches")
		}
		m.spend(1000 * float64(len(source)))
		m.flush()
		size, err := patternSize(string(source))
		if err != nil {
			return types.WrapErr(err)
		}
		m.spend(1000 * float64(size))
		m.flush()
		re, err := regexp.Compile(string(source))
		if err != nil {
			return types.WrapErr(err)
		}
		return run(m, text, re, size)
	}, nil
}

var errPattern = fmt.Errorf("the regular expression is too large: with its repetitions it has more than %d parts; repeat less", maxPattern)

// patternSize returns the size of a pattern with its repetitions written out, without making it.
func patternSize(source string) (int, error) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n := expandedSize(parsed)
	if n > maxPattern {
		return 0, errPattern
	}
	return n, nil
}

func expandedSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += expandedSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max) + 1
	}
	return min(n, 1<<30)
}

// patterns refuses literal patterns that are no regular expressions, or too large ones, where the source has them. CEL's
// own validator makes the whole program of a pattern first.
type patterns struct{}

// Name implements cel.ASTValidator.
func (patterns) Name() string { return "refrain.patterns" }

// Validate implements cel.ASTValidator.
func (v patterns) Validate(_ *cel.Env, _ cel.ValidatorConfig, tree *ast.AST, issues *cel.Issues) {
	v.visit(tree.Expr(), issues)
}

func (v patterns) visit(e ast.Expr, issues *cel.Issues) {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == overloads.Matches {
		args := e.AsCall().Args()
		if literal := args[len(args)-1]; literal.Kind() == ast.LiteralKind {
			if source, ok := literal.AsLiteral().(types.String); ok {
				switch _, err := patternSize(string(source)); {
				case errors.Is(err, errPattern):
					issues.ReportErrorAtID(literal.ID(), "%v", err)
				case err != nil:
					issues.ReportErrorAtID(literal.ID(), "invalid matches argument")
				}
			}
		}
	}
	for _, c := range children(e) {
		v.visit(c, issues)
	}
}
