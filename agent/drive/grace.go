// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Grace is how long a step or callback that ignores its context can delay those who wait for
// it. It counts from the end of the context, or from the moment that the consumer stops
// listening.
const Grace = 2 * time.Second

// beat is how much longer one waits who has others in it that wait: those give up
// first, and say how they ended.
const beat = 20 * time.Millisecond

// GraceAround returns the grace of an agent that gives its steps the grace own. It is longer if
// agents below a wait for steps too.
func GraceAround(a agent.Agent, own time.Duration) time.Duration {
	return own + time.Duration(waits(a))*beat
}

// waits is how many agents below a that wait for their steps are in each other.
func waits(a agent.Agent) (most int) {
	for _, sub := range a.SubAgents() {
		n := waits(sub)
		if t := agent.TypeOf(sub); t == agent.TypeLoop || t == agent.TypeParallel {
			n++
		}
		most = max(most, n)
	}
	return most
}

// GraceOf returns the grace that a runner gives its root: [Grace], or longer if a [Waiter] in
// the tree gives its own steps longer.
func GraceOf(a agent.Agent, durable bool) time.Duration {
	d := Grace
	if w, ok := a.(Waiter); ok {
		if own := w.Grace(durable); own > 0 {
			d = max(d, own+beat)
		}
	}
	for _, sub := range a.SubAgents() {
		d = max(d, GraceOf(sub, durable))
	}
	return d
}

// What a watched run is doing.
const (
	_       int64 = iota // it has not begun: the state is the number of the run
	working              // the agent is
	hearing              // the consumer has one of its events
	awaited              // likewise, and the grace begins when it has done with it
	gone                 // nobody waits any more
	over                 // it has ended

	phases = 7 // the bits of the above in a state; those of the run's number are beside them
)

// watched is what a step has that may be left behind. The agent runs in a goroutine of
// its own, and hands its events to the consumer there, while whoever ran the step waits:
// to hand each event over to that goroutine would double what an event costs.
type watched struct {
	step  *Step
	outer *invocation               // that the step was made under
	hears func(*session.Event) bool // pass, bound once
	wake  chan struct{}             // something has happened: look

	// Of one run.
	run   int64 // its number, beside the phases
	in    StepRun
	ctx   context.Context // that bounds the run
	yield func(*session.Event) bool
	state atomic.Int64 // the number of the run and its phase
	ends  atomic.Bool  // the consumer wants no more, or the run's own context has ended

	observed atomic.Pointer[func(error)] // what an observer is to be told of its end; nil if there is none

	// Of the agent's goroutine, or of who waits when the state is gone or over.
	left  bool             // the consumer has stopped listening, of its own will
	open  []*session.Event // marks of steps that have begun and not finished
	whole bool             // the run has come to its end
	quits bool             // the consumer has not come back: by runtime.Goexit, as t.FailNow, unless by a panic
	crash any              // that panic
	stack []byte
}

func newWatched(s *Step) *watched {
	w := &watched{step: s, outer: s.parent}
	w.hears = w.pass
	return w
}

// begin makes everything ready for a run.
func (w *watched) begin(in *StepRun, yield func(*session.Event) bool) {
	s := w.step
	w.in, w.ctx, w.yield = *in, s.parent.Context, yield
	if in.Context != nil {
		w.ctx = in.Context
	}
	w.run += phases + 1
	w.state.Store(w.run)
	w.ends.Store(false)
	w.observed.Store(nil)
	w.left, w.whole, w.quits, w.crash, w.stack = false, false, false, nil, nil
	clear(w.open)
	w.open = w.open[:0]
	if s.fence == nil || s.fence == w.outer.fence || s.fence.closed() {
		s.fence = newFence(w.outer)
	}
	s.loop = s.cfg.Loop.snapshot()
}

// runWatched is Run for a step with a grace.
func (s *Step) runWatched(in *StepRun, yield func(*session.Event) bool) *StepResult {
	w := s.watched
	w.begin(in, yield)
	var res *StepResult
	switch lane := s.cfg.Lane; {
	case s.brief(): // nobody has to wait for it
		w.work()
		res = w.result()
	case lane != nil && lane.step != nil:
		res = lane.run(w)
	default:
		w.wake = make(chan struct{}, 1)
		go w.work()
		res = w.wait()
	}
	switch {
	case w.crash != nil:
		// If nobody recovers it, the program's last words have both.
		defer panic(w.crash)
		panic(fmt.Sprintf("in the goroutine of the agents:\n%s", w.stack))
	case w.quits:
		runtime.Goexit()
	}
	return res
}

// brief reports whether the agent ends at once. Callbacks of it may not.
func (s *Step) brief() bool {
	b, ok := s.cfg.Agent.(Brief)
	return ok && s.base.self != nil && len(s.base.cfg.BeforeAgentCallbacks) == 0 &&
		len(s.base.cfg.AfterAgentCallbacks) == 0 && b.Brief()
}

// work runs the agent.
func (w *watched) work() {
	defer w.end()
	w.state.Store(w.run | working)
	w.step.run(&w.in, w.hears)
	w.whole = true
}

// end is deferred: an agent may end its goroutine. Panics of agents are errors of their
// steps; any other is raised again by who waits.
func (w *watched) end() {
	v := recover()
	if !w.turns(working, hearing) {
		return // gone
	}
	if v != nil {
		w.crash, w.stack = v, debug.Stack()
	}
	w.state.Store(w.run | over)
	if l := w.step.cfg.Lane; l == nil || l.wake != w.wake { // in a lane the loop goes on after it, and nobody waits
		w.look()
	}
}

