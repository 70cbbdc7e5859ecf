// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"context"
	"errors"
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
	p   *Program
	s   Scope
	ctx context.Context
}

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	if name == ctxName {
		return a.ctx, true
	}
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

// EvalIn is Eval with a scope, interrupted when ctx ends. If ctx ends first, the error wraps its cause.
func (p *Program) EvalIn(ctx context.Context, s Scope) (any, error) {
	v, _, err := p.eval(ctx, s)
	return v, err
}

// eval returns the result and its cost.
func (p *Program) eval(ctx context.Context, s Scope) (v any, cost uint64, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("evaluate: %v", r)
		}
	}()
	if ctx.Err() != nil {
		return nil, 0, fmt.Errorf("evaluate: %w", context.Cause(ctx))
	}
	out, details, err := p.prg.ContextEval(ctx, &activation{p, s, ctx})
	if c := details.ActualCost(); c != nil {
		cost = *c
	}
	if c, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && c.Cause == interpreter.ContextCancelled {
		return nil, cost, fmt.Errorf("evaluate: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, cost, p.evalError(err)
	}
	v, err = plain(out)
	return v, cost, err
}

// evalBool evaluates a condition and returns its cost.
func (p *Program) evalBool(s Scope) (bool, uint64, error) {
	v, cost, err := p.eval(context.Background(), s)
	if err != nil {
		return false, 0, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, 0, fmt.Errorf("gives %s, not true or false", describe(v))
	}
	return b, cost, nil
}
