// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/history/stops"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// drive runs a run until it has ended or paused. A nil first means that the run's first event is in the log already. A
// nil prog means that drive calls Build.
func (r *Run) drive(prog *Program, first *beginning) {
	if each := r.s.cfg.OnBeginning; each != nil {
		r.callBack("OnBeginning", func() { each(r.ID(), r.run, r.takeover != nil) })
	}
	ctx, over := context.WithCancel(r.ctx)
	var workers sync.WaitGroup
	workers.Go(func() { r.keepLease(ctx) })
	workers.Go(func() { r.listen(ctx) })
	prog, err := r.segments(prog, first)
	over()
	workers.Wait()
	r.s.queue.leave(r.ticket)
	prog.close()
	r.setOutcome(err)
	if each := r.s.cfg.OnEnding; each != nil {
		r.callBack("OnEnding", func() { each(r.ID(), r.outcome) })
		r.setOutcome(err)
	}
	r.s.release(r.lease)
	r.dismiss()
	if r.run.Status == mark.RunWaiting && r.run.Driver == "" { // after dismiss, because the deadline may have passed
		r.s.setAlarm(r.ID(), r.run.Deadline)
	}
}

// callBack calls f, a callback of Config with the given name. A panic in the callback becomes the run's error; then the
// running steps end and the run pauses.
func (r *Run) callBack(name string, f func()) {
	var crash error
	func() {
		defer agent.Recover(&crash)
		f()
	}()
	if crash != nil && r.crash == nil {
		r.crash = fmt.Errorf("%s of run %q: %w", name, r.ID(), crash)
	}
}

