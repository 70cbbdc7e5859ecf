// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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
	// stands is how a run stood that is resumed.
	stands *session.Run
	// lasts says that the run is kept, and can be resumed, and leaves that it can go
	// on in the background.
	lasts, leaves bool
	// most is how many iterations the definition's loop is to have; 0: nobody says.
	most uint
}

// follower drives a run and shows what happens.
type follower struct {
	e     *env
	stock *stock
	req   request
	out   output
	def   *definition.Definition
	grace time.Duration
	sup   *supervisor.Supervisor
	meter meter

	mu        sync.Mutex
	begun     bool // the output was told
	leaving   bool // the run is to go on in the background
	log       []*session.Event
	fold      progress.Fold
	diagnosis progress.Diagnosis
	busy      clocks
	broken    error // standard output cannot be written to

	presses atomic.Int32 // of Ctrl-C, and signals like it
	why     atomic.Value // a string: the signal, if it was none of a key
}

// newFollower prepares to drive a run in a stock.
func newFollower(e *env, s *stock, mode string, def *definition.Definition, req request, grace time.Duration) (*follower, error) {
	req.definition, req.lasts, req.leaves = def.Name, s.durable, s.durable && !s.recorded
	f := &follower{e: e, stock: s, req: req, def: def, grace: grace, meter: newMeter(), fold: progress.Fold{Owned: true}}
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
	if f.left(end) {
		return f.handOver(context.WithoutCancel(ctx))
	}
	return f.finish(end)
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
		lines = f.fold.Add(ev)
	}
	return f.out.event(ev, lines, &f.fold)
}

// again reads the log from its beginning, without what counts no more.
func (f *follower) again() {
	f.fold, f.diagnosis, f.busy = progress.Fold{Owned: true}, progress.Diagnosis{}, clocks{}
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
