// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// loop checks the rules of a loop.
func (c *checker) loop(a *Agent) {
	if endless(a.Loop, a) {
		c.report(a.at("max_iterations"), CodeEndless, "%s", endlessMessage(a)).Hint = endlessHint
	}
	c.anyone(a)
	for _, e := range unjoin(a.Plan().Check()) {
		pe, ok := errors.AsType[*loop.PlanError](e)
		switch {
		case !ok:
			c.report(a.at("sub_agents"), CodeStop, "%v", e).err = e
		case strings.HasPrefix(pe.Field, "steps"):
			c.stepError(a, pe)
		case strings.HasPrefix(pe.Field, "order"):
			c.order(a, pe)
		default:
			c.planError(a, pe)
		}
	}
	c.times(a)
	c.conditionReads(a)
	c.literal(a, "goal", a.Loop.Goal)
	c.literal(a, "instructions", a.Loop.Instructions)
}

// endlessMessage says why nothing bounds a loop.
func endlessMessage(a *Agent) string {
	const never = "this loop can never stop: max_iterations is 0 and "
	if len(canExit(a)) > 0 {
		return never + "no sub-agent that has can_exit_loop has exit_when"
	}
	return never + "no sub-agent has can_exit_loop"
}

const endlessHint = "give max_iterations, timeout, stop_when, a score with target or min_delta, exit_when of a sub-agent, or can_exit_loop of one that asks a model"

// endless reports whether nothing bounds a loop.
func endless(l *Loop, a *Agent) bool {
	if l.MaxIterations > 0 || l.StopWhen != nil || stops(l.Score) {
		return false
	}
	// A preset that nobody has chosen is there to end what should have ended
	// long before.
	if l.meant && l.Timeout > 0 || l.Budget != nil && a.asksModel() {
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
	return s != nil && (s.Target != nil || s.DimensionTarget != nil || s.MinDelta != nil || s.MinDeltaPercent != nil)
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
	field, msg := planWords(e)
	p := c.report(a.at(field), CodeStop, "%s", briefWords(msg))
	p.Hint, p.err = strings.Replace(e.Hint, "lower reserve", "lower finalizer_reserve", 1), e
	_, given := a.nodes["timeout"]
	switch {
	case field == "iteration_timeout" && !given && a.Loop.Timeouts != "":
		p.Hint = fmt.Sprintf("that is the preset %s: give timeout too, or timeouts: none", a.Loop.Timeouts)
	case field == "finalizer":
		p.Message, p.Hint = fmt.Sprintf("the loop %q has no finalizer", a.Name), "give one of its sub-agents output_key: loop_output"
	}
}

// planFields are fields of a plan that the file calls otherwise.
var planFields = map[string]string{
	"reserve": "finalizer_reserve", "delay_after": "iteration_delay", "finalize_each": "finalizer", "adaptive": "adaptive_timeout",
}

// planWords is where a problem of a plan is and what it is, in the words of the
// file.
func planWords(e *loop.PlanError) (field, msg string) {
	head, rest := e.Field, ""
	if i := strings.IndexAny(head, ".["); i >= 0 {
		head, rest = head[:i], head[i:]
	}
	named, ok := planFields[head]
	if !ok {
		return e.Field, e.Msg
	}
	return named + rest, named + strings.TrimPrefix(e.Msg, head)
}

// stepError reports what is wrong with how a step is to be treated. What a step
// is, is looked at in the words of the file.
func (c *checker) stepError(a *Agent, e *loop.PlanError) {
	var i int
	if _, err := fmt.Sscanf(e.Field, "steps[%d]", &i); err != nil || i >= len(a.SubAgents) {
		return
	}
	prefix := index("steps", i) + "."
	rest, ok := strings.CutPrefix(e.Field, prefix)
	if !ok || rest == "on_error" {
		return
	}
	field, msg := planWords(&loop.PlanError{Field: rest, Msg: strings.TrimPrefix(e.Msg, prefix)})
	p := c.report(a.SubAgents[i].at(field), CodeStop, "%s", briefWords(msg))
	p.Hint, p.err = e.Hint, e
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
	if l.NoProgress != nil {
		for i, key := range l.NoProgress.Keys {
			c.reads = append(c.reads, read{agent: a, field: index("no_progress.keys", i), name: key, bare: true, line: 1, column: 1})
		}
	}
	if l.Result != "" {
		c.reads = append(c.reads, read{agent: a, field: "result", name: l.Result, bare: true, line: 1, column: 1})
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
	p, err := expr.Compile(src, vocabulary.ConditionVariables...)
	if err != nil {
		keys, all := expr.Reads(src, "state") // the rest is reported by the plan
		c.keyReads(a, field, src, keys, all)
		return
	}
	c.programReads(a, field, p)
}
