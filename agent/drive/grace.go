// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Grace is how long a step or callback that ignores its context can delay its caller. The time
// counts from the end of the context, or from the moment that the consumer stops listening.
const Grace = 2 * time.Second

// gracePerLevel is added to the grace of an agent for each level of waiting agents below it. So inner agents give up
// first, and can report how they ended.
const gracePerLevel = 20 * time.Millisecond

// GraceAround returns the grace of an agent that gives its steps the grace own. The result is
// longer than own if agents below a also wait for their steps, or need longer to end.
func GraceAround(a agent.Agent, own time.Duration) time.Duration {
	return max(own, longestEnd(a)) + time.Duration(waitDepth(a))*gracePerLevel
}

// longestEnd returns the longest time that an agent in a's tree needs to end: see [Traits.EndsWithin].
func longestEnd(a agent.Agent) (most time.Duration) {
	most = TraitsOf(a, true).EndsWithin
	for _, sub := range a.SubAgents() {
		most = max(most, longestEnd(sub))
	}
	return most
}

// waitDepth returns how deeply agents that wait for their steps are nested below a.
func waitDepth(a agent.Agent) (most int) {
	for _, sub := range a.SubAgents() {
		n := waitDepth(sub)
		if t := agent.TypeOf(sub); t == agent.TypeLoop || t == agent.TypeParallel {
			n++
		}
		most = max(most, n)
	}
	return most
}

// GraceOf returns the grace that a runner gives its root: [Grace], or longer if an agent in
// the tree gives its own steps longer, or needs longer to end: see [Traits].
func GraceOf(a agent.Agent, durable bool) time.Duration {
	d := max(Grace, longestEnd(a))
	if own := TraitsOf(a, durable).StepGrace; own > 0 {
		d = max(d, own+gracePerLevel)
	}
	for _, sub := range a.SubAgents() {
		d = max(d, GraceOf(sub, durable))
	}
	return d
}

// agentGoroutine runs the agent of a step with a grace in a goroutine of its own, which the step can abandon. The
// rest of the step, and the consumer's code, stay in the goroutine that runs the step. The agent has only its
// context, and deliver, which sends its events to that goroutine.
type agentGoroutine struct {
	parent  *invocation // the invocation that the step was made under
	deliver func(*session.Event, error) bool

	events          chan eventPair // what the agent yields
	acks            chan bool      // one for each pair: whether the agent may continue
	exited          chan error     // the end of the agent's goroutine: nil, a panic, or errGoexit
	abandonedSignal chan struct{}  // closed when the agent is abandoned

	timeoutErr, abandonErr error            // see StepRun
	openSteps              []*session.Event // marks of steps that have begun and not finished
	wasAbandoned           bool             // the step does not wait for the agent any more
}

// eventPair is an event or an error that an agent yields.
type eventPair struct {
	event *session.Event
	err   error
}

func newAgentGoroutine(outer *invocation) *agentGoroutine {
	b := &agentGoroutine{parent: outer, events: make(chan eventPair), acks: make(chan bool, 1), exited: make(chan error, 1),
		abandonedSignal: make(chan struct{})}
	b.deliver = b.send
	return b
}

var (
	// errAbandoned is the failure of a step that runs again after its agent was abandoned.
	errAbandoned = errors.New("the agent did not heed its context and was abandoned; make a new step to run it again")
	// errGoexit is the failure of an agent that has called runtime.Goexit.
	errGoexit = errors.New("the agent ended its goroutine by runtime.Goexit; it must return instead")
)

// begin prepares the step for a run. The run sees the loops around it as they are now.
func (b *agentGoroutine) begin(s *Step, in *StepRun) {
	b.timeoutErr, b.abandonErr = in.TimeoutErr, in.AbandonErr
	clear(b.openSteps)
	b.openSteps = b.openSteps[:0]
	if s.fence == nil || s.fence == b.parent.fence || s.fence.closed() {
		s.fence = newFence(b.parent)
	}
	ctx := s.parent.Context
	if in.Context != nil {
		ctx = in.Context
	}
	s.fence.closeOn(ctx, in.TimeoutErr)
	s.loop = s.cfg.Loop.snapshot()
}

// isInline reports whether the agent can run in the goroutine of its caller: see [Traits.Inline]. An agent with sub-agents
// cannot if the run has callbacks of plugins or an observer, because the steps below it call their code.
func (s *Step) isInline() bool {
	run := s.parent.run
	return s.base.self != nil && s.base.hasNoCallbacks() && TraitsOf(s.cfg.Agent, run.Marks).Inline &&
		(len(s.base.cfg.SubAgents) == 0 || run.Callbacks == nil && run.RunConfig.Observer == nil)
}

// Grace returns the grace that an agent gives to its steps. own is the agent's own setting. If the step around the
// agent passes on a shorter grace, or own is 0, Grace returns the passed grace, and otherwise own.
func (p Place) Grace(own time.Duration) time.Duration {
	if inv := p.inv; inv != nil && inv.grace > 0 && (own == 0 || inv.grace < own) {
		return inv.grace
	}
	return own
}

// send hands a pair to the goroutine that runs the step, and returns whether the agent may continue. It returns false
// after the agent was abandoned.
func (b *agentGoroutine) send(ev *session.Event, err error) bool {
	select {
	case b.events <- eventPair{ev, err}:
		return <-b.acks
	case <-b.abandonedSignal:
		return false
	}
}

// run calls body, and then sends the end of the goroutine to exited. body may panic or call runtime.Goexit.
func (b *agentGoroutine) run(body func(func(*session.Event, error) bool)) {
	err := errGoexit
	defer func() { b.exited <- err }()
	defer agent.Recover(&err)
	body(b.deliver)
	err = nil
}

