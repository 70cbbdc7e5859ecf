// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// task is the part of an agent that all kinds of tasks share.
type task struct {
	cfg        Config
	do         doing
	exitWhen   expr.Program
	exitReason *template.Template
	reads      []Read
	writes     []string
	json       bool // the task's output is JSON

	waits time.Duration // the longest wait for a limit; with 0 the task does not wait and fails

	keys    []string // the state keys that the expressions read
	allKeys bool     // the expressions may read any key
}

// doing is a function that does a task. round is the number of earlier times that the task was done again in this attempt,
// after a decision of settle or after a wait for a limit. The function may yield partial events, which the log does not store.
type doing func(ctx agent.InvocationContext, round int, yield func(*session.Event, error) bool) (outcome, error)

// outcome is the outcome of a task. A result together with an error means that the task ran and
// failed.
type outcome struct {
	words  string         // the text of the agent's event
	output any            // the value for OutputKey
	sets   map[string]any // the values for other keys
	result map[string]any // the value for ResultKey

	limit *limit        // the provider's limit that made the task fail; nil if the task failed for another reason
	used  *budget.Usage // the usage of a coding agent; nil for any other task
	model string        // the model that the coding agent has asked

	warning string // a text about the step, for a person
	// unfinished reports that a coding agent has failed and may have changed files before.
	unfinished bool
}

// prepare parses the fields that all tasks share and makes the base of self. Its error reports every mistake
// in the config, with those that s has collected before.
func (t *task) prepare(self agent.Agent, kind string, s *source) (*drive.Base, error) {
	cfg := &t.cfg
	base, err := drive.NewBase(cfg.base(), self, t.run)
	if err != nil {
		s.errs = append([]error{err}, s.errs...)
	}
	t.exitWhen = s.condition("ExitWhen", cfg.ExitWhen)
	if cfg.ExitReason != "" {
		t.exitReason = s.template("ExitReason", cfg.ExitReason, template.Canonical)
		if cfg.ExitWhen == "" {
			s.about("ExitReason", "is set, but no %s", fielderror.Name("ExitWhen"))
		}
	}
	if err := cfg.Effect.Check(); err != nil {
		s.errs = append(s.errs, err)
	}
	if cfg.Reconcile != nil && cfg.Effect != agent.AtMostOnce {
		s.about("Reconcile", "is set, but %s is not %s", fielderror.Name("Effect"), agent.AtMostOnce)
	}
	if cfg.OutputKey != "" && cfg.OutputKey == cfg.ResultKey {
		s.add(fielderror.Whole("%s and %s are both %q", fielderror.Name("OutputKey"), fielderror.Name("ResultKey"), cfg.OutputKey))
	}
	for _, key := range []string{cfg.ResultKey, cfg.OutputKey} {
		if key != "" && !slices.Contains(t.writes, key) {
			t.writes = slices.Insert(t.writes, 0, key)
		}
	}
	t.reads, t.keys, t.allKeys = s.reads, s.keys, s.allKeys
	if len(s.errs) > 0 {
		return nil, fmt.Errorf("%s agent %q: %w", kind, cfg.Name, errors.Join(s.errs...))
	}
	return base, nil
}

// Type returns [agent.TypeTask].
func (t *task) Type() agent.Type { return agent.TypeTask }

// Reads lists the places where the agent's templates and expressions name a key: first the fields
// of its kind, then those that all tasks have.
func (t *task) Reads() []Read { return slices.Clone(t.reads) }

// Writes lists the state keys that the agent writes, each once: OutputKey,
// ResultKey, and then the keys that an expression sets, sorted. Keys that [CommandConfig].Around sets, and the
// key of a coding agent's conversation, are not among them.
func (t *task) Writes() []string { return slices.Clone(t.writes) }