// turns goes from one phase to another, if the run is in the first.
func (w *watched) turns(from, to int64) bool { return w.state.CompareAndSwap(w.run|from, w.run|to) }

func (w *watched) look() {
	select {
	case w.wake <- struct{}{}:
	default: // it is to look already
	}
}

// pass hands an event to the consumer.
func (w *watched) pass(ev *session.Event) bool {
	if w.late() {
		w.step.fence.close(w.in.Late)
		if ev = onlyMark(ev); ev == nil {
			return false
		}
	}
	return w.turns(working, hearing) && w.hear(ev)
}

func (w *watched) hear(ev *session.Event) (ok bool) {
	back := false
	defer func() {
		if !back {
			w.crash, w.stack = recover(), debug.Stack()
			w.quits, w.left = true, true
		}
		if !ok {
			w.ends.Store(true)
		}
		if !w.turns(hearing, working) {
			w.state.Store(w.run | working)
			w.look()
		} else if !ok {
			w.look()
		}
	}()
	ok = !w.left && w.yield(ev)
	back = true
	w.left = w.left || !ok && w.step.parent.Context.Err() == nil
	if ev.Mark != nil && !w.left {
		w.note(ev)
	}
	return ok
}

// late reports whether the time of the step's own is over.
func (w *watched) late() bool {
	return w.in.Late != nil && w.ctx.Err() != nil && context.Cause(w.ctx) == w.in.Late
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

// note keeps account of the steps that are under way.
func (w *watched) note(ev *session.Event) {
	switch ev.Mark.Kind {
	case mark.KindStepStarted:
		w.open = append(w.open, ev)
	case mark.KindStepFinished:
		for i := len(w.open) - 1; i >= 0; i-- {
			if w.open[i].Address == ev.Address {
				w.open = append(w.open[:i], w.open[i+1:]...)
				return
			}
		}
	}
}

// wait returns when the run has ended, or the grace is over. In a lane, Lane.watch does the same.
func (w *watched) wait() *StepResult {
	told, ending := w.ctx.Done(), false
	var patience *time.Timer
	var expired <-chan time.Time
	for {
		select {
		case <-w.wake:
			ending = ending || w.ends.Load()
		case <-told:
			if told, ending = nil, true; w.late() {
				w.step.fence.close(w.in.Late)
			}
		case <-expired:
			if w.turns(working, gone) {
				return w.leave()
			}
			expired = nil
			w.turns(hearing, awaited)
		}
		switch state := w.state.Load() & phases; {
		case state == over:
			return w.result()
		case ending && expired == nil && state != awaited:
			if patience == nil {
				patience = time.NewTimer(w.step.cfg.Grace)
				defer patience.Stop()
			} else {
				patience.Reset(w.step.cfg.Grace)
			}
			expired = patience.C
		}
	}
}

// result is that of a run that is over.
func (w *watched) result() *StepResult {
	res := &w.step.res
	if !w.whole {
		*res = StepResult{
			Err: &agent.StepError{Address: w.step.inv.address, Err: errors.New("the agent left its goroutine")},
		}
	}
	res.Left = w.left
	return res
}

// leave leaves a run behind that does not end: nothing of what it does from now on has
// an effect, be it in the state or an artifact, and whatever it looks at stays as it is.
func (w *watched) leave() *StepResult {
	s := w.step
	err := context.Cause(s.parent.Context)
	said := err
	switch {
	case err != nil && len(w.open) > 0:
		said = fmt.Errorf("%w; %s does not heed its context and was abandoned", err,
			w.open[len(w.open)-1].Address.Agent())
	case err == nil && w.late():
		err, said = w.in.Abandoned, w.in.Abandoned
	case err == nil: // the consumer has left
		err = context.Canceled
	}
	s.fence.close(err)
	s.parent.run.RunConfig.Pause.Leave(func(owner any) bool {
		f, ok := owner.(*fence)
		return ok && f.within(s.fence)
	})
	if !w.left {
		w.finish(said)
	}
	if end := w.observed.Load(); end != nil {
		(*end)(cmp.Or(said, err))
	}
	return &StepResult{Left: w.left, Err: err, Abandoned: true}
}

// finish writes the marks that the step and those in it cannot write any more, the
// innermost first.
func (w *watched) finish(err error) {
	parent := w.step.parent.Context
	_, late := errors.AsType[TimeoutError](err)
	for i := len(w.open) - 1; i >= 0; i-- { // none without marks
		begun := w.open[i]
		m, merr := mark.New(mark.KindStepFinished, mark.StepFinished{
			Error: err.Error(), Timeout: late, Canceled: i > 0 || parent.Err() != nil, At: string(begun.Address),
			Seconds: time.Since(begun.Timestamp).Seconds(),
		})
		if merr != nil { // numbers and texts: there is none
			return
		}
		if !w.yield(&session.Event{
			InvocationID: begun.InvocationID, Branch: begun.Branch, Author: begun.Author,
			Address: begun.Address, Iteration: begun.Iteration, Attempt: begun.Attempt, Mark: m,
		}) && parent.Err() == nil {
			w.left = true
			return
		}
	}
}
