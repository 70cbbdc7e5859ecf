// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/agent/internal/identity"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

func init() { driver.Run = Run } // agent.Custom.Run calls it

// Run runs an agent as a step under ctx. An agent that runs others calls this function or their
// Run method, which does the same for every agent of this project. An error of the agent is
// yielded last, as an [*agent.StepError]. If the context was canceled the error is
// context.Cause(ctx).
func Run(ctx agent.InvocationContext, a agent.Agent) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		left := false
		step := NewStep(ctx, StepConfig{Agent: a})
		res := step.Run(func(ev *session.Event) bool {
			left = left || !yield(ev, nil)
			return !left
		})
		if res.Err != nil && !left {
			yield(nil, res.Err)
		}
	}
}

// StepConfig is what a [Step] runs, and where.
type StepConfig struct {
	// Agent is the agent to run.
	Agent agent.Agent
	// Branch is the branch of its events; empty means the branch of the context.
	Branch string
	// Loop is the loop that the step belongs to. It is for loop agents. A run of the step gets an address below the
	// present value of Loop.IterationAddress.
	Loop *Loop
	// Tree is the tree of the step and all below it; nil means the tree of the context.
	Tree *Tree
	// Budget is the budget of all model calls of the step, a child of [Place.Budget]; nil means
	// that budget itself.
	Budget *budget.Meter
	// Grace is how long a run of the step can take to end after its context has ended or yield has returned false.
	// After that the step abandons the run: later writes and events of the run have no effect, and the step fails if
	// it runs again. 0 waits without limit. A step with a grace runs its agent in a goroutine of its own, and yield in
	// the goroutine of its caller. An inline agent (see [Traits]) runs in the goroutine of the caller too, and its own steps have
	// the grace. Each run sees the loops around it as they were when the run began.
	Grace time.Duration
}

// Step runs one agent under a context. It can run the agent several times, for example in each iteration of a loop,
// but only one run at a time. The context of the agent is valid until its run ends, because the next run may use it
// again.
type Step struct {
	cfg         StepConfig
	base        Base // of the agent; empty for an agent with its own Run method
	parent      *invocation
	info        *stepInfo       // set by the first run
	fence       *fence          // nil if neither the step nor anything around it can be abandoned
	loop        *Loop           // of the current run, or of the next; nil outside loops
	goroutine   *agentGoroutine // nil without a grace
	inlineGrace bool            // the agent runs in the goroutine of the step's caller and gives the grace to its steps
	inv         *invocation
	ownContext  bool                             // inv has the context of one run, so no other run uses it
	meter       *budget.Meter                    // counts the usage of the step's runs; nil if the run writes no marks
	batching    batching                         // which of its marks can be stored with the event after them
	emit        func(*session.Event, error) bool // (*Step).emitEvent, bound once
	current     currentRun
}

// currentRun has the data of a step's current run, or of its last one.
type currentRun struct {
	yield      func(*session.Event) bool // nil between runs
	inConsumer bool                      // the consumer handles an event
	endData    *mark.StepFinished        // see StepRun.Finished
	started    time.Time                 // see StepRun.Started
	unreplayed *session.Event            // the first event of the log before this run that the resumed run has not reached
	stopped    bool
	result     StepResult
}

// StepResult is the outcome of one run of a step.
type StepResult struct {
	// Err is the failure of the step, or nil.
	Err error
	// ConsumerLeft reports that the consumer has stopped listening, although the context had not ended. The caller
	// must return at once and yield nothing more.
	ConsumerLeft bool
	// Exit is the last event that asked to leave a loop, if the loop did not refuse the request.
	Exit *session.Event
	// LastOutput is the last event with text or data that is not partial; see [session.Event.Speaks].
	LastOutput *session.Event
	// Output is the event with text or data that is the step's answer. It is not partial; see [session.Answer].
	Output *session.Event
	// Abandoned reports that the step did not end within its grace, and does not wait for its agent any more.
	Abandoned bool
	// Recorded is the mark with the end of the step, if it finished in an earlier part of the
	// run. It is nil if the step ran now.
	Recorded *mark.StepFinished
	// Ended is when the agent ended. It is zero in a run without marks, and for a step that did
	// not run to its end now.
	Ended time.Time
}

