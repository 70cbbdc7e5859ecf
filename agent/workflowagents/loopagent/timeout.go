// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// TimeoutError says that a step took too long, or that an iteration or the loop
// did while it ran.
type TimeoutError struct {
	// Kind is loop.Timeout, loop.IterationTimeout or loop.TotalTimeout.
	Kind string
	// Step is the name of the step that was running; empty if it was none.
	// After is how long it might have taken, 0 if it was not even begun.
	Step  string
	After time.Duration
	// Abandoned says that the step has not ended when it was told to.
	Abandoned bool
}

// Error says what has run out.
func (e *TimeoutError) Error() string {
	what := "the iteration"
	if e.Kind == loop.TotalTimeout {
		what = "the loop"
	}
	var s string
	switch after := e.After.Round(time.Millisecond); {
	case e.Step == "":
		s = fmt.Sprintf("%s took longer than %s", what, after)
	case e.Kind == loop.Timeout:
		s = fmt.Sprintf("%s took longer than %s", e.Step, e.After)
	case e.After == 0:
		s = fmt.Sprintf("%s's time was over before %s began", what, e.Step)
	default:
		s = fmt.Sprintf("%s's time was over %s into %s", what, after, e.Step)
	}
	if e.Abandoned {
		s += "; it does not heed its context and was abandoned"
	}
	return s
}

// Timeout reports true, as those of package net do.
func (e *TimeoutError) Timeout() bool { return true }

// runFor runs a step in a goroutine of its own, so that one that does not heed its
// context can be left behind: when its time is over, or the run is canceled, the loop
// waits for it until AbandonAfter has passed. From the moment its time is over the step
// changes nothing any more: what it yields is dropped, and its writes fail.
func (r *run) runFor(d *loop.Decision, in agent.StepRun) (res agent.StepResult, how ending) {
	late := &TimeoutError{Kind: d.TimeoutKind, Step: r.plan.Steps[d.Step].Name, After: d.Timeout}
	ctx, cancel := context.WithCancel(r.ctx)
	if d.Timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(r.ctx, d.Timeout, late)
	}
	defer cancel()
	in.Context = ctx
	w := watch(r.newStep(d.Step, true), in)

	var (
		left    bool // the consumer
		told    = ctx.Done()
		patient <-chan time.Time
	)
	defer func() {
		close(w.gone)
		if w.over {
			return
		}
		cancel() // the consumer panics: not while a step is still at work
		select {
		case <-w.done:
		case <-time.After(r.patience()):
			w.step.Abandon(context.Canceled)
		}
	}()
	for {
		select {
		case ev := <-w.events:
			if context.Cause(ctx) == late {
				w.step.Abandon(late)
				if ev = onlyMark(ev); ev == nil {
					w.answers <- false
					continue
				}
			}
			ok := !left && r.onEv(ev)
			left = left || !ok && r.ctx.Err() == nil
			if !left && ev.Mark != nil { // a canceled run's marks are still written
				w.note(ev)
			}
			w.answers <- ok
			if left {
				cancel()
			}
		case <-told:
			if told = nil; context.Cause(ctx) == late {
				w.step.Abandon(late)
			}
			t := time.NewTimer(r.patience())
			defer t.Stop()
			patient = t.C
		case res = <-w.done:
			w.over = true
			res.Left = left
			if res.Err != late {
				return res, ended
			}
			res.Err = r.stepError(d, late)
			return res, timedOut
		case <-patient:
			w.over = true
			return r.abandon(d, w, late, left)
		}
	}
}

// onlyMark is what counts of an event that a step yields when its time is over: what it
// says of its own end, for the log; nil for everything else.
func onlyMark(ev *session.Event) *session.Event {
	if ev.Mark == nil {
		return nil
	}
	bare := *ev
	bare.Actions = session.EventActions{}
	return &bare
}

