// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"maps"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/expr"
)

// Variables returns the variables of ExitWhen. The other expressions of a task have the same
// variables, except result.
func Variables() []expr.Var {
	return append([]expr.Var{{Name: "result", Type: expr.Map}}, variables...)
}

// variables are the variables of every expression of a task.
var variables = []expr.Var{
	{Name: "state", Type: expr.Map},
	{Name: "prev", Type: expr.Map},
	{Name: "iteration", Type: expr.Int},
	{Name: "max_iterations", Type: expr.Int},
	{Name: "score"},
	{Name: "best_score"},
	{Name: "user_input"},
}

// ExitScope returns the values of [Variables] in the step of ctx, after a task with the given
// result has changed the state by delta. A nil in delta removes a key.
func ExitScope(ctx agent.InvocationContext, delta, result map[string]any) expr.Scope {
	return (&task{allKeys: true}).after(ctx, delta, result)
}

// after returns the scope for a task's exit condition, with delta applied to the state.
func (t *task) after(ctx agent.InvocationContext, delta, result map[string]any) *scope {
	here := drive.At(ctx)
	s := &scope{ctx: ctx, task: t, state: here.StateMap(here.Address(), t.keys, t.allKeys), result: result}
	if len(delta) > 0 {
		s.state = maps.Clone(s.state)
	}
	for key, v := range delta {
		if v == nil {
			delete(s.state, key)
		} else {
			s.state[key] = v
		}
	}
	return s
}

// scope gives an expression the values of [Variables] in the step of ctx. It computes each value when the expression asks for it.
type scope struct {
	ctx    agent.InvocationContext
	task   *task
	state  map[string]any // the keys that the task reads; nil until an expression asks for it
	result map[string]any
}

// Value implements [expr.Scope].
func (s *scope) Value(name string) (any, bool) {
	here := drive.At(s.ctx)
	l := cmp.Or(here.Loop(), new(drive.Loop))
	switch name {
	case "state":
		if s.state == nil {
			s.state = here.StateMap(here.Address(), s.task.keys, s.task.allKeys)
		}
		return s.state, true
	case "result":
		return s.result, true
	case "prev":
		if l.Prev == nil {
			return map[string]any{}, true
		}
		return l.Prev, true
	case "iteration":
		return l.Iteration, true
	case "max_iterations":
		return int(l.MaxIterations()), true
	case "score":
		return number(l.Score), true
	case "best_score":
		return number(l.BestScore), true
	case "user_input":
		if v, ok := here.Lookup("user_input"); ok {
			return v, true
		}
		return "", true
	}
	return nil, false
}

// number returns the number that a pointer points to, or nil.
func number(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}