// runInGoroutine runs the agent in a goroutine of its own, and handles its events in this one. If the consumer of an
// event panics or calls runtime.Goexit, the agent has its grace to end.
func (s *Step) runInGoroutine() {
	back := false
	defer func() {
		if !back && !s.goroutine.wasAbandoned {
			s.current.stopped, s.current.result.ConsumerLeft = true, s.current.inConsumer
			s.goroutine.acks <- false
			s.receive(true)
		}
	}()
	go s.goroutine.run(s.body)
	s.receive(false)
	back = true
}

// receive handles the events of the agent, and returns when the agent has ended or its grace is over. The time that
// the consumer takes does not count: if the grace ends while the consumer handles an event, it begins again. ending
// reports that the grace has begun.
func (s *Step) receive(ending bool) {
	canceled := s.inv.Context.Done()
	var timer *time.Timer
	var expired <-chan time.Time
	var until time.Time
	for {
		if ending && s.cfg.Grace > 0 && (expired == nil || time.Now().After(until)) {
			if timer == nil {
				timer = time.NewTimer(s.cfg.Grace)
				defer timer.Stop()
			} else {
				timer.Reset(s.cfg.Grace)
			}
			expired, until = timer.C, time.Now().Add(s.cfg.Grace)
		}
		select {
		case pair := <-s.goroutine.events:
			s.goroutine.acks <- s.emit(pair.event, pair.err)
			ending = ending || s.current.result.ConsumerLeft
		case err := <-s.goroutine.exited:
			s.joinGoroutine(err)
			return
		case <-canceled:
			canceled, ending = nil, true
		case <-expired:
			select {
			case err := <-s.goroutine.exited:
				s.joinGoroutine(err)
			default:
				s.abandon()
			}
			return
		}
	}
}

// joinGoroutine ends the step with the error, if any, of the goroutine of its agent.
func (s *Step) joinGoroutine(err error) {
	if err != nil {
		s.current.stopped = false // a panic or a Goexit replaces an earlier error
		s.stopWith(err)
	}
}

// pastDeadline reports whether the time limit of the run is over: see StepRun.TimeoutErr.
func (s *Step) pastDeadline() bool {
	return s.goroutine != nil && s.goroutine.timeoutErr != nil && s.inv.Context.Err() != nil && context.Cause(s.inv.Context) == s.goroutine.timeoutErr
}

// endMarkOnly returns the part of an event that counts after the time limit of the run. An event with a mark loses
// its actions, and stays for the log. For any other event it returns nil.
func endMarkOnly(ev *session.Event) *session.Event {
	if ev == nil || ev.Mark == nil {
		return nil
	}
	bare := *ev
	bare.Actions = session.EventActions{}
	return &bare
}

// trackOpenSteps adds a step that has started to openSteps, and removes a step that has finished.
func (b *agentGoroutine) trackOpenSteps(ev *session.Event) {
	switch ev.Mark.Kind {
	case mark.KindStepStarted:
		b.openSteps = append(b.openSteps, ev)
	case mark.KindStepFinished:
		for i := len(b.openSteps) - 1; i >= 0; i-- {
			if b.openSteps[i].Address == ev.Address {
				b.openSteps = append(b.openSteps[:i], b.openSteps[i+1:]...)
				return
			}
		}
	}
}

// abandon stops waiting for an agent that does not end. From now on the writes of the agent have no effect on the
// state and on artifacts, and its events are ignored. The loops that it reads do not change.
func (s *Step) abandon() {
	s.goroutine.wasAbandoned = true
	close(s.goroutine.abandonedSignal)
	err := context.Cause(s.parent.Context)
	logged := err
	switch {
	case err != nil && len(s.goroutine.openSteps) > 0:
		logged = fmt.Errorf("%w; %s does not heed its context and was abandoned", err, s.goroutine.openSteps[len(s.goroutine.openSteps)-1].Address.Agent())
	case err == nil && s.pastDeadline():
		err, logged = s.goroutine.abandonErr, s.goroutine.abandonErr
	case err == nil: // the consumer has left
		err = context.Canceled
	}
	s.fence.close(err)
	s.parent.run.RunConfig.Pause.Leave(func(owner any) bool {
		f, ok := owner.(*fence)
		return ok && f.isInside(s.fence)
	})
	if s.current.stopped = true; !s.current.result.ConsumerLeft {
		s.closeOpenSteps(logged)
	}
	s.current.result = StepResult{ConsumerLeft: s.current.result.ConsumerLeft, Err: err, Abandoned: true}
}

// closeOpenSteps yields the end marks of the abandoned step and of the steps inside it, which cannot yield them any
// more. The innermost step comes first.
func (s *Step) closeOpenSteps(err error) {
	parent := s.parent.Context
	_, late := errors.AsType[TimeoutError](err)
	for i := len(s.goroutine.openSteps) - 1; i >= 0; i-- { // there are none in a run without marks
		begun := s.goroutine.openSteps[i]
		m, merr := mark.New(mark.KindStepFinished, mark.StepFinished{
			Error: err.Error(), Timeout: late, Canceled: i > 0 || parent.Err() != nil, At: string(begun.Address),
			Seconds: time.Since(begun.Timestamp).Seconds(),
		})
		if merr != nil { // cannot happen, because the data are numbers and texts
			return
		}
		if !s.yieldEvent(&session.Event{
			InvocationID: begun.InvocationID, Branch: begun.Branch, Author: begun.Author,
			Address: begun.Address, Iteration: begun.Iteration, Attempt: begun.Attempt, Mark: m,
		}) && parent.Err() == nil {
			s.current.result.ConsumerLeft = true
			return
		}
	}
}
