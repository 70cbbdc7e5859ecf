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
}

// Values is a [Scope] made from a map.
type Values map[string]any

// Value implements Scope.
func (m Values) Value(name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// activation adapts a scope to CEL, with numbers of the declared kind.
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
func (p *Program) EvalIn(ctx context.Context, s Scope) (v any, err error) {
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

func (p *Program) evalBool(s Scope) (bool, error) {
	v, err := p.EvalIn(context.Background(), s)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("gives %s, not true or false", describe(v))
	}
	return b, nil
}
