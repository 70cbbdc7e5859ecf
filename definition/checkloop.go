// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// loop checks the rules of a loop.
func (c *checker) loop(a *Agent) {
	if endless(a.Loop, a) {
		c.report(a.at("max_iterations"), CodeEndless, "%s", endlessMessage(a)).Hint = endlessHint
	}
	c.anyone(a)
	for _, e := range unjoin(plan(a).Check()) {
		pe, ok := errors.AsType[*loop.PlanError](e)
		switch {
		case !ok:
			c.report(a.at("sub_agents"), CodeStop, "%v", e).err = e
		case strings.HasPrefix(pe.Field, "steps"): // is looked at in words of the file
		case strings.HasPrefix(pe.Field, "order"):
			c.order(a, pe)
		default:
			c.planError(a, pe)
		}
	}
	c.conditionReads(a)
}

// endlessMessage says why nothing bounds a loop.
func endlessMessage(a *Agent) string {
	const never = "this loop can never stop: max_iterations is 0 and "
	if len(canExit(a)) > 0 {
		return never + "no sub-agent that has can_exit_loop has exit_when"
	}
	return never + "no sub-agent has can_exit_loop"
}

const endlessHint = "give max_iterations, stop_when, a score with target or min_delta, exit_when of a sub-agent, or can_exit_loop of one that asks a model"

// endless reports whether nothing bounds a loop.
func endless(l *Loop, a *Agent) bool {
	if l.MaxIterations > 0 || l.StopWhen != nil {
		return false
	}
	if stops(l.Score) {
		return false
	}
	for _, sub := range a.SubAgents {
		if sub.OutputKey != LoopOutput && exits(sub) {
			return false
		}
	}
	return true
}

// stops reports whether a score can end its loop.
func stops(s *loop.Score) bool {
	return s != nil && (s.Target != nil || s.MinDelta != nil || s.MinDeltaPercent != nil)
}

// order reports what is wrong with an order, if all of its names are known.
func (c *checker) order(a *Agent, e *loop.PlanError) {
	if a.incomplete() || len(a.SubAgents) == 0 {
		return
	}
	for _, sub := range a.SubAgents {
		if sub.Name == "" {
			return
		}
	}
	p := c.report(a.at(e.Field), CodeOrder, "%s", e.Msg)
	p.Hint, p.err = e.Hint, e
}

func (c *checker) planError(a *Agent, e *loop.PlanError) {
	if errs, ok := errors.AsType[expr.Errors](e.Err); ok {
		c.inside(a, e.Field, errs)
		return
	}
	p := c.report(a.at(e.Field), CodeStop, "%s", e.Msg)
	p.Hint, p.err = e.Hint, e
}

// plan is the loop's plan, as far as the definition goes.
func plan(a *Agent) *loop.Plan {
	l := a.Loop
	p := &loop.Plan{
		Name: a.Name, MaxIterations: l.MaxIterations, Order: l.Order, CanExit: canExit(a),
		StopWhen: l.StopWhen, StopCheck: l.StopCheck, Score: l.Score,
		OnError: a.OnError, MaxConsecutiveFailures: l.MaxConsecutiveFailures,
	}
	for _, sub := range a.SubAgents {
		p.Steps = append(p.Steps, loop.Step{Name: sub.Name, Finalizer: sub.OutputKey == LoopOutput})
	}
	return p
}

// unjoin takes errors.Join apart.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// conditionReads notes what the expressions of a loop read.
func (c *checker) conditionReads(a *Agent) {
	l := a.Loop
	if l.StopWhen != nil {
		c.conditionRead(a, "stop_when", l.StopWhen)
	}
	if l.Score == nil {
		return
	}
	if l.Score.Key != "" {
		c.reads = append(c.reads, read{agent: a, field: "score.key", name: l.Score.Key, bare: true, line: 1, column: 1})
	}
	if l.Score.Expr != "" {
		c.expressionReads(a, "score.expr", l.Score.Expr)
	}
}

func (c *checker) conditionRead(a *Agent, field string, cond *loop.Condition) {
	if cond.Expr != "" {
		c.expressionReads(a, field, cond.Expr)
	}
	for i := range cond.Any {
		c.conditionRead(a, index(field+".any", i), &cond.Any[i])
	}
	for i := range cond.All {
		c.conditionRead(a, index(field+".all", i), &cond.All[i])
	}
	if cond.Not != nil {
		c.conditionRead(a, field+".not", cond.Not)
	}
}

func (c *checker) expressionReads(a *Agent, field, src string) {
	p, err := expr.Compile(src, conditionVariables...)
	if err != nil {
		return // reported by the plan
	}
	c.programReads(a, field, p)
}
