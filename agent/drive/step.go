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

func init() { driver.Run = Run } // agent.Custom.Run is this

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

// StepConfig says what a [Step] runs, and where.
type StepConfig struct {
	// Agent is the agent to run.
	Agent agent.Agent
	// Branch is the branch of its events; empty means the branch of the context.
	Branch string
	// Loop is the loop that the step belongs to. The step's address is below Loop.Pass as it is
	// when the step runs. It is for loop agents.
	Loop *Loop
	// Tree is the tree of the step and all below it; nil means the tree of the context.
	Tree *Tree
	// Budget is the budget of all model calls of the step, a child of [Place.Budget]; nil means
	// that budget itself.
	Budget *budget.Meter
	// Grace is how long a run of the step can take to end after its context has ended or yield
	// has returned false. Then the run is left behind: its later writes and events have no
	// effect. For this the agent runs in a goroutine of its own, and yield in the goroutine that runs
	// the step. An [Inline] agent runs there too, and its own steps have the grace. Each run sees the
	// loops around it as they are when it begins. A step that was left behind cannot run again: it
	// fails. 0 waits without limit.
	Grace time.Duration
}

// Step runs one agent under a context: once, or again and again, such as in each iteration of a
// loop. Only one run may be under way. The agent's context is valid until its run ends; the
// next run uses it again.
type Step struct {
	cfg    StepConfig
	base   Base // of the agent; empty for one that has a Run of its own
	parent *invocation
	fence  *fence  // nil if it cannot be left behind, nor anything around it
	loop   *Loop   // of the run under way, or of the next; nil if the step is in none
	beside *beside // nil without a grace
	within bool    // with a grace: the agent runs in the goroutine that runs the step, and gives the grace to its steps
	inv    *invocation
	bound  bool                             // inv has a context of its own, for one run
	spent  *budget.Meter                    // what its runs use; nil if the run writes no marks
	joins  joining                          // which of its marks can be stored with the event after them
	emit   func(*session.Event, error) bool // (*Step).emitEvent, bound once

	// Of the run under way, or of the next.
	yield   func(*session.Event) bool
	yielded bool               // the consumer is at work
	fin     *mark.StepFinished // see StepRun.Finished
	began   time.Time          // see StepRun.Began
	skipped *session.Event     // what a resumed run did before this one, and has not come to
	done    bool
	res     StepResult
}

// StepResult is the outcome of one run of a step.
type StepResult struct {
	// Err is the failure of the step, or nil.
	Err error
	// Left reports that the consumer stopped listening, although the context had not ended:
	// return at once and yield nothing more.
	Left bool
	// Exit is the last event that asked to leave a loop and was not refused.
	Exit *session.Event
	// Said is the last whole event with text or data; see [session.Event.Speaks].
	Said *session.Event
	// Answer is the whole event with text or data that is the step's answer; see [session.Answer].
	Answer *session.Event
	// Abandoned reports that the step did not end within its grace and was left behind.
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
	s := &Step{cfg: cfg, parent: parentOf(ctx), loop: cfg.Loop}
	s.fence = s.parent.fence
	if cfg.Grace > 0 { // it shares nothing that changes when others run on
		s.beside = newBeside(s.parent)
		s.parent = s.parent.copy(s.parent.Context)
		s.parent.loop = s.parent.loop.snapshot()
	}
	s.emit = s.emitEvent
	switch a := cfg.Agent.(type) {
	case *agent.Custom:
		s.base = Base{cfg: a.Config(), self: a}
	case based: // one that embeds another agent may have a Run of its own
		if b := a.base(); b != nil && identity.Same(b.self, a) {
			s.base = *b
		}
	}
	if all := s.parent.run.Callbacks; all != nil {
		s.base = all.around(cfg.Agent, s.base, s.parent.agent == nil)
	}
	s.within = cfg.Grace > 0 && s.inline()
	s.joins = s.joining()
	return s
}

// StepRun holds the details of one run of a step. A zero field means what [Step.Run] does.
type StepRun struct {
	// Address is the step's address.
	Address session.Address
	// Attempt is the number of the attempt, from 1; 0 means 1.
	Attempt int
	// Context limits the run. It must be derived from the step's own context; nil means that
	// context.
	Context context.Context
	// Late is the cause with which Context ends when the run's own time is over, for a step
	// with a grace. From then on the run changes nothing, and of its events only the marks of
	// its end are passed on. Abandoned is the error of a run that is left behind after that.
	Late, Abandoned error
	// Finished gets the data of the mark that the step has finished, for a caller who adds to it:
	// the mark is yielded without data then. It is for one run only. A step that was left behind
	// yields a mark that is complete.
	Finished *mark.StepFinished
	// Work is what an [agent.Pause] waits for until the caller calls its Done. If Work is nil
	// the step counts itself as working.
	Work *agent.Work
	// Began is when the run begins, for a caller who has just read the clock. The zero time means
	// now.
	Began time.Time
}