// run does the task and yields its one event.
func (t *task) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	out, err, done := t.settled(ctx, yield)
	if !done {
		return
	}
	var ev *session.Event
	if err == nil {
		ev, err = t.event(ctx, &out)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		yield(nil, context.Cause(ctx))
		return
	case out.result != nil && t.cfg.ResultKey != "" || len(out.sets) > 0:
		delta := out.sets
		if delta == nil {
			delta = make(map[string]any, 1)
		}
		if out.result != nil && t.cfg.ResultKey != "" {
			delta[t.cfg.ResultKey] = out.result
		}
		ev = &session.Event{Actions: session.EventActions{StateDelta: delta}}
		out.spent(ev)
		t.failed(ev, err)
	}
	if ev != nil && says(ev) && !yield(ev, nil) {
		return
	}
	if err != nil {
		yield(nil, err)
	}
}

// settled does the task, unless the log has its result or the step has to wait for a person. done reports whether out
// and err are the task's outcome, which the caller yields. If done is false, settled has yielded everything itself.
func (t *task) settled(ctx agent.InvocationContext, yield func(*session.Event, error) bool) (out outcome, err error,
	done bool) {
	round, lost := 0, false
	var w waiting
	if t.waits > 0 && !t.replays(ctx, &w, yield) {
		return out, nil, false
	}
	for {
		if t.once() {
			begun, todo := t.asked(ctx, yield)
			if todo {
				round, todo = t.settle(ctx, round, begun, lost, yield)
			}
			if !todo {
				return out, nil, false
			}
		}
		out, err = t.do(ctx, round+w.n, yield)
		if q, ok := errors.AsType[*QuestionError](err); ok && ctx.Err() == nil {
			if _, err := drive.At(ctx).Ask(nil, q.Question, yield); err != nil {
				yield(nil, err)
			}
			return out, nil, false
		}
		if out.limit != nil && t.waits > 0 && ctx.Err() == nil {
			if more := t.wait(ctx, &w, &out, &err, yield); more {
				continue
			}
			return out, err, err != nil
		}
		if !t.isLost(err) || ctx.Err() != nil {
			return out, err, true
		}
		lost = true
	}
}

// says reports whether an event has content, changes of the state, or a request to leave the loop.
func says(ev *session.Event) bool {
	return ev.Content != nil || len(ev.Actions.StateDelta) > 0 || ev.Actions.Escalate
}

// event returns the event of a task that succeeded.
func (t *task) event(ctx agent.InvocationContext, out *outcome) (*session.Event, error) {
	delta := out.sets
	if delta == nil {
		delta = make(map[string]any, 2)
	}
	if t.cfg.OutputKey != "" {
		delta[t.cfg.OutputKey] = out.output
	}
	if t.cfg.ResultKey != "" {
		delta[t.cfg.ResultKey] = out.result
	}
	ev := &session.Event{Actions: session.EventActions{StateDelta: delta}}
	out.spent(ev)
	if out.warning != "" {
		drive.Annotate(ev, mark.MetadataWarning, out.warning)
	}
	if out.words != "" {
		ev.Content = genai.NewContentFromText(out.words, genai.RoleModel)
	}
	if t.exitWhen == nil {
		return ev, nil
	}
	leave, err := t.leave(ctx, delta, out.result)
	if err != nil {
		return nil, err
	}
	if !leave {
		return ev, nil
	}
	reason, err := t.reason(ctx, delta, out.result)
	if err != nil {
		return nil, err
	}
	ev.Actions.Escalate = true
	ev.Actions.Exit = &session.Exit{By: t.cfg.Name, Reason: reason}
	return ev, nil
}

// leave reports whether the task asks to leave the loop.
func (t *task) leave(ctx agent.InvocationContext, delta, result map[string]any) (bool, error) {
	leave, err := t.exitWhen.Test(t.after(ctx, delta, result))
	if err != nil {
		return false, evaluation("the exit condition", err)
	}
	return leave.Holds, nil
}

// reason returns the reason for which the task asks to leave the loop.
func (t *task) reason(ctx agent.InvocationContext, delta, result map[string]any) (string, error) {
	if t.exitReason == nil {
		return t.exitWhen.String(), nil
	}
	lookup := drive.At(ctx).Lookup
	return requesttemplate.Fill("ExitReason", t.exitReason, func(name string) (any, bool) {
		if name == "result" {
			return result, true
		}
		if v, ok := delta[name]; ok {
			return v, v != nil
		}
		return lookup(name)
	})
}
