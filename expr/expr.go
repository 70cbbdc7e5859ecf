// SPDX-License-Identifier: Apache-2.0

// Package expr has the expressions of conditions, scores and tasks: typed, without side effects, over the values of a run.
// [Number], [JSON] and [Says] read the answers of models.
//
// An engine compiles the expressions. The engine is package expr/cel, which a program has to import, if only for that:
//
//	import _ "github.com/refrain-dev/refrain/expr/cel"
//
//	p, err := expr.Compile("state.score >= 8.0", expr.Var{Name: "state", Type: expr.Map})
//	...
//	ok, err := expr.EvalBool(p, map[string]any{"state": state})
//
// A program that sets no expression needs no engine and is 8 MB smaller. Package definition imports the engine.
package expr

import (
	"context"
	"errors"
	"math"
)

// Program is a compiled expression. It is safe for concurrent use.
//
// The result of an expression is an int64, float64, string, bool, []any, map[string]any or nil, or a uint64 for an integer too
// large for an int64; a time is a text in RFC 3339, a duration a text such as "90s". It shares nothing with the values of the
// variables. A missing key is a [*KeyError]. A variable without a value, an operation on types that do not fit, and a cost above
// the engine's limit are errors too.
type Program interface {
	// String returns the source.
	String() string
	// Type returns the type of the result, or Dyn if it is not known before evaluation.
	Type() Type
	// EvalIn evaluates the expression. It stops when ctx ends, with an error that wraps the cause.
	EvalIn(ctx context.Context, s Scope) (any, error)
	// Test evaluates a condition: a result that is not a bool is an error. It also returns the compared values, unless that would
	// cost too much.
	Test(s Scope) (Verdict, error)
	// Reads returns the keys of the variable root that the expression can read, by state.key, state["key"], "key" in state or
	// has(state.key), sorted. all is true if it may read any key: it indexes by a computed key or uses the whole map.
	Reads(root string) (keys []string, all bool)
	// Compared returns the keys of the variable root that the expression compares directly with a number, such as
	// state.review >= 8, sorted.
	Compared(root string) []string
}

// ErrNoEngine is the error of Compile in a program that imports no engine.
var ErrNoEngine = errors.New("expressions need an engine, which this program does not have; " +
	`add import _ "github.com/refrain-dev/refrain/expr/cel"`)

// engine compiles expressions; nil if the program imports none.
var engine func(src string, vars ...Var) (Program, error)

// Register sets the engine that [Compile] uses. The package of an engine calls it in its init. It panics if there is one already.
func Register(compile func(src string, vars ...Var) (Program, error)) {
	if engine != nil {
		panic("expr: a second engine is registered")
	}
	engine = compile
}

// Compile compiles a source and checks it against the variables. Its error is [Errors], with a position for each mistake, or
// [ErrNoEngine].
func Compile(src string, vars ...Var) (Program, error) {
	if engine == nil {
		return nil, ErrNoEngine
	}
	return engine(src, vars...)
}

// Eval evaluates an expression with the values of its variables.
func Eval(p Program, vals map[string]any) (any, error) {
	return p.EvalIn(context.Background(), Values(vals))
}

// EvalBool is Eval for a condition: a result that is not a bool is an error.
func EvalBool(p Program, vals map[string]any) (bool, error) {
	v, err := p.Test(Values(vals))
	return v.Holds, err
}

// Type is the type of a variable.
type Type string

// The types of variables. Dyn, the zero value, is a type that is known only when the expression is
// evaluated.
const (
	Dyn        Type = ""
	Bool       Type = "bool"
	Int        Type = "int"
	Double     Type = "double"
	String     Type = "string"
	List       Type = "list"         // of anything
	ListDouble Type = "list(double)" // of float64
	Map        Type = "map"          // text keys, any values
)

// Var declares a variable of an expression.
type Var struct {
	Name string
	Type Type
}

// Scope gives an expression the values of its variables when they are needed, without a map of all
// of them.
type Scope interface {
	// Value returns the value of a variable; ok is false if it has none.
	Value(name string) (v any, ok bool)
}

// Values is a [Scope] made from a map.
type Values map[string]any

// Value implements Scope.
func (m Values) Value(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// exact is the largest int up to which a float64 holds every int exactly.
const exact = 1<<53 - 1

// Verdict is the result of a condition.
type Verdict struct {
	Holds bool
	// Op is the outermost comparison, > >= < <= == or !=, and Left and Right are the values of its
	// sides; "" if the condition is not a comparison.
	Op          string
	Left, Right Side
}

// Side is one side of a comparison.
type Side struct {
	// Value is its value; see [Program].
	Value any
}

// Number returns the side's number; ok is false if it is not a number, or one that a float64
// does not hold exactly.
func (s Side) Number() (f float64, ok bool) {
	switch x := s.Value.(type) {
	case int64:
		return float64(x), math.Abs(float64(x)) <= exact
	case float64:
		return x, x == x
	}
	return 0, false
}

// Text returns the side's text; ok is false if it is not a text.
func (s Side) Text() (text string, ok bool) {
	text, ok = s.Value.(string)
	return text, ok
}