// NewStep prepares a step under ctx.
func NewStep(ctx agent.InvocationContext, cfg StepConfig) *Step {
	s := &Step{cfg: cfg, parent: parentInvocation(ctx), loop: cfg.Loop}
	s.fence = s.parent.fence
	if cfg.Grace > 0 { // an abandoned agent must not see the loops around it change
		s.goroutine = newAgentGoroutine(s.parent)
		s.parent = s.parent.copy(s.parent.Context)
		s.parent.loop = s.parent.loop.snapshot()
	}
	s.emit = s.emitEvent
	switch a := cfg.Agent.(type) {
	case *agent.Custom:
		s.base = Base{cfg: a.Config(), self: a}
	case baser: // an agent that embeds another one may have its own Run method
		if b := a.base(); b != nil && identity.Same(b.self, a) {
			s.base = *b
		}
	}
	if all := s.parent.run.Callbacks; all != nil {
		s.base = all.wrapBase(cfg.Agent, s.base, s.parent.agent == nil)
	}
	s.inlineGrace = cfg.Grace > 0 && s.isInline()
	s.batching = s.marksToBatch()
	return s
}

// StepRun holds the details of one run of a step. For a field with its zero value, [Step.RunAs] does what [Step.Run]
// does.
type StepRun struct {
	// Address is the step's address.
	Address session.Address
	// Attempt is the number of the attempt, from 1; 0 means 1.
	Attempt int
	// Context limits the run. It must be derived from the step's own context; nil means that
	// context.
	Context context.Context
	// TimeoutErr is the cause with which Context ends when the time limit of the run is over. It is for a step with a
	// grace. After that the run changes nothing, and RunAs passes on only its marks. AbandonErr is the error of a run
	// that the step abandons after the time limit.
	TimeoutErr, AbandonErr error
	// Finished receives the data of the mark that ends the step, so that the caller can add to them. The step then
	// yields the mark without data. Use it for one run only. An abandoned step yields the mark with its data.
	Finished *mark.StepFinished
	// Work is what an [agent.Pause] waits for until the caller calls its Done. If Work is nil
	// the step counts itself as working.
	Work *agent.Work
	// Started is when the run begins, for a caller who has just read the clock. The zero time means
	// now.
	Started time.Time
}

// RunAs runs the step as [Step.Run] does, with the details in in, which it does not keep. The result
// is valid until the step's next run.
func (s *Step) RunAs(in *StepRun, yield func(*session.Event) bool) *StepResult {
	if s.goroutine != nil {
		if s.goroutine.wasAbandoned { // the abandoned agent may still use the fields that a run sets
			at := cmp.Or(in.Address, session.Address(s.cfg.Agent.Name()))
			return &StepResult{Err: &agent.StepError{Address: at, Err: errAbandoned}}
		}
		s.goroutine.begin(s, in)
	}
	return s.run(in, yield)
}

// Run runs the step's agent and passes each of its events to yield. After yield has returned
// false it gets no more events, except marks if the context has ended.
func (s *Step) Run(yield func(*session.Event) bool) StepResult {
	return *s.RunAs(&StepRun{}, yield)
}

// run replays the step if it has finished in the log of a resumed run. Otherwise it runs the agent.
func (s *Step) run(in *StepRun, yield func(*session.Event) bool) *StepResult {
	s.begin(in, yield)
	switch rec := s.inv.logged; {
	case !s.stopIfCanceled() || s.current.unreplayed != nil && s.failOutOfOrder():
	case rec != nil && rec.end == finished:
		s.replay(rec)
	case s.parent.run.RunConfig.Observer != nil:
		s.runObserved(s.parent.run.RunConfig.Observer)
	default:
		s.runNow()
	}
	s.current.yield = nil
	return &s.current.result
}

// runNow runs the agent. If the agent works itself, a pause waits until it has ended.
func (s *Step) runNow() {
	if s.inv.work == nil && s.parent.run.RunConfig.Pause != nil && worksItself(s.cfg.Agent) {
		s.runPausable()
	} else {
		s.runAgent()
	}
}

// runPausable runs the agent of a step that a pause waits for. If the run is about to pause, the agent does not run.
func (s *Step) runPausable() {
	s.inv.work = s.parent.run.RunConfig.Pause.Begin(s.inv, s.fence, s.parent.foreign)
	defer s.inv.work.Done()
	if s.stopIfCanceled() {
		s.runAgent()
	}
}

// runAgent runs the agent, between two marks if the run writes them.
func (s *Step) runAgent() {
	if s.parent.run.Marks {
		s.runMarked()
	} else {
		s.execute()
	}
}

