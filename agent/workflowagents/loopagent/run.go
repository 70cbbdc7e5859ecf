// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/seal"
)

// run is one run of a loop: the decisions of package loop, and the data to carry them out.
type run struct {
	*Agent
	plan    *loop.Plan // the agent's, by the rules that the run began with
	ctx     agent.InvocationContext
	me      drive.Place // the loop as a step of the run
	yield   func(*session.Event, error) bool
	onEv    func(*session.Event) bool // run.event, bound once
	loop    *drive.Loop
	steps   []*drive.Step     // by index in the plan, made when first run
	watched []*drive.Step     // likewise, with a grace
	at      []session.Address // where each is in this iteration
	names   int               // how long the steps' names are together
	places  places
	buf     []byte          // for placeFrom
	timed   bool            // the clock is read
	grace   time.Duration   // of steps and callbacks
	marks   bool            // the run writes marks
	resumed bool            // the log has an earlier part of the loop
	sums    bool            // the loop says at its end what it came to
	joins   bool            // from the end of a step or iteration the loop goes on at once
	hash    *seal.Following // of the loop's events; nil without marks

	budget *budget.Meter // the loop's own; nil if nobody asks
	held   *budget.Hold  // what is kept of it for the finalizer
	prints *fingerprint  // of the step under way; nil if nobody asks
	cache  *cache        // nil if no step has one

	tally loop.Tally
	here  session.Address    // of the step under way
	over  *session.Event     // its last mark, held back until its outcome is known
	fin   *mark.StepFinished // what that mark says, if the step ran
	work  *agent.Work        // what a pause waits for

	limited time.Duration // that the step under way has waited for a limit

	watching observed // empty if nobody observes the run

	exit       *session.Exit // the request that the step made, if it is followed
	waits      bool          // it waits for a person
	called     *session.Exit // the request that an iteration callback made
	refused    *session.Exit // one that is not
	closed     int           // the iteration that had ended when the loop was continued
	changed    bool          // the log has another plan
	stays      error         // why the loop was not continued
	finalizing bool
	stopped    bool
	err        error // how the last step failed
	failed     error // how the last one that failed did
	beyond     error // what ends more than this loop, such as the budget of one around it

	made  candidates
	final *session.Event // what the finalizer said
	said  *session.Event // what was said last

	initial, accepted snapshot        // states to roll back to
	met               map[string]any  // the state after the best iteration at whose end StopWhen held; see fit
	before            snapshot        // the state before the step's first attempt
	touched           map[string]bool // keys that the loop has changed; nil if only it does
	written           writing         // who has written what it reads
}

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	me := drive.At(ctx)
	here := me.Address()
	r := &run{
		Agent: a, plan: a.plan, ctx: ctx, me: me, yield: yield, steps: make([]*drive.Step, len(a.plan.Steps)),
		made:  candidates{steps: make([]spoken, len(a.plan.Steps))},
		at:    make([]session.Address, len(a.plan.Steps)),
		timed: a.Grace(me.Marks()) > 0, grace: me.Grace(a.grace), marks: me.Marks(), resumed: me.Resumed(), sums: !a.plain || me.Marks(),
		joins: a.goesOnAtOnce(),
		loop: &drive.Loop{
			Name: a.Name(), Address: here, MaxIterations: a.plan.MaxIterations,
			StateLimit: a.plan.StateLimit, Outer: me.Loop(),
			Goal: a.cfg.Goal, Instructions: a.cfg.Instructions,
			Refusal: func(at session.Address) string { return a.refusal(here, at) },
		},
	}
	for _, step := range a.plan.Steps {
		r.names += len(step.Name)
	}
	r.onEv = r.event
	r.loop.Started = r.now()
	if r.timed {
		defer r.spend()()
	}
	r.prepare()
	if v := session.ViewBehind(ctx.Session()); v != nil && r.marks {
		r.hash = seal.FollowLoop(v, here, ctx.InvocationID())
		defer r.hash.End()
	}
	if me.Replays() {
		r.sameRules()
		r.otherPlan()
	}
	if r.marks && !r.mark(mark.KindLoopStarted, r.plan, nil) {
		return
	}
	for r.next() {
	}
	if !r.stopped && r.ctx.Err() != nil { // cut off while an event was on its way
		r.fail(context.Cause(r.ctx))
	}
}