// abandon leaves a step behind that is still running.
func (r *run) abandon(d *loop.Decision, w *watched, late *TimeoutError, left bool) (agent.StepResult, ending) {
	err, how := context.Cause(r.ctx), ended
	if err == nil {
		gone := *late // the step may be looking at the other
		gone.Abandoned = true
		err, how = r.stepError(d, &gone), timedOut
	}
	w.step.Abandon(err)
	if !left && agent.Marks(r.ctx) {
		left = !r.finish(w, err) && r.ctx.Err() == nil
	}
	return agent.StepResult{Left: left, Err: err}, how
}

// patience is how long a step may take when it is told to end. A loop in it has the
// same patience with its own steps, so that this one waits a little longer: the loop
// inside says how it has stopped.
func (r *run) patience() time.Duration {
	d := abandonAfter
	if r.cfg.AbandonAfter > 0 {
		d = r.cfg.AbandonAfter
	}
	return d + time.Duration(r.inner)*20*time.Millisecond
}

// loopsIn is how many loops are in each other below an agent.
func loopsIn(a agent.Agent) int {
	most := 0
	for _, sub := range a.SubAgents() {
		n := loopsIn(sub)
		if agent.TypeOf(sub) == agent.TypeLoop {
			n++
		}
		most = max(most, n)
	}
	return most
}

// watched is a step that runs in a goroutine of its own.
type watched struct {
	step    *agent.Step
	events  chan *session.Event
	answers chan bool
	gone    chan struct{} // closed when nobody listens any more
	done    chan agent.StepResult
	over    bool             // it has ended, or was abandoned
	open    []*session.Event // marks of steps that have begun and not finished
}

// watch runs a step in a goroutine of its own.
func watch(step *agent.Step, in agent.StepRun) *watched {
	w := &watched{
		step: step, events: make(chan *session.Event), answers: make(chan bool),
		gone: make(chan struct{}), done: make(chan agent.StepResult, 1),
	}
	go func() {
		// By runtime.Goexit, as t.Fatal does.
		res := agent.StepResult{Err: &agent.StepError{Address: in.Address, Err: errors.New("the agent left its goroutine")}}
		defer func() { w.done <- res }()
		res = step.RunAs(in, w.hand)
	}()
	return w
}

// hand gives an event to the loop, and waits for what it says.
func (w *watched) hand(ev *session.Event) bool {
	select {
	case w.events <- ev:
	case <-w.gone:
		return false
	}
	select {
	case ok := <-w.answers:
		return ok
	case <-w.gone:
		return false
	}
}

// note keeps account of the steps that are under way.
func (w *watched) note(ev *session.Event) {
	switch ev.Mark.Kind {
	case session.MarkStepStarted:
		w.open = append(w.open, ev)
	case session.MarkStepFinished:
		for i := len(w.open) - 1; i >= 0; i-- {
			if w.open[i].Address == ev.Address {
				w.open = append(w.open[:i], w.open[i+1:]...)
				return
			}
		}
	}
}

// finish writes the marks that an abandoned step and those in it cannot write
// any more, the innermost first.
func (r *run) finish(w *watched, err error) bool {
	ok := true
	for i := len(w.open) - 1; i >= 0 && (ok || r.ctx.Err() != nil); i-- {
		begun := w.open[i]
		_, late := errors.AsType[*TimeoutError](err)
		m, merr := session.NewMark(session.MarkStepFinished, session.StepFinished{
			Error: err.Error(), Timeout: late, Canceled: i > 0 || r.ctx.Err() != nil, At: begun.Address, Seconds: time.Since(begun.Timestamp).Seconds(),
		})
		if merr != nil {
			r.yield(nil, merr)
			return false
		}
		ok = r.onEv(&session.Event{
			InvocationID: begun.InvocationID, Branch: begun.Branch, Author: begun.Author,
			Address: begun.Address, Iteration: begun.Iteration, Attempt: begun.Attempt, Mark: m,
		})
	}
	return ok
}