// setOutcome sets the outcome of the run, which Wait returns.
func (r *Run) setOutcome(err error) {
	if r.crash != nil && !errors.Is(err, r.crash) {
		err = errors.Join(err, r.crash)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome = Ending{r.run, err}
}

// segments drives the run segment by segment. After a segment that ended to wait for answers, it starts the next one if
// all answers have arrived meanwhile. It returns the program, which the caller closes, and the reason why the run does
// not continue.
func (r *Run) segments(prog *Program, first *beginning) (*Program, error) {
	end := segment{err: r.crash}
	if end.err == nil {
		end.err = r.waitForTurn()
	}
	if end.err == nil && first == nil {
		end.err = r.takeOldRequests()
	}
	if end.err == nil && prog == nil {
		prog, end.err = r.build()
	}
	var tree *runner.Runner
	switch {
	case first != nil && first.tree != nil:
		tree = first.tree
	case end.err == nil:
		tree, end.err = r.runner(prog)
	}
	for {
		if end.err == nil {
			end = r.segment(tree, prog.RunConfig, first)
			first = nil
		}
		again, err := r.settle(&end)
		if !again {
			select {
			case r.logged <- err: // the run never got into the log
			default:
			}
			return prog, err
		}
		end = segment{}
	}
}

// waitForTurn waits until the queue admits the run. A request to pause or cancel ends the wait, and turn returns its cause.
func (r *Run) waitForTurn() error {
	if !r.Queued() {
		return nil
	}
	select {
	case <-r.ticket.admitted:
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	case <-r.wake:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.requests.pauseCause
	}
	return nil
}

// build builds the run's agents from the start record in the log.
func (r *Run) build() (*Program, error) {
	view, err := r.read(r.ctx)
	if err != nil {
		return nil, err
	}
	started, err := startedWith(view, r.run.ID)
	if err != nil {
		return nil, err
	}
	return r.s.build(r.ctx, started)
}

// build calls Config.Build, and returns a panic in it as an error.
func (s *Supervisor) build(ctx context.Context, started mark.RunStarted) (prog *Program, err error) {
	defer agent.Recover(&err)
	return s.cfg.Build(ctx, started)
}

// runner returns a runner for the program's agents. Services that the program does not set are the supervisor's.
func (r *Run) runner(prog *Program) (*runner.Runner, error) {
	cfg := runner.Config{
		AppName: r.key.AppName, Agent: prog.Agent, SessionService: r.s.cfg.Service, Durable: true,
		ArtifactService: prog.ArtifactService, MemoryService: prog.MemoryService, PluginConfig: r.s.cfg.PluginConfig,
	}
	cfg.ArtifactService = cmp.Or(cfg.ArtifactService, r.s.cfg.ArtifactService)
	cfg.MemoryService = cmp.Or(cfg.MemoryService, r.s.cfg.MemoryService)
	return runner.New(cfg)
}

// segment is the result of one part of a run: from its start, or from its continuation, to its next pause or its end.
type segment struct {
	err       error
	fin       *mark.StepFinished // how the root agent finished; nil if it has not finished
	stops     stops.Fold         // why its loops have stopped
	hasEvents bool               // the segment has yielded an event
}

// segment runs the run up to its end or its next pause.
func (r *Run) segment(tree *runner.Runner, cfg agent.RunConfig, first *beginning) (end segment) {
	cfg.Pause, cfg.Hints = r.newPause(), &r.hints
	cfg.Observer = cmp.Or(cfg.Observer, r.s.cfg.Observer)
	var events iter.Seq2[*session.Event, error]
	if first != nil {
		r.view, _ = first.session.(*session.View)
		events = tree.Run(r.ctx, r.key.UserID, r.key.SessionID, first.req.Message, cfg, first.options(r.run)...)
	} else {
		view, err := r.read(r.ctx)
		if err != nil {
			return segment{err: err}
		}
		view.Log().CacheOutline()
		for ev := range currentMarks(view, r.run.ID, mark.KindLoopStopped, mark.KindRaceDecided) { // the segment does not yield them again
			end.stops.Add(ev)
		}
		opts := []runner.ResumeOption{runner.WithView(view)}
		if r.takeover != nil && r.takeover.continues {
			opts = append(opts, runner.Continue())
			r.takeover.continues = false
		}
		defer view.Log().DropOutline()
		events = tree.Resume(r.ctx, r.key.UserID, r.key.SessionID, r.run.ID, cfg, opts...)
	}
	for ev, err := range events {
		if err != nil {
			end.err = err
			if resume, ok := errors.AsType[*runner.ResumeError](err); ok { // the error names the invocation, not the run
				end.err = fmt.Errorf("resume run %q: %w", r.ID(), resume.Err)
			}
			break
		}
		select {
		case r.logged <- nil:
		default:
		}
		if v := r.view; v != nil && !ev.Partial && ev.Seq == v.LastSeq()+1 {
			v.Apply(ev)
		}
		end.hasEvents = true
		end.add(ev)
		if r.showEvent(ev); r.crash != nil {
			end.err = r.crash
			break
		}
		if ev.Mark != nil && ev.Mark.Kind == mark.KindRunResumed {
			r.recallHints()
			r.view.Log().DropOutline() // the runner has read the log; the replay keeps the events that it needs
		}
	}
	if _, ok := errors.AsType[*agent.LogError](end.err); ok {
		r.view = nil // it may contain events that the runner could not write to the log
	}
	return end
}

// showEvent passes an event to Config.OnEvent.
func (r *Run) showEvent(ev *session.Event) {
	if each := r.s.cfg.OnEvent; each != nil {
		r.callBack("OnEvent", func() { each(r.ID(), ev) })
	}
}

// stop returns the stop reason of the last outermost loop that stopped, or of the winner if loops raced; "" if none did.
func (end *segment) stop() string {
	for _, rec := range slices.Backward(end.stops.All()) {
		if rec.Reason != loop.ReasonCanceled {
			return string(rec.Reason)
		}
	}
	return ""
}

// add takes an event that may finish the root agent, stop an outermost loop, or decide a race.
func (end *segment) add(ev *session.Event) {
	if ev.Mark == nil || ev.Address == "" || ev.Partial {
		return
	}
	switch {
	case ev.Mark.Kind == mark.KindStepFinished && ev.Address.Parent() == "":
		fin := new(mark.StepFinished)
		if ev.Mark.Decode(fin) == nil && !fin.Canceled {
			end.fin = fin
		}
	default:
		end.stops.Add(ev)
	}
}

// read takes fin, if the segment has not seen it, and the stops from the whole log of the run.
func (end *segment) read(view *session.View, id string) error {
	kinds := []mark.Kind{mark.KindLoopStopped, mark.KindRaceDecided}
	if end.fin == nil {
		kinds = append(kinds, mark.KindStepFinished)
	}
	end.stops = stops.Fold{}
	for ev := range currentMarks(view, id, kinds...) {
		end.add(ev)
	}
	return view.Err()
}

// keepLease renews the lease until ctx ends. If the lease is lost, or could not be renewed for LeaseTTL, keepLease cancels the
// run, because another process may drive it.
func (r *Run) keepLease(ctx context.Context) {
	gone := func(err error) bool { return errors.Is(err, session.ErrNotFound) }
	if err := lease.Keep(ctx, r.s.leaser, r.lease, r.s.cfg.LeaseTTL, r.s.cfg.LeaseRenew, gone); err != nil {
		r.cancel(err)
	}
}