// RunAs runs the step as [Step.Run] does, with the details in in, which it does not keep. The result
// is valid until the step's next run.
func (s *Step) RunAs(in *StepRun, yield func(*session.Event) bool) *StepResult {
	if s.beside != nil {
		if s.beside.over { // its agent may still use what a run sets
			at := cmp.Or(in.Address, session.Address(s.cfg.Agent.Name()))
			return &StepResult{Err: &agent.StepError{Address: at, Err: errAbandoned}}
		}
		s.beside.begin(s, in)
	}
	return s.run(in, yield)
}

// Run runs the step's agent and passes each of its events to yield. After yield has returned
// false it gets no more events, except marks if the context has ended.
func (s *Step) Run(yield func(*session.Event) bool) StepResult {
	return *s.RunAs(&StepRun{}, yield)
}

func (s *Step) run(in *StepRun, yield func(*session.Event) bool) *StepResult {
	s.begin(in, yield)
	switch rec := s.inv.record; {
	case !s.check() || s.skipped != nil && s.early():
	case rec != nil && rec.end == finished:
		s.replay(rec)
	case s.parent.run.RunConfig.Observer != nil:
		s.workObserved(s.parent.run.RunConfig.Observer)
	default:
		s.workNow()
	}
	s.yield = nil
	return &s.res
}

// workNow calls work, unless the run is about to pause.
func (s *Step) workNow() {
	if s.inv.work == nil && s.parent.run.RunConfig.Pause != nil && works(s.cfg.Agent) {
		s.workPausable()
	} else {
		s.work()
	}
}

// workPausable is workNow for a step that a pause waits for.
func (s *Step) workPausable() {
	s.inv.work = s.parent.run.RunConfig.Pause.Begin(s.inv, s.fence, s.parent.stranger)
	defer s.inv.work.Done()
	if s.check() {
		s.work()
	}
}

// work runs the agent.
func (s *Step) work() {
	if s.parent.run.Marks {
		s.runMarked()
	} else {
		s.execute()
	}
}

