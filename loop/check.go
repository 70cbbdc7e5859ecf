// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// PlanError is one problem of a plan.
type PlanError struct {
	// Step is the number of the step that has the problem, from 1; 0 if the problem is the plan's own.
	Step int
	// Field is the JSON path of the wrong field in the step or in the plan, such as retry.attempts, order, stop_when.any[0] or
	// score.target. It is empty for a step itself.
	Field string
	// Subject is the JSON path of the field with which the message begins: Field, or a field around it. It is empty if Msg
	// is a whole sentence.
	Subject string
	Msg     string // what is wrong with the subject, such as "is negative: -1"
	Hint    string // what to do about it; may be empty
	// Suggestion is the name that Hint proposes instead of an unknown one; may be empty.
	Suggestion string
	Err        error // an expression's expr.Errors; else nil
}

// Path returns the JSON path of the wrong field in the plan, such as steps[0].retry.attempts.
func (e *PlanError) Path() string { return e.inStep(e.Field) }

// inStep returns the path in the plan of a field of the step.
func (e *PlanError) inStep(field string) string {
	if e.Step == 0 {
		return field
	}
	return strings.TrimSuffix(fmt.Sprintf("steps[%d].%s", e.Step-1, field), ".")
}

// Message returns what is wrong, with another name for the subject. It ignores the name if the error has no subject.
func (e *PlanError) Message(subject string) string {
	switch {
	case e.Subject == "":
		return e.Msg
	case e.Err != nil:
		return subject + ": " + e.Msg
	}
	return subject + " " + e.Msg
}

// Error returns the message with the subject's path in the plan, followed by Hint in parentheses if there is one.
func (e *PlanError) Error() string {
	text := e.Message(e.inStep(e.Subject))
	if e.Hint == "" {
		return text
	}
	return text + " (" + e.Hint + ")"
}

// Unwrap returns Err.
func (e *PlanError) Unwrap() error { return e.Err }

// Check returns all problems of the plan, joined, each a [*PlanError]. It also compiles the
// expressions, so that Add does not compile them. In a program without an engine for them, one of the
// problems is [expr.ErrNoEngine].
func (p *Plan) Check() error {
	var c checker
	if p.Version > latestRules {
		c.add("rules", fmt.Sprintf("the plan follows version %d of the rules, and this program knows %d", p.Version, latestRules),
			"use the version of refrain that made the plan, or a later one")
	}
	c.steps(p)
	if len(p.Order) > 0 {
		c.order(p)
	}
	c.policy("on_error", p.OnError)
	switch p.StopCheck {
	case "", EachIteration, EachStep:
	default:
		c.about("stop_check", fmt.Sprintf("is %q", p.StopCheck), `use "iteration" or "step"`)
	}
	if p.StopWhen != nil {
		c.condition("stop_when", p.StopWhen)
	}
	if p.Score != nil {
		c.score(p.Score)
	}
	c.limits(p)
	c.acceptance(p)
	if c.noEngine != "" { // reported once, and not for each part of a condition
		c.errs = append(c.errs, &PlanError{Field: c.noEngine, Subject: c.noEngine, Msg: expr.ErrNoEngine.Error(), Err: expr.ErrNoEngine})
	}
	return errors.Join(c.errs...)
}

// checker collects the problems of a plan.
type checker struct {
	errs     []error
	step     int    // the number of the step that is checked; 0 outside of steps
	noEngine string // the first field with an expression, if no engine can compile it
}

// add reports a problem in a whole sentence.
func (c *checker) add(field, msg, hint string) { c.part(field, "", msg, hint) }

// about reports what is wrong with a field.
func (c *checker) about(field, msg, hint string) { c.part(field, field, msg, hint) }

// part reports a wrong field, with a message about the subject, which is a field around it.
func (c *checker) part(field, subject, msg, hint string) {
	c.errs = append(c.errs, &PlanError{Step: c.step, Field: field, Subject: subject, Msg: msg, Hint: hint})
}

// reportUnknown reports a name that is not in names. The hint suggests a similar name; if there is none, the hint is
// otherwise.
func (c *checker) reportUnknown(field, subject, msg, name string, names []string, otherwise string) {
	e := &PlanError{Step: c.step, Field: field, Subject: subject, Msg: msg, Hint: otherwise}
	if near := suggest.Nearest(name, names); near != "" {
		e.Hint, e.Suggestion = fmt.Sprintf("did you mean %q?", near), near
	}
	c.errs = append(c.errs, e)
}

// steps checks the names of the steps, and that there is at least one step and at most one finalizer.
func (c *checker) steps(p *Plan) {
	regular, final := 0, -1
	for i, s := range p.Steps {
		c.step = i + 1
		if s.Name == "" {
			c.add("", fmt.Sprintf("step %d has no name", i+1), "")
		} else if slices.ContainsFunc(p.Steps[:i], func(o Step) bool { return o.Name == s.Name }) {
			c.add("", fmt.Sprintf("two steps are called %q", s.Name), "")
		}
		c.policy("on_error", s.OnError)
		switch {
		case !s.Finalizer:
			regular++
		case final >= 0:
			c.add("", fmt.Sprintf("two finalizers: %q and %q", p.Steps[final].Name, s.Name),
				"a loop has at most one")
		default:
			final = i
		}
	}
	c.step = 0
	switch {
	case len(p.Steps) == 0:
		c.add("steps", "the loop has no steps", "")
	case regular == 0:
		c.add("steps", fmt.Sprintf("the loop has no steps besides its finalizer %q", p.Steps[final].Name), "")
	}
}

