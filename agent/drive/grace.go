// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// watched is what a step has that may be left behind. The agent runs in a goroutine of its own, and hands
// each event to the goroutine that runs the step, which gives it to the consumer: the consumer's code stays
// in the consumer's goroutine.
type watched struct {
	step  *Step
	outer *invocation               // that the step was made under
	hand  func(*session.Event) bool // handOver, bound once
	take  func(*session.Event) bool // hear, bound once

	said  chan *session.Event // events on their way to the consumer
	taken chan bool           // the consumer's answers
	ended chan struct{}       // the agent's goroutine has finished its run
	gone  chan struct{}       // closed when the step is left behind

	// Of one run.
	in       StepRun
	ctx      context.Context // that bounds the run
	yield    func(*session.Event) bool
	observed atomic.Pointer[func(error)] // tells an observer of the end of the run; nil without an observer

	// Of the goroutine that runs the step.
	left      bool             // the consumer has stopped listening, of its own will
	open      []*session.Event // marks of steps that have begun and not finished
	abandoned bool

	// Of the agent's goroutine, until it has finished.
	whole bool  // the run has come to its end
	crash error // a panic outside the agent's Run, such as one of an observer
}

func newWatched(s *Step) *watched {
	w := &watched{step: s, outer: s.parent, said: make(chan *session.Event), taken: make(chan bool, 1),
		ended: make(chan struct{}, 1), gone: make(chan struct{})}
	w.hand, w.take = w.handOver, w.hear
	return w
}

// begin makes everything ready for a run.
func (w *watched) begin(in *StepRun, yield func(*session.Event) bool) {
	s := w.step
	w.in, w.ctx, w.yield = *in, s.parent.Context, yield
	if in.Context != nil {
		w.ctx = in.Context
	}
	w.observed.Store(nil)
	w.left, w.whole, w.crash = false, false, nil
	clear(w.open)
	w.open = w.open[:0]
	if s.fence == nil || s.fence == w.outer.fence || s.fence.closed() {
		s.fence = newFence(w.outer)
	}
	s.fence.closeAfter(w.ctx, in.Late)
	s.loop = s.cfg.Loop.snapshot()
}

var (
	// errAbandoned is the failure of a step that runs again after it was left behind.
	errAbandoned = errors.New("the step did not heed its context and was abandoned; make a new step to run the agent again")
	// errLeft is the failure of an agent that has called runtime.Goexit.
	errLeft = errors.New("the agent left its goroutine")
)

// runWatched is Run for a step with a grace.
func (s *Step) runWatched(in *StepRun, yield func(*session.Event) bool) *StepResult {
	w := s.watched
	if w.abandoned { // its goroutine may still use everything that begin sets
		return &StepResult{Err: &agent.StepError{Address: s.place(in), Err: errAbandoned}}
	}
	w.begin(in, yield)
	if s.brief() { // nobody has to wait for it
		s.run(&w.in, w.take)
		w.whole = true
		return w.result()
	}
	go w.work()
	back := false
	defer func() {
		if !back && !w.abandoned { // the consumer has panicked, or ended its goroutine
			w.left = true
			w.taken <- false
			w.wait()
		}
	}()
	res := w.wait()
	back = true
	return res
}

// place returns where a run of the step is, for an error beside its goroutine.
func (s *Step) place(in *StepRun) session.Address {
	return cmp.Or(in.Address, session.Address(s.cfg.Agent.Name()))
}

// brief reports whether the agent ends at once. Callbacks of it may not.
func (s *Step) brief() bool {
	b, ok := s.cfg.Agent.(Brief)
	return ok && s.base.self != nil && len(s.base.cfg.BeforeAgentCallbacks) == 0 &&
		len(s.base.cfg.AfterAgentCallbacks) == 0 && b.Brief()
}

// work runs the agent in its goroutine, which the agent may end.
func (w *watched) work() {
	defer func() { w.ended <- struct{}{} }()
	defer agent.Recover(&w.crash)
	w.step.run(&w.in, w.hand)
	w.whole = true
}

// handOver hands an event to the goroutine that runs the step, and returns the consumer's answer. It returns
// false if the step was left behind.
func (w *watched) handOver(ev *session.Event) bool {
	select {
	case w.said <- ev:
		return <-w.taken
	case <-w.gone:
		return false
	}
}

// hear gives an event to the consumer, in the consumer's goroutine.
func (w *watched) hear(ev *session.Event) bool {
	if w.late() {
		if ev = onlyMark(ev); ev == nil {
			return false
		}
	}
	if w.left {
		return false
	}
	ok := w.yield(ev)
	w.left = !ok && w.step.parent.Context.Err() == nil
	if ev.Mark != nil && !w.left {
		w.note(ev)
	}
	return ok
}

// wait gives the events of a run to the consumer, and returns when the run has ended or its grace is over.
// The time that the consumer takes is not the step's: a grace that ends meanwhile begins again.
func (w *watched) wait() *StepResult {
	told, ending := w.ctx.Done(), w.left
	var patience *time.Timer
	var expired <-chan time.Time
	var until time.Time
	for {
		if ending && (expired == nil || time.Now().After(until)) {
			if patience == nil {
				patience = time.NewTimer(w.step.cfg.Grace)
				defer patience.Stop()
			} else {
				patience.Reset(w.step.cfg.Grace)
			}
			expired, until = patience.C, time.Now().Add(w.step.cfg.Grace)
		}
		select {
		case ev := <-w.said:
			ok := w.hear(ev)
			ending = ending || !ok
			w.taken <- ok
		case <-w.ended:
			return w.result()
		case <-told:
			told, ending = nil, true
		case <-expired:
			select {
			case <-w.ended:
				return w.result()
			default:
				return w.leave()
			}
		}
	}
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

// result is that of a run that is over.
func (w *watched) result() *StepResult {
	res := &w.step.res
	if !w.whole {
		*res = StepResult{Err: &agent.StepError{Address: w.step.inv.address, Err: cmp.Or(w.crash, errLeft)}}
	}
	res.Left = w.left
	return res
}

// leave leaves a run behind that does not end: nothing of what it does from now on has
// an effect, be it in the state or an artifact, and whatever it looks at stays as it is.
func (w *watched) leave() *StepResult {
	s := w.step
	w.abandoned = true
	close(w.gone)
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
		if crash := ObservedEnd(*end, cmp.Or(said, err)); crash != nil {
			err = &agent.StepError{Address: s.place(&w.in), Err: crash}
		}
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
