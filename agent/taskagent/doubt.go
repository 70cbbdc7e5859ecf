// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Traits describes the task to its caller. A resumed run continues a task that must not be done twice, because it must
// find out whether the task took place, and a task that may wait for a limit, because it waits for the rest of the time.
func (t *task) Traits(bool) drive.Traits {
	return drive.Traits{Effect: t.cfg.Effect, Continues: t.once() || t.waits > 0, CanIdle: t.waits > 0}
}

// once reports whether the task must not be done twice.
func (t *task) once() bool { return t.cfg.Effect == agent.AtMostOnce }

// Reconcile returns the config's Reconcile; nil if there is none.
func (t *task) Reconcile() agent.Reconcile { return t.cfg.Reconcile }

// settle finds out whether to do a task that must not be done twice. It asks in this order, until the
// answer is certain: the log, the machine that did the task elsewhere, the task's Reconcile, and a
// person. round is the number of earlier decisions to do the task again; begun reports that the task may
// have begun in an earlier part of the run, and lost that it is already known to be in doubt.
func (t *task) settle(ctx agent.InvocationContext, round int, begun, lost bool,
	yield func(*session.Event, error) bool) (_ int, todo bool) {
	for begun = begun || lost; ; round++ {
		known := drive.At(ctx).Recorded()
		if known != nil && known.Mark == nil { // the log has the task's result
			replayEvent(known, yield)
			return round, false
		}
		if !begun || known == nil && !lost && t.attaches(ctx, round) {
			return round, true
		}
		if lost = false; !t.again(ctx, round+1, yield) {
			return round, false
		}
		var more bool
		if begun, more = drive.At(ctx).Dispatch(nil, yield); !more {
			return round, false
		}
	}
}

// replayEvent yields the recorded result of a task, and then its error if the task failed.
func replayEvent(known *session.Event, yield func(*session.Event, error) bool) {
	if yield(known, nil) && known.CustomMetadata[drive.MetadataFailed] != nil {
		yield(nil, errors.New(fmt.Sprint(known.CustomMetadata[drive.MetadataFailed])))
	}
}

// asked replays the questions that a task which must not be done twice has asked by a [QuestionError]. begun reports
// whether the task may have begun after them, and more whether all of them have their answers.
func (t *task) asked(ctx agent.InvocationContext, yield func(*session.Event, error) bool) (begun, more bool) {
	begun, more = drive.At(ctx).Began(), true
	for more {
		var q mark.Question
		known := drive.At(ctx).Recorded()
		if known == nil || known.Mark == nil || known.Mark.Kind != mark.KindAsked || known.Mark.Decode(&q) != nil || !q.IsEdited() {
			break
		}
		answer, err := drive.At(ctx).Ask(nil, q, yield)
		if err != nil {
			yield(nil, err)
		}
		if answer == nil {
			return begun, false
		}
		begun, more = drive.At(ctx).Dispatch(nil, yield)
	}
	return begun, more
}

// again reports whether to do a task now that was perhaps done before. It asks the task's Reconcile, and then a person. If
// the task was done, again yields its result.
func (t *task) again(ctx agent.InvocationContext, n int, yield func(*session.Event, error) bool) bool {
	call := agent.Doubt{Address: drive.At(ctx).Address(), ID: drive.At(ctx).CallID()}
	found, more := drive.At(ctx).Reconcile(call, t.cfg.Reconcile, yield)
	if !more {
		return false
	}
	if result, ok := found.Happened(); ok {
		t.resolved(ctx, drive.TextOf(result), yield)
		return false
	}
	if found.DidNotHappen() {
		return true
	}
	q := found.Question(fmt.Sprintf("%s was cut off while it ran, or failed, and must not run twice. Did it take "+
		"place? (its call ID is %s)", t.cfg.Name, call.ID))
	q.ID = drive.At(ctx).QuestionID(n)
	answer, err := drive.At(ctx).Ask(nil, q, yield)
	if err != nil {
		yield(nil, err)
	}
	if answer == nil {
		return false
	}
	r, err := answer.Resolution()
	switch {
	case err != nil:
		yield(nil, err)
	case r.Action == mark.ResolveResult:
		t.resolved(ctx, r.Result, yield)
	}
	return err == nil && r.Action == mark.ResolveRetry
}

// resolved yields the task's result, which a person or the task's Reconcile has given.
func (t *task) resolved(ctx agent.InvocationContext, result string, yield func(*session.Event, error) bool) {
	out := outcome{words: result, output: result, result: map[string]any{"resolved": true, "stdout": result,
		"body": result}}
	if t.json {
		v, err := parseJSON(result)
		if err != nil {
			yield(nil, fmt.Errorf("read the result that it is said to have had as JSON: %w", err))
			return
		}
		out.output, out.result["json"] = v, v
	}
	ev, err := t.event(ctx, &out)
	switch {
	case err != nil:
		yield(nil, err)
	case says(ev):
		yield(ev, nil)
	}
}

// failed writes the error of the task into the metadata of its event, for a run that is cut off after the event and
// before the error.
func (t *task) failed(ev *session.Event, err error) {
	if t.Traits(true).Continues {
		drive.Annotate(ev, drive.MetadataFailed, err.Error())
	}
}
