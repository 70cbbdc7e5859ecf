// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/session"
)

// ExpressionConfig describes an agent that computes values of the state, in the
// language of package expr. Its expressions can read
//
//	state            the state before the task
//	prev             the state after the previous iteration; empty if there is none
//	iteration        the number of the nearest loop's iteration, from 1; 0 outside loops
//	max_iterations   that loop's limit; 0 means no limit
//	score            the last iteration's score; null if there is none
//	best_score       the best score so far; null if there is none
//	user_input       the user's request
//
// At least one of Set, Value and ExitWhen is needed.
type ExpressionConfig struct {
	Config
	// Set maps state keys to the expressions of their new values. All expressions read the state as it was before
	// the task. A null value removes the key.
	Set map[string]string
	// Value is the expression for OutputKey. The result has each key of Set and, if there is a
	// Value, the field value.
	Value string
}

// ExpressionAgent is the concrete type of [NewExpression]'s agents.
type ExpressionAgent struct {
	*drive.Base
	task
	cfg  ExpressionConfig
	set  []assignment // sorted by key
	expr expr.Program
}

// assignment is one entry of Set.
type assignment struct {
	key  string
	expr expr.Program
}

// NewExpression returns an agent that evaluates expressions. The agent's event has no text, only
// the changes of the state. NewExpression reports every mistake in the config, including
// expressions that do not compile. A program imports an engine for them: see package expr.
func NewExpression(cfg ExpressionConfig) (agent.Agent, error) {
	cfg.Set = maps.Clone(cfg.Set)
	a := &ExpressionAgent{cfg: cfg}
	keys := slices.Sorted(maps.Keys(cfg.Set))
	a.task = task{cfg: cfg.Config, do: a.do, writes: keys}
	var s source
	for _, key := range keys {
		field := fmt.Sprintf("Set[%q]", key)
		switch {
		case key == "":
			s.report(field, "the key is empty")
		case cfg.Set[key] == "":
			s.report(field, "the expression is empty; write null to remove the key")
		case key == cfg.OutputKey:
			s.report(field, "%s also writes %q; remove one", fielderror.Name("OutputKey"), key)
		case key == cfg.ResultKey:
			s.report(field, "%s also writes %q; remove one", fielderror.Name("ResultKey"), key)
		case key == "value" && cfg.Value != "":
			s.report(field, "the result already has a field of that name, for %s", fielderror.Name("Value"))
		}
		a.set = append(a.set, assignment{key, s.expression(field, cfg.Set[key], variables)})
	}
	a.expr = s.expression("Value", cfg.Value, variables)
	_, both := cfg.Set[cfg.OutputKey] // the loop above has reported it
	switch {
	case cfg.Value == "" && cfg.OutputKey != "" && !both:
		s.about("OutputKey", "is set, but no %s", fielderror.Name("Value"))
	case cfg.Value != "" && cfg.OutputKey == "" && cfg.ResultKey == "" && cfg.ExitWhen == "":
		s.about("Value", "is set, but no %s", fielderror.Name("OutputKey"))
	case cfg.Value == "" && len(cfg.Set) == 0 && cfg.ExitWhen == "":
		s.add(fielderror.Whole("there is nothing to do: set one of %s, %s and %s", fielderror.Name("Set"), fielderror.Name("Value"), fielderror.Name("ExitWhen")))
	}
	base, err := a.prepare(a, "expression", &s)
	if err != nil {
		return nil, err
	}
	a.Base = base
	return a, nil
}

// Config returns the config that the agent was made from.
func (a *ExpressionAgent) Config() ExpressionConfig { return a.cfg }

// Traits describes the agent to its caller. An agent with an ExitReason may wait, because the reason may read an
// artifact. A task that must not be done twice may wait too, because a resumed run has to find out whether it took
// place. Any other only computes, and its expressions end soon, because the engine limits them.
func (a *ExpressionAgent) Traits(durable bool) drive.Traits {
	t := a.task.Traits(durable)
	t.ComputesOnly = a.exitReason == nil && !t.Continues
	t.Inline = t.ComputesOnly
	return t
}

func (a *ExpressionAgent) do(ctx agent.InvocationContext, _ int, _ func(*session.Event, error) bool) (outcome, error) {
	vals := &scope{ctx: ctx, task: &a.task}
	out := outcome{sets: make(map[string]any, len(a.set))}
	if a.cfg.ResultKey != "" || a.exitWhen != nil { // the result is needed
		out.result = make(map[string]any, len(a.set)+1)
	}
	for _, as := range a.set {
		v, err := as.expr.EvalIn(ctx, vals)
		if err != nil {
			return outcome{}, evaluation(fmt.Sprintf("the new value of %q", as.key), err)
		}
		out.sets[as.key] = v
		if out.result != nil {
			out.result[as.key] = v
		}
	}
	if a.expr != nil {
		v, err := a.expr.EvalIn(ctx, vals)
		if err != nil {
			return outcome{}, evaluation("the value", err)
		}
		out.output = v
		if out.result != nil {
			out.result["value"] = v
		}
	}
	return out, nil
}

// evaluation adds to an error the name of the expression that failed. For a key that is not in the state it also adds
// a hint what to do.
func evaluation(what string, err error) error {
	err = fmt.Errorf("evaluate %s: %w", what, err)
	if missing, ok := errors.AsType[*expr.KeyError](err); ok && missing.Path == "state" {
		return fmt.Errorf("%w; has(state.%s) asks whether it is there", err, missing.Key)
	}
	return err
}
