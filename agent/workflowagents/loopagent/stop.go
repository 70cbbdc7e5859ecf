// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// fail stops the loop because of an error that is not the error of a step, or because the run was canceled.
func (r *run) fail(err error) {
	r.failures.current = err
	if cause := r.canceled(); cause != nil {
		r.plan.Add(&r.tally, loop.Outcome{Iteration: r.loop.Iteration, Step: -1, Canceled: cause.Error()})
	} else {
		r.tally.Fatal = &loop.StepFailure{Failure: loop.Failure{Kind: loop.Failed, Message: err.Error()}}
	}
	r.stop(r.plan.Next(&r.tally).Stop)
}

// stop ends the loop: it yields the result, or the error if the loop has failed.
func (r *run) stop(rec *loop.StopRecord) {
	r.phase.stopped = true
	from := rec.Result
	if r.mode.tracksResults {
		_, rec.Result = r.result(rec.Result)
	}
	if r.spending.race != nil && r.spending.race.OnStop != nil {
		r.spending.race.OnStop(r.standing(rec))
	}
	r.observeStop(rec)
	var panicked error
	if r.cfg.OnStop != nil { // a panic in OnStop does not change the record or the result
		var abandoned bool
		given := rec
		if abandoned, panicked = r.callWithGrace(r.ctx, func(ctx agent.InvocationContext) error {
			r.cfg.OnStop(ctx, given)
			return nil
		}); abandoned {
			rec = new(*rec) // a copy, because the abandoned OnStop may still change the other
		}
	}
	if r.mode.tracksResults {
		if !r.yieldResult(rec, from) {
			return
		}
	}
	switch {
	case rec.Reason == loop.ReasonError:
		r.yield(nil, r.failure())
	case r.ctx.Err() != nil: // for any stop reason, because the run may have been canceled during the finalizer
		r.yield(nil, context.Cause(r.ctx))
	case panicked != nil:
		r.yield(nil, fmt.Errorf("OnStop: %w", panicked))
	case r.failures.outer != nil:
		r.yield(nil, r.failures.outer)
	case r.phase.notContinued != nil:
		r.yield(nil, r.phase.notContinued)
	}
}

// failure returns the error that ends the loop. It is the error of the last step, unless the plan
// itself ends the loop with an error.
func (r *run) failure() error {
	f := r.tally.Fatal
	switch {
	case f == nil:
	case f.Kind == loop.StateTooLarge && f.Step == "":
		return &stateError{f.Message}
	case r.failures.current == nil && f.Kind == loop.IterationTimeout:
		return &TimeoutError{Kind: f.Kind, After: time.Duration(r.plan.IterationTimeout)}
	}
	if f == nil && r.failures.current == nil || f == nil && r.tally.LastFailure != nil {
		return r.noIterationSucceeded()
	}
	if r.failures.current == nil {
		return errors.New("the loop failed by its plan, which gives no reason; please report this as a bug of refrain")
	}
	return r.failures.current
}

// stateError is the error with which the plan ends a loop whose state is too large. It wraps [session.ErrStateLimit].
type stateError struct{ text string }

func (e *stateError) Error() string { return e.text }

func (*stateError) Unwrap() error { return session.ErrStateLimit }

// noIterationSucceeded returns the error of a loop in which every iteration has failed. It wraps the error of
// the last step that failed.
func (r *run) noIterationSucceeded() error {
	err := r.failures.lastStep
	if err == nil {
		err = &TimeoutError{Kind: loop.IterationTimeout, After: time.Duration(r.plan.IterationTimeout)}
	}
	return fmt.Errorf("%s; the last failure: %w", loop.NoneSucceeded, err)
}

