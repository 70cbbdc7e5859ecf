// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// expression makes a check of an expression.
func (s Spec) expression() (func(context.Context, *Subject) finding, *Error) {
	vars := slices.Clone(Variables)
	if s.Of != "" {
		vars[0].Type = expr.Dyn // the value of the state is of any type
	}
	p, err := expr.Compile(s.Expr, vars...)
	if err != nil {
		return nil, wrongExpression(err)
	}
	switch t := p.Type(); t {
	case expr.Dyn, expr.Bool, expr.Int, expr.Double:
	default:
		return nil, &Error{Field: "expr", Message: fmt.Sprintf("the expression gives a %s, not true, false or a number from 0 to 1", t)}
	}
	return func(ctx context.Context, subject *Subject) finding {
		answer, f := s.value(subject)
		if f != nil {
			return *f
		}
		scope := &scope{subject, answer}
		v, err := p.EvalIn(ctx, scope)
		if err != nil {
			return broken("the expression fails: %v", err)
		}
		return s.valued(v, p, scope)
	}, nil
}

func wrongExpression(err error) *Error {
	e := &Error{Field: "expr", Message: err.Error(), Err: err}
	if all, ok := errors.AsType[expr.Errors](err); ok {
		first := all[0]
		e.Line, e.Column, e.Message = first.Line, first.Column, first.Msg
		if first.Suggestion != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", first.Suggestion)
		}
	}
	return e
}

// valued turns the result of an expression into a value.
func (s Spec) valued(v any, p expr.Program, scope *scope) finding {
	f := finding{reason: brief.Line(s.Expr, 80)}
	switch v := v.(type) {
	case bool:
		if v {
			f.value = 1
		}
		if is, err := p.Test(scope); err == nil && is.Op != "" {
			f.reason = fmt.Sprintf("%s: %s %s %s is %t", f.reason, display(is.Left), is.Op, display(is.Right), v)
		} else {
			f.reason = fmt.Sprintf("%s is %t", f.reason, v)
		}
		return f
	case int64:
		f.value = float64(v)
	case uint64:
		f.value = float64(v)
	case float64:
		f.value = v
	default:
		return broken("the expression gives %s, not true, false or a number from 0 to 1", brief.Line(fmt.Sprintf("%v", v), 80))
	}
	if !(f.value >= -slack && f.value <= 1+slack) {
		return broken("the expression gives %v, not a number from 0 to 1: divide it by its largest value", f.value)
	}
	f.value = min(max(f.value, 0), 1)
	f.reason = fmt.Sprintf("%s is %s", f.reason, brief.Score(f.value))
	return f
}

func display(s expr.Side) string {
	if f, ok := s.Number(); ok {
		return brief.Score(f)
	}
	if text, ok := s.Text(); ok {
		return quote(text)
	}
	return brief.Line(fmt.Sprint(s.Value), 80)
}

// scope gives an expression the values of a subject.
type scope struct {
	*Subject
	answer any
}

// Value implements [expr.Scope].
func (s *scope) Value(name string) (any, bool) {
	switch name {
	case "answer":
		return s.answer, true
	case "state":
		return s.State, true
	case "case":
		return s.Case.value(), true
	case "turn":
		n := len(s.Case.Turns)
		if n == 0 {
			return map[string]any{}, true
		}
		return s.Case.Turns[n-1].value(), true
	case "calls":
		var calls []Call
		for _, t := range s.Turns {
			calls = append(calls, t.Calls...)
		}
		return callValues(calls), true
	case "stop":
		return string(s.Stop), true
	case "score":
		return optional(s.Score), true
	case "iterations":
		return int64(s.Iterations), true
	case "usage":
		u := s.Usage
		return map[string]any{"calls": u.Calls, "tokens": u.InputTokens + u.OutputTokens, "input_tokens": u.InputTokens,
			"output_tokens": u.OutputTokens, "cached_tokens": u.CachedTokens, "cost": optional(u.Cost)}, true
	case "cost":
		return optional(s.Usage.Cost), true
	case "seconds":
		return s.Time.Seconds(), true
	case "errors":
		all := make([]any, len(s.Errors))
		for i, e := range s.Errors {
			all[i] = e
		}
		return all, true
	case "events":
		if s.Events == nil {
			return []any{}, true
		}
		return s.Events(), true
	}
	return nil, false
}

func optional(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

// value returns the case for expressions. Input and expected are those of its last turn.
func (c *Case) value() map[string]any {
	turns, tags := make([]any, len(c.Turns)), make([]any, len(c.Tags))
	for i, t := range c.Turns {
		turns[i] = t.value()
	}
	for i, t := range c.Tags {
		tags[i] = t
	}
	v := map[string]any{"id": c.ID, "group": c.Group, "tags": tags, "set": orEmpty(c.Values), "state": orEmpty(c.State), "turns": turns}
	if n := len(c.Turns); n > 0 {
		last := c.Turns[n-1].value()
		v["input"], v["expected"] = last["input"], last["expected"]
	}
	return v
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// value returns the turn for expressions.
func (t Turn) value() map[string]any {
	v := map[string]any{"input": t.Input, "expected": nil, "calls": callValues(t.Calls)}
	if t.Expected != nil {
		v["expected"] = *t.Expected
	}
	return v
}

func callValues(calls []Call) []any {
	all := make([]any, len(calls))
	for i, c := range calls {
		all[i] = map[string]any{"name": c.Name, "args": orEmpty(c.Args)}
	}
	return all
}