func (c *checker) policy(field string, e ErrorPolicy) {
	switch e {
	case "", StopOnError, SkipStep, NextIteration:
	default:
		c.about(field, fmt.Sprintf("is %q", e), `use "stop", "skip_step" or "next_iteration"`)
	}
}

func (c *checker) order(p *Plan) {
	var names []string
	for _, s := range p.Steps {
		if !s.Finalizer {
			names = append(names, s.Name)
		}
	}
	for i, n := range p.Order {
		field := fmt.Sprintf("order[%d]", i)
		switch {
		case slices.Contains(p.Order[:i], n):
			c.add(field, fmt.Sprintf("Order names %q twice", n), "")
		case slices.Contains(names, n):
		case slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Name == n }):
			c.add(field, fmt.Sprintf("Order names the finalizer %q", n), "it runs after the last iteration")
		default:
			c.reportUnknown(field, "", "Order name not found in agent names: "+n, n, names, "")
		}
	}
	for _, n := range names {
		if !slices.Contains(p.Order, n) {
			c.add("order", fmt.Sprintf("Order leaves out %q", n), "it must name every agent once")
		}
	}
}

func (c *checker) condition(field string, cond *Condition) {
	set := 0
	for _, is := range []bool{cond.Expr != "", cond.Any != nil, cond.All != nil, cond.Not != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		c.about(field, fmt.Sprintf("has %d of expr, any, all and not", set), "give exactly one")
	}
	if cond.Any != nil && len(cond.Any) == 0 || cond.All != nil && len(cond.All) == 0 {
		c.about(field, "is an empty list", "")
	}
	if cond.Expr != "" {
		c.expression(field, cond.Expr, expr.Bool)
	}
	for i := range cond.Any {
		c.condition(fmt.Sprintf("%s.any[%d]", field, i), &cond.Any[i])
	}
	for i := range cond.All {
		c.condition(fmt.Sprintf("%s.all[%d]", field, i), &cond.All[i])
	}
	if cond.Not != nil {
		c.condition(field+".not", cond.Not)
	}
}

func (c *checker) expression(field, src string, want ...expr.Type) {
	q, err := compile(src)
	if errors.Is(err, expr.ErrNoEngine) {
		top, _, _ := strings.Cut(field, ".")
		c.noEngine = cmp.Or(c.noEngine, top)
		return
	}
	if err != nil {
		c.errs = append(c.errs, &PlanError{Field: field, Subject: field, Msg: err.Error(), Err: err})
		return
	}
	if got := q.Type(); got != expr.Dyn && !slices.Contains(want, got) {
		c.about(field, fmt.Sprintf("gives %s, not %s", got, want[0]), "")
	}
}

// whole reports a problem if score.expr gives a plain number although the plan needs dimensions.
func (c *checker) whole(s *Score) {
	q, err := compile(s.Expr)
	if err != nil || q.Type() != expr.Double && q.Type() != expr.Int {
		return
	}
	field := "score.dimension_target"
	if s.DimensionTarget == nil {
		field = "score.dimensions"
	}
	c.about(field, "can never be met: score.expr gives a number, which has no dimensions",
		"read the score from a key that holds them")
}

// score checks how the plan scores an iteration, and the thresholds of the score.
func (c *checker) score(s *Score) {
	switch {
	case s.Key == "" && s.Expr == "" && (s.Target != nil || s.DimensionTarget != nil || s.MinDelta != nil ||
		s.MinDeltaPercent != nil):
		c.about("score", "has a threshold, but nothing says what the score is", "give key or expr")
	case s.Key == "" && s.Expr == "":
		c.about("score", "has neither key nor expr", "")
	case s.Key != "" && s.Expr != "":
		c.about("score", "has both key and expr", "give one of them")
	}
	if s.Expr != "" {
		c.expression("score.expr", s.Expr, expr.Double, expr.Int)
		if s.DimensionTarget != nil || len(s.Dimensions) > 0 {
			c.whole(s)
		}
	}
	if s.Holdout != "" && s.Holdout == s.Key {
		c.about("score.holdout", fmt.Sprintf("is %q, the key of the score itself", s.Key), "name the key of another step")
	}
	if s.Label != "" && s.Field != "" {
		c.about("score", "has both label and field", "give one of them")
	}
	if strings.TrimSpace(s.Label) == "" && s.Label != "" {
		c.about("score.label", "is blank", "")
	}
	c.finite("score.target", s.Target)
	c.threshold("score.min_delta", s.MinDelta)
	c.threshold("score.min_delta_percent", s.MinDeltaPercent)
	if s.Patience > 0 && s.MinDelta == nil && s.MinDeltaPercent == nil {
		c.about("score.patience", "has nothing to wait for", "give min_delta or min_delta_percent")
	}
}

func (c *checker) finite(field string, f *float64) bool {
	if f == nil || !math.IsNaN(*f) && !math.IsInf(*f, 0) {
		return true
	}
	c.about(field, fmt.Sprintf("is %v", *f), "give a finite number")
	return false
}

func (c *checker) threshold(field string, f *float64) {
	if c.finite(field, f) && f != nil && *f < 0 {
		c.about(field, fmt.Sprintf("is negative: %v", *f), "")
	}
}
