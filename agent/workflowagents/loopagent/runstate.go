// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// run is one run of a loop: the decisions of package loop, and the data to carry them out.
type run struct {
	*Agent
	plan     *loop.Plan // the agent's plan, with the version of the rules with which the run began
	ctx      agent.InvocationContext
	place    drive.Place // the loop as a step of the run
	loop     *drive.Loop
	yield    func(*session.Event, error) bool
	mode     mode
	steps    steps
	spending spending

	tally     loop.Tally
	phase     phase
	current   attempt
	questions questions
	exits     exits
	failures  failures
	results   results
	snapshots snapshots
	writes    keyWrites
	observed  observation // empty without an observer
}

// mode has settings that do not change while the loop runs.
type mode struct {
	timed         bool          // the loop reads the clock
	grace         time.Duration // how long the loop waits for a step or callback that ignores its canceled context
	durable       bool          // the run writes marks
	resumed       bool          // the log has an earlier part of the loop
	tracksResults bool          // the loop reports its result when it ends
	batchesMarks  bool          // marks are stored with the next event, because the loop continues at once
}

// steps has the sub-agents as steps, by index in the plan.
type steps struct {
	direct    []*drive.Step // created at their first run
	guarded   []*drive.Step // the same steps, with a grace
	addresses []session.Address
	cache     *cache                    // nil if no step has one
	onEvent   func(*session.Event) bool // run.handleEvent, bound once
}

// spending has the budgets of the loop.
type spending struct {
	race      *raceLimit    // nil if the loop does not run in a race
	budget    *budget.Meter // the loop's own; nil if the loop reads no clock
	finalizer *budget.Hold  // reserved for the finalizer
}

// phase has the progress of the run between its start and its end.
type phase struct {
	lastEnded    int   // the last iteration whose end was handled
	planChanged  bool  // the log has another plan
	notContinued error // why a stopped loop stays stopped
	finalizing   bool
	stopped      bool
}

// attempt is the current attempt of a step.
type attempt struct {
	address     session.Address
	endMark     *session.Event     // the step's last mark, kept until the outcome is known
	endData     *mark.StepFinished // the data of endMark, if the step ran
	work        *agent.Work        // a pause waits for it
	limited     time.Duration      // time for which the step waited for a limit
	fingerprint *fingerprint       // of the output; nil if no rule compares outputs
}

// questions has the questions to the judge about some versions of the work. A question is nil if the judge answers it only once.
type questions struct {
	iteration *drive.Question // the current iteration
	best      *drive.Question // the best iteration
	start     *drive.Question // the state before the first iteration
	legBest   *drive.Question // the best iteration of a leg from the start
}

// exits has the requests to leave the loop.
type exits struct {
	accepted   *session.Exit // the request of the current step that the loop follows
	waits      bool          // accepted waits for a person
	refused    *session.Exit // the request of the current step that the loop refuses
	byCallback *session.Exit // the request of an iteration callback
}

// failures has the errors that can end the loop.
type failures struct {
	current  error // of the current step
	lastStep error // of the last step that failed
	outer    error // ends the loops around this one too, such as an exceeded budget of one of them
}

// results has the outputs from which the loop's result is chosen.
type results struct {
	candidates candidates
	finalizer  *session.Event // the finalizer's output
	lastOutput *session.Event
}

// snapshots has the states to restore or to compare.
type snapshots struct {
	initial     savedState
	accepted    savedState      // after the best iteration
	legBest     savedState      // after the best iteration of a leg from the start
	rival       map[string]any  // the state of the version with which the judge compares others
	met         map[string]any  // after the best iteration at whose end StopWhen held; see chooseBestFor
	beforeStep  savedState      // before the first attempt of the step
	changedKeys map[string]bool // keys that the loop has changed; nil if no other branch runs in parallel with the loop
}

// begin returns a run that is ready for the first decision.
func (a *Agent) begin(ctx agent.InvocationContext, yield func(*session.Event, error) bool) *run {
	place := drive.At(ctx)
	here, durable, n := place.Address(), place.Marks(), len(a.plan.Steps)
	r := &run{
		Agent: a, plan: a.plan, ctx: ctx, place: place, yield: yield,
		mode: mode{
			timed: a.stepGrace(durable) > 0, grace: place.Grace(a.grace), durable: durable, resumed: place.Resumed(),
			tracksResults: !a.plain || durable, batchesMarks: a.continuesAtOnce(),
		},
		steps:   steps{direct: make([]*drive.Step, n), addresses: make([]session.Address, n)},
		results: results{candidates: candidates{steps: make([]stepOutput, n)}},
		loop: &drive.Loop{
			Name: a.Name(), Address: here, Plan: a.plan, Outer: place.Loop(),
			Goal: a.cfg.Goal, Instructions: a.cfg.Instructions, Scorers: a.cfg.Scorers,
			Refusal: func(at session.Address) string { return a.refusal(here, at) },
		},
	}
	r.steps.onEvent = r.handleEvent
	return r
}

// setAddresses sets the addresses of an iteration and of its steps.
func (r *run) setAddresses(iteration int) {
	at := r.loop.Address + session.Address("["+strconv.Itoa(iteration)+"]")
	r.loop.IterationAddress = at
	for i := range r.plan.Steps {
		r.steps.addresses[i] = at + "/" + session.Address(r.plan.Steps[i].Name)
	}
}

// address returns the address of a step. The finalizer and the steps that score the start are in no iteration; a
// judge's second sample is its second run at its address.
func (r *run) address(d *loop.Decision) session.Address {
	at := r.steps.addresses[d.Step]
	if r.phase.finalizing || r.scoresStart(d) {
		at = r.loop.Address + "/" + session.Address(r.plan.Steps[d.Step].Name)
	}
	if d.Sample > 1 {
		at += session.Address("#" + strconv.Itoa(d.Sample))
	}
	return at
}

// scoresStart reports whether a step scores the state before the first iteration.
func (r *run) scoresStart(d *loop.Decision) bool { return d.Iteration == 0 && !r.phase.finalizing }

func (r *run) now() time.Time {
	if !r.mode.timed {
		return time.Time{}
	}
	return time.Now()
}

// finishWork lets a pause take effect, because the outcome of the step is in the log.
func (r *run) finishWork() {
	r.current.work.Done()
	r.current.work = nil
}

// canceled returns the cause if the run was canceled on purpose, or nil. A log that cannot be
// written is a failure and no cancellation.
func (r *run) canceled() error {
	if r.ctx.Err() == nil { // faster than context.Cause
		return nil
	}
	if err := context.Cause(r.ctx); !isLogLost(err) {
		return err
	}
	return nil
}