// prepare makes the data that only some loops need.
func (r *run) prepare() {
	if p := r.plan; p.NoProgress != nil || p.Score != nil && p.Score.Judge != nil {
		r.prints = newFingerprint(r.ctx.Branch(), drive.At(r.ctx).Tree())
	}
	if r.caches() {
		r.cache = newCache()
	}
	switch outer := r.loop.Outer; {
	case outer != nil:
		r.loop.Kept = outer.Kept
	case r.inner:
		r.loop.Kept = new(sync.Map)
	}
	r.written.on = r.sums
	r.inherit()
	goesBack := r.plan.OnRegression == loop.RollbackOnWorse
	if goesBack {
		r.initial = r.snap(r.loop.Address)
	}
	r.loop.Pass = r.loop.Address
	for i := range r.plan.Steps {
		goesBack = goesBack || r.retries(i)
	}
	if goesBack && r.ctx.Branch() != "" {
		r.touched = make(map[string]bool)
	}
}

// next carries out the plan's next decision and reports whether the loop continues.
func (r *run) next() bool {
	d := r.plan.Next(&r.tally)
	if d.Ended.Number > r.closed {
		r.closed = d.Ended.Number
		if !r.endIteration(&d.Ended) {
			return false
		}
		if r.leaves(&d) {
			d = r.plan.Next(&r.tally)
		}
	}
	if r.stays == nil && r.continues() {
		r.closed = d.Ended.Number
		return r.mark(mark.KindLoopContinued, r.plan, nil)
	}
	switch d.Action {
	case loop.RunStep:
		if d.Iteration != r.loop.Iteration && !r.beginIteration(d.Iteration) {
			return false
		}
		if r.leaves(&d) {
			return true
		}
		return r.step(r.bounded(&d))
	case loop.Rollback:
		return r.rollBack(&d)
	case loop.Finalize:
		first := !r.finalizing
		r.finalizing = true
		r.observedEnd(nil, nil)
		r.loop.Pass = r.loop.Address
		r.fit(d.Stop.Reason)
		if first && !r.handOn(d.Stop) {
			return false
		}
		return r.step(r.bounded(&d))
	default:
		r.stop(d.Stop)
		return false
	}
}

// bounded returns a decision with its time limit reduced by the callbacks that ran since.
func (r *run) bounded(d *loop.Decision) *loop.Decision {
	if r.tally.Between > 0 {
		*d = r.plan.Next(&r.tally)
	}
	return d
}

func (r *run) now() time.Time {
	if !r.timed {
		return time.Time{}
	}
	return time.Now()
}

// step runs one sub-agent and adds its outcome to the tally.
func (r *run) step(d *loop.Decision) bool {
	asked := r.exit
	r.exit, r.refused, r.err = nil, nil, nil
	r.written.keys = r.written.keys[:0]
	switch {
	case d.Attempt > 1:
		if !r.undo(d, asked) {
			return false
		}
	case r.retries(d.Step):
		r.before = r.snap(r.address(d))
	}
	r.here, r.over = r.address(d), nil
	if r.resumed && r.me.Replays() {
		if known, more := r.recall(d); known {
			return more
		}
	}
	var o loop.Outcome // set in place: a literal with a call in it is made elsewhere, and copied
	o.Iteration, o.Step, o.Started, o.Between = d.Iteration, d.Step, r.now(), r.tally.Between
	var before budget.Usage
	if r.budget != nil {
		before = r.budget.Used()
	}
	res, how := r.carryOut(d, &o)
	if r.work != nil {
		defer r.done()
	}
	if res.Left {
		return false
	}
	if r.sums && !r.scoresStart(d) {
		r.heard(d.Step, res)
	}
	// A log keeps no monotonic clock, and a replayed time must give the same span.
	if r.timed {
		end := res.Ended
		if end.IsZero() {
			end = r.now()
		}
		span := end.Sub(o.Started)
		o.Started = o.Started.Round(0)
		o.Finished = o.Started.Add(span)
	}
	if r.budget != nil {
		o.Usage = r.since(before)
	}
	r.outcome(&o, d, res.Err, how)
	o.ExitWords = o.Exit == nil && res.Err == nil && !r.finalizing && r.writesExit(res.Answer)
	if r.marks && !r.record(d, &o) {
		return false
	}
	r.add(d, &o, res.Err)
	return true
}

// scoresStart reports whether a step scores what is there before the first iteration.
func (r *run) scoresStart(d *loop.Decision) bool { return d.Iteration == 0 && !r.finalizing }

// done lets a pause take effect, because the outcome of the step is in the log.
func (r *run) done() {
	r.work.Done()
	r.work = nil
}

func (r *run) add(d *loop.Decision, o *loop.Outcome, err error) {
	r.plan.Add(&r.tally, *o)
	if o.Failure != nil {
		r.failed = r.err
	}
	if o.Failure != nil && drive.Overall(err) && r.tally.Fatal == nil && !r.finalizing {
		r.tally.Fatal = &loop.StepFailure{Step: r.plan.Steps[d.Step].Name, Failure: *o.Failure}
	}
}

