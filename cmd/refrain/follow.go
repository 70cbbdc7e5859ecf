// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// request is what a run is asked to do.
type request struct {
	file, definition, session, input string
	state                            map[string]any
	config                           agent.RunConfig
	zeroOnLimit                      bool
	// resumed says that the run goes on, and is not new.
	resumed bool
	// lasts says that the run is kept, and can be resumed.
	lasts bool
}

// follower drives a run and shows what happens.
type follower struct {
	e     *env
	req   request
	out   output
	def   *definition.Definition
	grace time.Duration
	sup   *supervisor.Supervisor
	meter meter

	mu        sync.Mutex
	begun     bool // the output was told
	log       []*session.Event
	fold      progress.Fold
	diagnosis progress.Diagnosis
	busy      clocks
	broken    error // standard output cannot be written to

	presses atomic.Int32 // of Ctrl-C, and signals like it
}

// newFollower prepares to drive a run in a stock.
func newFollower(e *env, s *stock, mode string, def *definition.Definition, req request, grace time.Duration) (*follower, error) {
	req.definition, req.lasts = def.Name, s.durable
	f := &follower{e: e, req: req, def: def, grace: grace, meter: newMeter()}
	var err error
	if f.out, err = newOutput(e, mode, f); err != nil {
		return nil, err
	}
	f.sup, err = s.supervise(e, f.event)
	return f, err
}

// follow begins a run, or takes it up, and follows it to its end. The error has the
// code that the process ends with.
func (f *follower) follow(ctx context.Context, begin func(context.Context) (*supervisor.Run, error)) error {
	defer f.out.close()
	run, err := begin(ctx)
	if err != nil {
		return f.refused(err)
	}
	release := onInterrupt(ctx, f.signal)
	defer release()
	if ctx.Err() != nil { // in between
		f.signal(os.Interrupt)
	}
	end, err := run.Wait(context.WithoutCancel(ctx)) // signals end the run, and with it this
	if err == nil {
		err = f.sup.Close(context.WithoutCancel(ctx))
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return f.finish(end)
}

// refused is the error of a run that did not begin.
func (f *follower) refused(err error) error {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit
	}
	if errors.Is(err, errInterrupted) {
		return &exitError{code: exitInterrupted}
	}
	if held, ok := errors.AsType[*session.HeldError](err); ok {
		return &exitError{exitFailed, fmt.Errorf("run %s is driven by %s since %s; refrain watch %s looks on, and refrain pause %s pauses it",
			held.Key.SessionID, held.Owner, held.Since.Local().Format(time.DateTime), held.Key.SessionID, held.Key.SessionID)}
	}
	return &exitError{exitFailed, err}
}

// event takes an event of the run, from the supervisor. An output that is broken
// pauses the run: there may be something else to show it to.
func (f *follower) event(_ string, ev *session.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return
	}
	if f.broken = f.show(ev); f.broken != nil {
		go f.ask(f.sup.PauseNow, "its output cannot be written")
	}
}

func (f *follower) show(ev *session.Event) error {
	if !f.begun {
		f.begun = true
		if err := f.out.started(f.req); err != nil {
			return err
		}
	}
	var lines []string
	switch {
	case ev.Partial:
	case ev.Mark != nil && ev.Mark.Kind == session.MarkRunResumed:
		f.log = append(f.log, ev)
		f.again()
	default:
		f.log = append(f.log, ev)
		f.diagnosis.Add(ev)
		f.busy.add(ev)
		if lines = f.fold.Add(ev); cutOff(ev) {
			lines = nil // that is no failure, and the end of the run says why
		}
	}
	return f.out.event(ev, lines, &f.fold)
}

// cutOff reports whether an event says that a step ended because its run does.
func cutOff(ev *session.Event) bool {
	var fin session.StepFinished
	return ev.Mark != nil && ev.Mark.Kind == session.MarkStepFinished && ev.Mark.Decode(&fin) == nil && fin.Canceled
}