// begin prepares the context of the agent for a run. It sets every field that differs between runs.
func (s *Step) begin(in *StepRun, yield func(*session.Event) bool) {
	p, inv := s.parent, s.inv
	// A goroutine of an ended request or of an abandoned step may still read the context of its run. So no other run
	// uses such a context.
	if inv == nil || s.ownContext || in.Context != nil || s.goroutine != nil || p.run.RunConfig.Observer != nil {
		if s.info == nil {
			s.info = s.newInfo()
		}
		inv = &invocation{Context: p.Context, stepInfo: s.info}
		if s.ownContext = in.Context != nil; s.ownContext {
			inv.Context = in.Context
		}
		inv.stepContext = inv.Context
		s.inv = inv
	}
	attempt := max(1, in.Attempt)
	inv.position = position{
		attempt: attempt, countedAttempt: attempt, loop: cmp.Or(s.loop, p.loop), fence: s.fence, work: cmp.Or(in.Work, p.work),
	}
	switch {
	case in.Address != "":
		inv.address = in.Address
	case s.loop != nil:
		inv.address = s.loop.IterationAddress + "/" + session.Address(s.cfg.Agent.Name())
	default:
		inv.address = p.childAddress(s.cfg.Agent.Name())
	}
	if inv.loop != nil {
		inv.iteration = inv.loop.Iteration
	}
	if inv.ended.Load() {
		inv.ended.Store(false)
	}
	if inv.children.Load() != nil {
		inv.children.Store(nil)
	}
	s.current = currentRun{yield: yield, endData: in.Finished, started: in.Started}
	if p.logged != nil {
		s.findRun(p.logged)
	}
}

// newInfo returns the data that all runs of the step share.
func (s *Step) newInfo() *stepInfo {
	p := s.parent
	info := &stepInfo{
		run: p.run, parent: p, agent: s.cfg.Agent, branch: cmp.Or(s.cfg.Branch, p.branch), tree: cmp.Or(s.cfg.Tree, p.tree),
		budget: cmp.Or(s.cfg.Budget, p.budget),
	}
	if s.inlineGrace {
		info.grace = s.cfg.Grace
	}
	if p.run.Marks {
		s.meter = info.budget.Child(budget.Limits{})
		info.budget = s.meter
	}
	return info
}

// execute runs the agent and turns a panic in it into an error. A panic in the consumer is not recovered.
func (s *Step) execute() {
	defer func() {
		if s.current.inConsumer {
			return
		}
		if v := recover(); v != nil {
			s.current.stopped = false // the panic replaces an earlier error
			s.stopWith(agent.PanicOf(v))
		}
	}()
	if s.inv.logged == nil { // in a loop whose steps yield no events, marks alone fill the log
		if err := s.inv.checkLogLimit(0); err != nil {
			s.stopWith(err)
			return
		}
	}
	if s.goroutine == nil || s.inlineGrace {
		s.body(s.emit)
	} else {
		s.runInGoroutine()
	}
	if !s.current.stopped {
		s.stopIfCanceled() // the agent may have returned without an error because the context ended
	}
}

// body runs the agent's own code.
func (s *Step) body(yield func(*session.Event, error) bool) {
	switch {
	case s.base.self == nil:
		rangeEvents(s.cfg.Agent.Run(s.inv), yield)
	case s.base.hasNoCallbacks():
		s.base.runBody(s.inv, yield)
	default:
		s.base.execute(s.inv, yield)
	}
}

// rangeEvents ranges over the events that a Run method has returned. It yields an error if the method has returned
// nil.
func rangeEvents(seq iter.Seq2[*session.Event, error], yield func(*session.Event, error) bool) {
	if seq == nil {
		yield(nil, errors.New("Run returned no sequence; it must not return nil"))
		return
	}
	seq(yield)
}

// emitEvent handles an event or an error that the agent yields. It returns false if the agent must return.
func (s *Step) emitEvent(ev *session.Event, err error) bool {
	if s.pastDeadline() {
		s.stopIfCanceled()
		ev = endMarkOnly(ev)
	}
	if s.current.stopped {
		if s.canceled() && ev != nil && ev.Mark != nil {
			if ev = s.resolveEvent(ev); ev != nil {
				s.deliver(ev) // the log records the end of a canceled step too
			}
		}
		return false
	}
	if ev != nil {
		if ev.Mark != nil {
			if s.isReplayed(ev) && ev != At(s.inv).Recorded() {
				return s.stopIfCanceled() // the mark was yielded before; do not yield it twice
			}
			if ev.Mark.Batch && !s.batching.passThrough {
				ev.Mark.Batch = false
			}
		}
		if ev = s.resolveEvent(ev); ev == nil || !s.deliver(ev) {
			return false
		}
	}
	switch {
	case err != nil:
		s.stopWith(err)
		return false
	case ev == nil:
		s.stopWith(errors.New("agent yielded neither an event nor an error; each pair needs one of them"))
		return false
	}
	return s.stopIfCanceled()
}