// yieldResult yields the loop's last events. They have its mark, its result under the output key, the keys that it hands
// back, and the text of the result unless that was the last output. A canceled loop, and a loop with only ADK's fields,
// yields only its mark, whose record has the result. yieldResult reports whether the loop may yield more.
func (r *run) yieldResult(rec *loop.StopRecord, from loop.Result) bool {
	result, _ := r.result(rec.Result)
	canceled := r.canceled() != nil
	if canceled || r.plain {
		if result != nil && !r.isLastOutput(result) {
			rec.Answer = result.Text()
		}
		result = nil
	}
	ev := &session.Event{}
	if result != nil && r.cfg.OutputKey != "" && result.Text() != "" {
		ev.Actions.StateDelta = map[string]any{r.cfg.OutputKey: result.Text()}
	}
	if back := r.handBack(rec, from); len(back) > 0 && !canceled {
		if ev.Actions.StateDelta == nil {
			ev.Actions.StateDelta = make(map[string]any)
		}
		maps.Copy(ev.Actions.StateDelta, back)
	}
	if r.mode.durable {
		if err := r.seal(rec, canceled); err != nil {
			r.yield(nil, err)
			return false
		}
		if !r.mark(mark.KindLoopStopped, rec, ev) {
			return false
		}
		ev = &session.Event{} // an event with a mark has no text
	}
	if result != nil && !r.isLastOutput(result) {
		ev.Content = outputOnly(result.Content)
	}
	if ev.Content == nil && ev.Actions.StateDelta == nil {
		return true
	}
	return r.yield(ev, nil)
}

// isLastOutput reports whether a result was the last output. In a parallel agent the order is random,
// so it reports false.
func (r *run) isLastOutput(result *session.Event) bool {
	if r.results.lastOutput == nil || r.results.lastOutput.Branch != r.ctx.Branch() {
		return false
	}
	return result == r.results.lastOutput || r.cfg.Result != "" && result.Text() == r.results.lastOutput.Text()
}

// outputOnly returns the parts of a content that can be yielded again: text, data and files, without thoughts and tool calls.
func outputOnly(c *genai.Content) *genai.Content {
	again := &genai.Content{Role: genai.RoleModel}
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.InlineData != nil:
			again.Parts = append(again.Parts, &genai.Part{InlineData: p.InlineData})
		case p.FileData != nil:
			again.Parts = append(again.Parts, &genai.Part{FileData: p.FileData})
		case p.Text != "":
			again.Parts = append(again.Parts, &genai.Part{Text: p.Text})
		}
	}
	return again
}

// seal writes a hash of the log of the run up to now and of the record into the record, which package
// internal/history/progress/verify checks.
//
// A loop that replays its record takes the hash from there. A canceled loop does not, because its record may differ
// from the logged one, which is then one of the hashed events.
func (r *run) seal(rec *loop.StopRecord, canceled bool) error {
	known := r.place.Recorded()
	if !canceled && known != nil && known.Mark != nil && known.Mark.Kind == mark.KindLoopStopped {
		var sealed loop.StopRecord
		if err := known.Mark.Decode(&sealed); err != nil {
			return err
		}
		rec.Events, rec.Digest = sealed.Events, sealed.Digest
		return nil
	}
	chain, err := r.chain()
	if err == nil {
		rec.Events, rec.Digest = int(chain.Events), ""
		rec.Digest, err = seal.Value(chain, rec)
	}
	return err
}

// chain returns the chain over the log of the run up to now.
func (r *run) chain() (session.Chain, error) {
	v := session.ViewBehind(r.ctx.Session())
	if v == nil {
		v = session.ViewOf(r.ctx.Session())
	}
	return v.Chain(r.ctx.InvocationID())
}

// mark yields ev with a mark; if ev is nil, it yields a new event. It reports whether the loop continues.
func (r *run) mark(kind mark.Kind, data any, ev *session.Event) bool {
	m, err := mark.New(kind, data)
	if err != nil {
		r.yield(nil, err)
		return false
	}
	if ev == nil {
		ev = &session.Event{}
	}
	m.Batch = r.mode.batchesMarks && (kind == mark.KindIterationFinished || kind == mark.KindLoopStarted)
	ev.Mark = m
	return r.yield(ev, nil)
}