// outcome fills in the outcome of a step.
func (r *run) outcome(o *loop.Outcome, d *loop.Decision, err error, how ending) {
	if r.exit != nil {
		o.Exit = exitOf(r.exit)
		o.Exit.Waits = r.waits
	} else if r.refused != nil {
		o.Exit = exitOf(r.refused)
	}
	if r.looksAtState() {
		o.State = r.seen()
		o.StateSize = r.me.StateSize(r.loop.Pass)
		o.Wrote = r.wrote()
		o.Left = slices.Sorted(maps.Keys(r.written.left))
	}
	if r.prints != nil && err == nil {
		o.Fingerprint = r.prints.sum()
	}
	panicked := err != nil && isPanic(err)
	if cause := r.canceled(); cause != nil && !panicked { // perhaps the step ended early, without a word
		o.Canceled = cause.Error()
		return
	}
	if err == nil && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	if err == nil {
		return
	}
	r.err = err
	o.Failure = &loop.Failure{Kind: loop.Failed, Message: err.Error(), Permanent: permanent(err),
		RetryAfter: retryDelay(err)}
	spent, _ := errors.AsType[*budget.ExceededError](err)
	_, tooLarge := errors.AsType[*session.StateLimitError](err)
	switch {
	case panicked:
		o.Failure.Kind = loop.Panicked
	case how == timedOut:
		o.Failure.Kind = d.TimeoutKind
	case how == refused:
		o.Failure.Kind = d.Refuse.Kind
	case spent != nil:
		o.Failure.Kind = loop.BudgetSpent
		if spent.Budget != r.Name() && r.loop.Outer != nil {
			r.beyond = err // for that loop to stop too
		}
	case tooLarge:
		o.Failure.Kind = loop.StateTooLarge
	}
	if r.finalizing && drive.Overall(err) {
		r.beyond = err
	}
}

func isPanic(err error) bool {
	_, ok := errors.AsType[*agent.PanicError](err)
	return ok
}

// place makes the addresses of an iteration and of its steps. They are slices of one text, which
// has the addresses of several iterations.
func (r *run) place(n int) {
	if n < r.places.from || n >= r.places.from+len(r.places.ends) {
		r.placeFrom(n)
	}
	i := n - r.places.from
	text := r.places.text[:r.places.ends[i]]
	if i > 0 {
		text = text[r.places.ends[i-1]:]
	}
	steps := r.plan.Steps                     // each of them is large
	pass := (len(text) - r.names) / len(r.at) // what stands before each name
	for i := range steps {
		end := pass + len(steps[i].Name)
		r.at[i], text = text[:end], text[end:]
	}
	r.loop.Pass = r.at[0][:pass-1]
}

// mostPlaces limits the length of this text in bytes, unless one iteration needs more.
const mostPlaces = 8 << 10

// places are the addresses of some iterations, one behind the other.
type places struct {
	from int // the first iteration
	text session.Address
	ends []int // of each iteration in the text
}

// placeFrom makes the addresses of some iterations, each time of twice as many.
func (r *run) placeFrom(n int) {
	p := &r.places
	most := max(1, 2*len(p.ends))
	if left := int(r.plan.MaxIterations) - n + 1; r.plan.MaxIterations > 0 && left > 0 {
		most = min(most, left)
	}
	buf, ends := r.buf[:0], p.ends[:0]
	steps := r.plan.Steps
	for i := range most {
		if i > 0 && len(buf)+len(buf)/i > mostPlaces {
			break
		}
		from := len(buf)
		buf = append(append(buf, r.loop.Address...), '[')
		buf = append(strconv.AppendInt(buf, int64(n+i), 10), "]/"...)
		pass := buf[from:]
		for k := range steps {
			if k > 0 {
				buf = append(buf, pass...)
			}
			buf = append(buf, steps[k].Name...)
		}
		ends = append(ends, len(buf))
	}
	r.buf, *p = buf, places{n, session.Address(buf), ends}
}

// address returns the address of a step. The finalizer and the steps that score the start are in no iteration; a
// judge's second sample is its second run at its address.
func (r *run) address(d *loop.Decision) session.Address {
	at := r.at[d.Step]
	if r.finalizing || r.scoresStart(d) {
		at = r.loop.Address + "/" + session.Address(r.plan.Steps[d.Step].Name)
	}
	if d.Sample > 1 {
		at += session.Address("#" + strconv.Itoa(d.Sample))
	}
	return at
}