// begin prepares the agent's context. Everything in it that a run changes is
// set here.
func (s *Step) begin(in *StepRun, yield func(*session.Event) bool) {
	p, inv := s.parent, s.inv
	// A request that is over may look at its context once more, from a
	// goroutine of its own, and an abandoned step for as long as it likes: that
	// of an invocation is never changed.
	if inv == nil || s.bound || in.Context != nil || s.beside != nil || p.run.RunConfig.Observer != nil {
		inv = &invocation{
			Context: p.Context, run: p.run, outer: p, agent: s.cfg.Agent, branch: p.branch, loop: p.loop, tree: p.tree,
			budget: p.budget, fence: s.fence, attempt: 1,
		}
		if s.within {
			inv.grace = s.cfg.Grace
		}
		if s.cfg.Branch != "" {
			inv.branch = s.cfg.Branch
		}
		if s.cfg.Tree != nil {
			inv.tree = s.cfg.Tree
		}
		if s.cfg.Budget != nil {
			inv.budget = s.cfg.Budget
		}
		if p.run.Marks {
			inv.budget = s.meter(inv.budget)
		}
		if s.bound = in.Context != nil; s.bound {
			inv.Context = in.Context
		}
		inv.own = inv.Context
		s.inv = inv
	}
	if s.loop != nil {
		inv.loop = s.loop
	}
	inv.attempt = max(1, in.Attempt)
	inv.made = inv.attempt
	switch {
	case in.Address != "":
		inv.address = in.Address
	case s.loop != nil:
		inv.address = s.loop.Pass + "/" + session.Address(s.cfg.Agent.Name())
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
	if inv.record, s.skipped = nil, nil; p.record != nil {
		s.find(p.record)
	}
	if inv.work = p.work; in.Work != nil {
		inv.work = in.Work
	}
	s.fin, s.began = in.Finished, in.Began
	s.yield, s.done, s.yielded = yield, false, false
	s.res = StepResult{}
}

// execute runs the agent and turns a panic in it into an error. A panic in the consumer is not recovered.
func (s *Step) execute() {
	defer func() {
		if s.yielded {
			return
		}
		if v := recover(); v != nil {
			s.done = false // even after an error: the panic is the worse news
			s.fail(agent.PanicOf(v))
		}
	}()
	if s.inv.record == nil { // in a loop whose steps say nothing, marks alone fill the log
		if err := s.inv.room(0); err != nil {
			s.fail(err)
			return
		}
	}
	if s.beside == nil || s.within {
		s.body(s.emit)
	} else {
		s.runBeside()
	}
	if !s.done {
		s.check() // it may have ended because of the context, without a word
	}
}

// body runs the agent's own code.
func (s *Step) body(yield func(*session.Event, error) bool) {
	switch {
	case s.base.self == nil:
		each(s.cfg.Agent.Run(s.inv), yield)
	case s.base.bare():
		s.base.do(s.inv, yield)
	default:
		s.base.execute(s.inv, yield)
	}
}

// each ranges over what an agent's Run has returned.
func each(seq iter.Seq2[*session.Event, error], yield func(*session.Event, error) bool) {
	if seq == nil {
		yield(nil, errors.New("Run returned no sequence; it must not return nil"))
		return
	}
	seq(yield)
}

// emitEvent takes a pair from the agent.
func (s *Step) emitEvent(ev *session.Event, err error) bool {
	if s.late() {
		s.check()
		ev = onlyMark(ev)
	}
	if s.done {
		if s.canceled() && ev != nil && ev.Mark != nil {
			if ev = s.told(ev); ev != nil {
				s.pass(ev) // how it ended is for the log, canceled or not
			}
		}
		return false
	}
	if ev != nil {
		if ev.Mark != nil {
			if s.isSaidAgain(ev) && ev != At(s.inv).Recorded() {
				return s.check() // a mark is a fact: once is enough
			}
			if ev.Mark.Joins && !s.joins.through {
				ev.Mark.Joins = false
			}
		}
		if ev = s.told(ev); ev == nil || !s.pass(ev) {
			return false
		}
	}
	switch {
	case err != nil:
		s.fail(err)
		return false
	case ev == nil:
		s.fail(errors.New("agent yielded neither an event nor an error; each pair needs one of them"))
		return false
	}
	return s.check()
}

// pass hands an event on and takes note of it.
func (s *Step) pass(ev *session.Event) bool {
	ok := s.give(ev)
	if !ok {
		s.done = true
		if s.res.Left = s.inv.Context.Err() == nil; !s.res.Left {
			s.res.Err = context.Cause(s.inv.Context)
		}
	}
	if s.beside != nil { // the consumer's context is the one around the run's own
		if s.res.Left = !ok && s.parent.Context.Err() == nil; ev.Mark != nil && !s.res.Left {
			s.beside.note(ev)
		}
	}
	if !ok {
		return false
	}
	if ev.Actions.AsksToLeave() && isLater(ev, s.res.Exit) {
		s.res.Exit = ev
	}
	s.res.Hear(ev)
	return true
}

// Hear records an event of the step.
func (r *StepResult) Hear(ev *session.Event) {
	if ev.Partial || ev.Mark != nil || !ev.Speaks() {
		return
	}
	if isLater(ev, r.Said) {
		r.Said = ev
	}
	if isLater(ev, r.Answer) {
		r.Answer = session.Answer(r.Answer, ev)
	} else {
		r.Answer = session.Answer(ev, r.Answer)
	}
}

// give gives an event to the consumer.
func (s *Step) give(ev *session.Event) bool {
	s.yielded = true
	ok := s.yield(ev)
	s.yielded = false
	return ok
}

// isLater reports whether an event comes after another one in the log. Where a
// run is resumed they may come in another order.
func isLater(ev, other *session.Event) bool { return other == nil || ev.Seq == 0 || ev.Seq > other.Seq }

// canceled reports whether the step ended because its context did.
func (s *Step) canceled() bool { return s.inv.Context.Err() != nil && !s.res.Left }

// check ends the step if its context is over.
func (s *Step) check() bool { return s.inv.Context.Err() == nil || s.over() }

// over ends the step, as its context is over.
func (s *Step) over() bool {
	s.fail(context.Cause(s.inv.Context))
	return false
}

// fail ends the step with an error. Under a canceled context whatever fails
// does so because of that, but for a panic.
func (s *Step) fail(err error) {
	if s.done {
		return
	}
	s.done = true
	if _, ok := errors.AsType[*agent.PanicError](err); !ok && s.inv.Context.Err() != nil {
		s.res.Err = context.Cause(s.inv.Context)
		return
	}
	if _, ok := errors.AsType[*agent.StepError](err); !ok {
		err = &agent.StepError{Address: s.inv.address, Err: err}
	}
	s.res.Err = err
}

// isBelow reports whether an event is of a step below this one.
func (s *Step) isBelow(ev *session.Event) bool {
	own := s.inv.address
	return len(ev.Address) > len(own) && ev.Address.Under(own)
}

// isSaidAgain reports whether an event is in the log and not yielded for the first time,
// be it in this process or in one that the run was resumed from.
func (s *Step) isSaidAgain(ev *session.Event) bool {
	return ev.Seq != 0 && !s.inv.run.Replay.comes(ev)
}

// stamp says on an event where it comes from. The step that is nearest to the
// event does it; those above see an address below their own and leave it.
func (s *Step) stamp(ev *session.Event) *session.Event {
	own := s.inv.address
	if ev.Seq != 0 { // said again by an agent that keeps its events, or those of another one: its own word now
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
	return ev
}
