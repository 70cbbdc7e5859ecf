// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"maps"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// metadataFailed says of an event that the task failed, and how, for a run that
// is cut off between the two.
const metadataFailed = "refrain:failed"

// Continues reports whether a task that was cut off is asked what became of it,
// when its run is resumed: one that must not be done twice is.
func (t *task) Continues() bool { return t.cfg.Effect == agent.AtMostOnce }

// Effect is what the task does to the world outside; empty is the default.
func (t *task) Effect() agent.Effect { return t.cfg.Effect }

// settle finds out whether a task that must not be done twice is to be done. What
// the log says of it comes first; where that leaves a doubt, a person.
func (t *task) settle(ctx agent.InvocationContext, yield func(*session.Event, error) bool) (todo bool) {
	begun := agent.Began(ctx)
	for n := 1; ; n++ {
		known := agent.Recorded(ctx)
		if known != nil && known.Mark == nil { // it was done
			if yield(known, nil) && known.CustomMetadata[metadataFailed] != nil {
				yield(nil, errors.New(fmt.Sprint(known.CustomMetadata[metadataFailed])))
			}
			return false
		}
		if !begun {
			return true
		}
		q := session.InDoubt(fmt.Sprintf("%s was cut off while it was at work, or failed, and must not be done twice. Was it done? (its call ID is %s)", t.cfg.Name, agent.CallID(ctx)))
		q.ID = agent.QuestionID(ctx, n)
		answer, err := agent.AskPerson(ctx, nil, q, yield)
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
			return false
		case r.Action == session.ResolveSkip:
			return false
		case r.Action == session.ResolveResult:
			t.resolved(ctx, r.Result, yield)
			return false
		}
		next := agent.Recorded(ctx)
		begun = next != nil
		if next == nil {
			m, err := session.NewMark(session.MarkDispatched, session.Dispatched{})
			if err != nil {
				yield(nil, err)
				return false
			}
			next = &session.Event{Mark: m}
		}
		if !yield(next, nil) {
			return false
		}
	}
}

// resolved says what a person knows that the task came to.
func (t *task) resolved(ctx agent.InvocationContext, result string, yield func(*session.Event, error) bool) {
	out := outcome{words: result, output: result, result: map[string]any{"resolved": true, "stdout": result, "body": result}}
	if t.json {
		v, err := parseJSON(result)
		if err != nil {
			yield(nil, fmt.Errorf("read the result that a person gave as JSON: %w", err))
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

// failed notes on an event that the task failed.
func (t *task) failed(ev *session.Event, err error) {
	if !t.Continues() {
		return
	}
	m := maps.Clone(ev.CustomMetadata)
	if m == nil {
		m = make(map[string]any, 1)
	}
	m[metadataFailed] = err.Error()
	ev.CustomMetadata = m
}