// again reads the log from its beginning, without what counts no more.
func (f *follower) again() {
	f.fold, f.diagnosis, f.busy = progress.Fold{}, progress.Diagnosis{}, clocks{}
	for _, ev := range session.Current(f.log) {
		f.fold.Add(ev)
		f.diagnosis.Add(ev)
		f.busy.add(ev)
	}
	if p, ok := f.out.(interface{ past([]*session.Event) }); ok {
		p.past(session.Current(f.log))
	}
}

// remember takes what a run has done before this process drives it.
func (f *follower) remember(view *session.View) error {
	run := session.RunOf(view)
	for ev := range view.Log().All() {
		if ev.InvocationID == run.ID {
			f.log = append(f.log, ev)
		}
	}
	return view.Err()
}

// finish shows how the run has ended.
func (f *follower) finish(end supervisor.Outcome) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return &exitError{exitFailed, f.broken}
	}
	if !f.begun { // it was ended before it did anything
		f.begun = true
		if err := f.out.started(f.req); err != nil {
			return &exitError{exitFailed, err}
		}
	}
	res := result{answer: f.fold.Answer(), stop: f.fold.Stop(), saved: f.fold.Saved(), findings: f.diagnosis.Findings(), used: f.meter.used(session.Current(f.log))}
	f.ended(end, &res)
	err := f.out.finished(f.req, res)
	switch {
	case res.code == exitFailed:
		return &exitError{res.code, res.err}
	case err != nil:
		return &exitError{exitFailed, err}
	case res.code == exitOK:
		return nil
	}
	return &exitError{code: res.code}
}

// ended says how a run has ended: its error, its exit code, and what to do next.
func (f *follower) ended(end supervisor.Outcome, res *result) {
	resume := ""
	if f.req.lasts {
		resume = "Resume with: refrain resume " + f.req.session
	}
	waits, isWaiting := errors.AsType[*agent.WaitingError](end.Err)
	canceled, isCanceled := errors.AsType[*supervisor.CanceledError](end.Err)
	paused, isPaused := errors.AsType[*supervisor.PausedError](end.Err)
	switch {
	case end.Err == nil:
		res.code = exitCode(nil, f.fold.Stops(), f.req.zeroOnLimit)
	case isWaiting:
		res.status, res.code, res.answer = "waits for a person", exitWaits, "" // it is still to come
		res.next = append(res.next, plainText(fmt.Sprintf("%s asks: %s", waits.Address, waits.Question.Text)))
		if f.req.lasts {
			res.next = append(res.next, "Answer with: refrain answer "+f.req.session)
		} else {
			res.next = append(res.next, "The run ends here, because it is kept in memory: with --store it could wait for the answer")
		}
	case isCanceled:
		res.status, res.code, res.err = "canceled", exitInterrupted, errInterrupted
		if canceled.Reason != "" {
			res.next = append(res.next, canceled.Error())
		}
	case isPaused && f.presses.Load() > 0:
		res.code, res.err = exitInterrupted, errInterrupted
		res.next = append(res.next, resume)
	case isPaused:
		res.status, res.code, res.answer = "paused", exitWaits, ""
		res.next = append(res.next, paused.Error(), resume)
	default:
		res.code, res.err = exitFailed, hinted(end.Err)
		if !end.Run.Status.Over() {
			res.next = append(res.next, resume)
		}
	}
}

// ask asks the supervisor for something; what goes wrong is told.
func (f *follower) ask(do func(ctx context.Context, id, reason string) error, reason string) {
	err := do(context.Background(), f.req.session, reason)
	if err != nil && !errors.Is(err, supervisor.ErrOver) && !errors.Is(err, supervisor.ErrPaused) {
		printError(f.e.stderr, err)
	}
}

// leave ends the process at once.
func (f *follower) leave() {
	f.out.close()
	os.Exit(exitInterrupted)
}
