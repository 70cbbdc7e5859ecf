// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"context"
	"fmt"

	"cel.dev/cel-go/interpreter"
)

// Scope gives an expression the values of its variables when they are needed, without a map of all
// of them.
type Scope interface {
	// Value returns the value of a variable; ok is false if it has none.
	Value(name string) (v any, ok bool)
	// Number is Value for a number, without allocation. It is called first, with the whole path in
	// the source, such as "score" or "usage.tokens". whole says that the number is an int. If ok is
	// false, Value is called.
	Number(path string) (f float64, whole, ok bool)
}

// Keyed is a [Scope] that gives a key of a variable without the map that the variable is. ok is
// false if the map has no such key, or if only the map can tell.
type Keyed interface {
	Key(variable, key string) (v any, ok bool)
}

// Values is a [Scope] made from a map.
type Values map[string]any

// Value implements Scope.
func (m Values) Value(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// Number implements Scope.
func (m Values) Number(string) (float64, bool, bool) { return 0, false, false }

// activation is a scope as CEL wants it, with numbers of the declared kind.
type activation struct {
	p *Program
	s Scope
}

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	for i := range a.p.vars {
		if w := &a.p.vars[i]; w.Name == name {
			x, ok := a.s.Value(name)
			if !ok {
				return nil, false
			}
			return w.bind(x), true
		}
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }

// EvalIn is Eval with a scope, interrupted when ctx ends.
func (p *Program) EvalIn(ctx context.Context, s Scope) (any, error) {
	if v, ok := p.direct.eval(s); ok {
		return v.plain(), nil
	}
	return p.evalCEL(ctx, s)
}

func (p *Program) evalCEL(ctx context.Context, s Scope) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("evaluate: %v", r)
		}
	}()
	out, _, err := p.prg.ContextEval(ctx, &activation{p, s})
	if err != nil {
		return nil, p.evalError(err)
	}
	return plain(out)
}

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
	v    scalar
	rest any // what is no scalar
}

// Number returns the side's number; ok is false if it is not a number.
func (s Side) Number() (f float64, ok bool) { return s.v.num, s.v.kind == aNumber }

// Text returns the side's text; ok is false if it is not a text.
func (s Side) Text() (text string, ok bool) { return s.v.text, s.v.kind == aText }

// Plain returns the side's value; see [Program.Eval].
func (s Side) Plain() any {
	if s.v.kind == other {
		return s.rest
	}
	return s.v.plain()
}

// Test is EvalBool with a scope. It also returns what was compared, without evaluating anything
// twice.
func (p *Program) Test(s Scope) (Verdict, error) {
	if d := p.direct; d != nil && d.op == compares {
		l, okL := d.args[0].eval(s)
		r, okR := d.args[1].eval(s)
		if okL && okR {
			if holds, ok := compare(d.name, l, r); ok {
				return Verdict{Holds: holds, Op: d.name, Left: Side{v: l}, Right: Side{v: r}}, nil
			}
		}
	} else if v, ok := d.eval(s); ok && v.kind == aBool {
		return Verdict{Holds: v.num != 0}, nil
	}
	if c, ok := p.Comparison(); ok {
		l, errL := c.Left.EvalIn(context.Background(), s)
		r, errR := c.Right.EvalIn(context.Background(), s)
		if errL == nil && errR == nil {
			v := Verdict{Op: c.Op, Left: sideOf(l), Right: sideOf(r)}
			if v.Holds, ok = compare(c.Op, v.Left.v, v.Right.v); ok {
				return v, nil
			}
			holds, err := p.evalBool(s)
			v.Holds = holds
			return v, err
		}
	}
	holds, err := p.evalBool(s)
	return Verdict{Holds: holds}, err
}

func sideOf(v any) Side {
	if sc, ok := scalarOf(v); ok {
		return Side{v: sc}
	}
	return Side{rest: v}
}

func (p *Program) evalBool(s Scope) (bool, error) {
	v, err := p.evalCEL(context.Background(), s)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("gives %s, not true or false", describe(v))
	}
	return b, nil
}
