// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// Plan returns the rules that a run of the loop follows; nil for an agent that is no
// loop. The checks and [Definition.Worst] look at this plan, rehearsals play it, and
// the loop agent that [Definition.Build] makes follows it. Do not change what its
// pointers lead to: they are the definition's.
func (a *Agent) Plan() *loop.Plan {
	if a.Type != TypeLoop {
		return nil
	}
	return a.planWith(a.Loop)
}

// planWith is the plan of a loop with l in place of what the file says of it. A
// limit from outside makes the difference.
func (a *Agent) planWith(l *Loop) *loop.Plan {
	onError := a.OnError
	if l.ContinueOnError {
		onError = loop.NextIteration
	}
	p := &loop.Plan{
		Name: a.Name, MaxIterations: l.MaxIterations, Order: slices.Clone(l.Order), CanExit: canExit(a),
		StopWhen: l.StopWhen, StopCheck: l.StopCheck, Score: l.Score,
		OnError: onError, MaxConsecutiveFailures: l.MaxConsecutiveFailures,
		Timeout: loop.Duration(l.Timeout), IterationTimeout: loop.Duration(l.IterationTimeout),
		Budget: l.Budget, FinalizerReserve: l.FinalizerReserve, NoProgress: l.NoProgress, NotWorth: l.NotWorth,
		QualityGate: l.QualityGate, OnRegression: l.OnRegression, BestOnExit: l.BestOnExit,
		FinalizeEach: l.FinalizeEach,
		DelayAfter:   loop.Duration(l.IterationDelay), StateLimit: l.StateLimit,
	}
	for _, sub := range a.SubAgents {
		p.Steps = append(p.Steps, sub.planStep())
	}
	return p
}

// planStep is how the loop around the agent treats it.
func (a *Agent) planStep() loop.Step {
	s := loop.Step{Name: a.Name, Finalizer: a.OutputKey == LoopOutput, OnError: a.OnError}
	if own := a.Step; own != nil {
		s.Timeout, s.AdaptiveTimeout, s.Retry, s.Circuit = loop.Duration(own.Timeout), own.AdaptiveTimeout, own.Retry,
			own.Circuit
		s.DelayBefore, s.DelayAfter = loop.Duration(own.DelayBefore), loop.Duration(own.DelayAfter)
	}
	return s
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
		p.Hint = fmt.Sprintf("this limit is from the preset %s; set timeout too, or timeouts: none", a.Loop.Timeouts)
	case field == "finalizer":
		p.Message, p.Hint = fmt.Sprintf("the loop %q has no finalizer", a.Name),
			"give one of its sub-agents output_key: loop_output"
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
