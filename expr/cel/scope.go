// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"errors"
	"fmt"

	"cel.dev/cel-go/interpreter"

	"github.com/refrain-dev/refrain/expr"
)

// activation adapts a scope to CEL, with numbers of the declared kind.
type activation struct {
	p   *program
	s   expr.Scope
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
			return bind(w.Type, x), true
		}
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }

// EvalIn implements expr.Program.
func (p *program) EvalIn(ctx context.Context, s expr.Scope) (any, error) {
	v, _, err := p.eval(ctx, s)
	return v, err
}

// eval returns the result and its cost.
func (p *program) eval(ctx context.Context, s expr.Scope) (v any, cost uint64, err error) {
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
func (p *program) evalBool(s expr.Scope) (bool, uint64, error) {
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