// deliver yields an event to the consumer and records it in the result. It returns false if the step must end.
func (s *Step) deliver(ev *session.Event) bool {
	ok := s.yieldEvent(ev)
	if !ok {
		s.current.stopped = true
		if s.current.result.ConsumerLeft = s.inv.Context.Err() == nil; !s.current.result.ConsumerLeft {
			s.current.result.Err = context.Cause(s.inv.Context)
		}
	}
	if s.goroutine != nil { // the consumer has the parent's context, not that of the run
		if s.current.result.ConsumerLeft = !ok && s.parent.Context.Err() == nil; ev.Mark != nil && !s.current.result.ConsumerLeft {
			s.goroutine.trackOpenSteps(ev)
		}
	}
	if !ok {
		return false
	}
	if ev.Actions.AsksToLeave() && isLaterInLog(ev, s.current.result.Exit) {
		s.current.result.Exit = ev
	}
	s.current.result.Observe(ev)
	return true
}

// Observe records an event of the step.
func (r *StepResult) Observe(ev *session.Event) {
	if ev.Partial || ev.Mark != nil || !ev.Speaks() {
		return
	}
	if isLaterInLog(ev, r.LastOutput) {
		r.LastOutput = ev
	}
	if isLaterInLog(ev, r.Output) {
		r.Output = session.Answer(r.Output, ev)
	} else {
		r.Output = session.Answer(ev, r.Output)
	}
}

// yieldEvent gives an event to the consumer.
func (s *Step) yieldEvent(ev *session.Event) bool {
	s.current.inConsumer = true
	ok := s.current.yield(ev)
	s.current.inConsumer = false
	return ok
}

// isLaterInLog reports whether an event comes after another one in the log. A resumed run may yield them in another
// order.
func isLaterInLog(ev, other *session.Event) bool {
	return other == nil || ev.Seq == 0 || ev.Seq > other.Seq
}

// canceled reports whether the step ended because its context did.
func (s *Step) canceled() bool { return s.inv.Context.Err() != nil && !s.current.result.ConsumerLeft }

// stopIfCanceled ends the step if its context has ended. It returns true if the step goes on.
func (s *Step) stopIfCanceled() bool { return s.inv.Context.Err() == nil || s.stopCanceled() }

// stopCanceled ends the step because its context has ended. It returns false.
func (s *Step) stopCanceled() bool {
	s.stopWith(context.Cause(s.inv.Context))
	return false
}

// stopWith ends the step with an error, unless the step has ended. If the context has ended too, the error is the
// cause of the context, except after a panic.
func (s *Step) stopWith(err error) {
	if s.current.stopped {
		return
	}
	s.current.stopped = true
	if _, ok := errors.AsType[*agent.PanicError](err); !ok && s.inv.Context.Err() != nil {
		s.current.result.Err = context.Cause(s.inv.Context)
		return
	}
	if _, ok := errors.AsType[*agent.StepError](err); !ok {
		err = &agent.StepError{Address: s.inv.address, Err: err}
	}
	s.current.result.Err = err
}

// isBelow reports whether an event is of a step below this one.
func (s *Step) isBelow(ev *session.Event) bool {
	own := s.inv.address
	return len(ev.Address) > len(own) && ev.Address.Under(own)
}

// isReplayed reports whether the log has an event, and a step has yielded it before, in this process or in one that
// the run was resumed from.
func (s *Step) isReplayed(ev *session.Event) bool {
	return ev.Seq != 0 && !s.inv.run.Replay.isPending(ev)
}

// setOrigin writes the origin of an event into it: author, invocation, branch, address, iteration and attempt. The
// step that yields the event does it. The steps above find an address below their own and leave the event as it is.
func (s *Step) setOrigin(ev *session.Event) *session.Event {
	own := s.inv.address
	if ev.Seq != 0 { // the agent yields a logged event again: treat a copy of it as a new event
		again := *ev
		again.Seq, again.ID, again.Timestamp, again.InvocationID, again.Branch = 0, "", time.Time{}, "", ""
		ev = &again
	}
	if ev.Author == "" {
		ev.Author = s.cfg.Agent.Name()
		if ev.Content != nil && ev.Content.Role == genai.RoleUser {
			ev.Author = "user"
		}
	}
	if ev.InvocationID == "" {
		ev.InvocationID = s.inv.run.ID
	}
	if ev.Branch == "" {
		ev.Branch = s.inv.branch
	}
	ev.Address, ev.Iteration, ev.Attempt = own, s.inv.iteration, s.inv.attempt
	s.inv.loop.stamp(ev)
	return ev
}
