// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// BacktestResult describes how a recorded run would have gone under another plan.
type BacktestResult struct {
	// Stop is the stop record that the run would have had; nil if Unknown.
	Stop *StopRecord `json:"stop,omitzero"`
	// BestScore and BestIteration are the best up to the stop or, if Unknown, up to the end of
	// the recording.
	BestScore     *float64 `json:"best_score,omitzero"`
	BestIteration int      `json:"best_iteration,omitzero"`
	// Steps and Iterations count the steps and iterations of the recording that the plan would
	// have run, without the finalizer. An iteration that was begun counts.
	Steps      int `json:"steps"`
	Iterations int `json:"iterations"`
	// SavedSteps to SavedTime are the part of the recording that would not have run, without
	// the finalizer; all are 0 if Unknown. Longer delays make SavedTime negative. A nil
	// SavedCost is unknown.
	SavedSteps      int      `json:"saved_steps"`
	SavedIterations int      `json:"saved_iterations"`
	SavedCalls      int64    `json:"saved_calls,omitzero"`
	SavedTokens     int64    `json:"saved_tokens,omitzero"`
	SavedCost       *float64 `json:"saved_cost,omitzero"`
	SavedTime       Duration `json:"saved_time,omitzero"`
	// Used is the usage that the plan would have had, without the finalizer; 0 if Unknown. The tokens from
	// the provider's cache are as recorded, because the requests before the stop are the same. A nil cost
	// is unknown.
	Used Usage `json:"used,omitzero"`
	// Unknown says that the plan would have continued after the end of the recording, or would
	// have run other steps. Note says which.
	Unknown bool   `json:"unknown,omitzero"`
	Note    string `json:"note,omitzero"`
	// Unasked is how often the plan would have asked the judge once more about the best, after a rollback, of which the
	// recording has no answer. The mean then stays as it was.
	Unasked int `json:"unasked,omitzero"`
	// Records are the records of the iterations, in order.
	Records []IterationRecord `json:"records,omitzero"`
}

// Backtest replays a run whose plan is unknown: see [Plan.BacktestOf]. If a limit of time or
// budget cut a step short, Backtest assumes that p has the same limit, unless the times
// contradict this.
func (p *Plan) Backtest(outcomes []Outcome) BacktestResult { return p.BacktestOf(nil, outcomes) }

// BacktestOf replays the outcomes of a run of the recorded plan, in their order and with their
// state, against p, which has the same steps.
//
// The result shows what p would have done, not what the models would have done: it assumes that
// each step gives the recorded answer, even if only one of the plans lets the step exit. If p
// would have stopped earlier, the recording has no finalizer for that point, and perhaps no
// rollback before it. The stop record then assumes that both would have succeeded. A step that
// would have been cut short counts with no usage.
func (p *Plan) BacktestOf(recorded *Plan, outcomes []Outcome) BacktestResult {
	b := backtest{plan: p, recorded: recorded}
	b.all.measure(recorded, p, outcomes)
	for i := range outcomes {
		if b.replayOutcome(&outcomes[i], i == len(outcomes)-1) {
			return b.res
		}
	}
	if d := b.next(false); d.Action == RunStep || d.Action == Rollback {
		b.unknown(beyond)
	} else if d.Action == BeginLeg {
		b.unknown(beyond+", where this plan would begin leg %d: %s", d.Leg, p.Leg(d.Leg))
	} else {
		b.stop(d)
	}
	return b.res
}

const beyond = "unknown beyond the recording"

// backtest is the state of a running backtest.
type backtest struct {
	plan, recorded   *Plan
	t, recordedTally Tally // t of the plan, was of the recorded plan if that is known
	all              recordingSize
	used             Tally          // usage and time of the replayed steps; its other fields are unused
	state            map[string]any // the state after the last outcome
	size             int64
	res              BacktestResult
}

// replayOutcome replays one outcome and reports whether the backtest is finished.
func (b *backtest) replayOutcome(o *Outcome, last bool) bool {
	p, final := b.plan, b.plan.Finalizer()
	var then *Decision
	if b.recorded != nil {
		d := b.recorded.Next(&b.recordedTally)
		then = &d
	}
	// An outcome has no step if it is a rollback, or if the run was canceled before a step, between two steps, or in a
	// rollback.
	at := func(a Action) bool { return o.Step < 0 && (o.Canceled == "" || then == nil || then.Action == a) }
	d := b.next(at(Rollback))
	mine, theirs := p.askFor(&b.t, &d), noAsk
	switch {
	case then != nil:
		theirs = b.recorded.askFor(&b.recordedTally, then)
	case mine == askBest && o.Step == d.Step && o.Iteration == d.Iteration, mine == askStart && o.Iteration == 0:
		theirs = mine
	}
	switch {
	case mine == theirs:
	case mine == askStart:
		return b.unknown("this plan would score the start, of which the recording has no answer of %q", p.nameOf(d.Step))
	case mine == askBest: // the recording has no such answer of the judge, so the mean does not change
		b.res.Unasked++
		p.Add(&b.t, Outcome{Iteration: d.Iteration, Step: d.Step, Wrote: []string{}})
		d = b.next(at(Rollback))
	case theirs == askStart && d.Action == RunStep && p.BaselineSteps() != nil:
		return b.unknown("this plan would begin with iteration %d, the recording asks %q once more about the start", d.Iteration, p.nameOf(o.Step))
	case theirs != noAsk && d.Action == RunStep: // this plan would not have asked
		b.recorded.Add(&b.recordedTally, *o)
		return false
	}
	switch {
	case d.Action == Stop, d.Action == Finalize && o.Step != final && !(o.Canceled != "" && at(Finalize)):
		b.stop(d)
		return true
	case (d.Action == BeginLeg || then != nil && then.Action == BeginLeg) && !b.sameLeg(&d, then, o):
		return b.otherLeg(&d, then, o)
	case d.Action == Rollback && o.Step >= 0:
		return b.unknown("after iteration %d this plan would roll back, but the recorded run continued",
			d.Iteration)
	case d.Action == Rollback && then != nil && then.To != d.To:
		return b.unknown("after iteration %d this plan would roll back to iteration %d, the recording goes "+
			"back to %d", d.Iteration, d.To, then.To)
	case d.Action != RunStep || o.Canceled != "":
	case o.Step < 0:
		return b.unknown("after iteration %d the recording rolls back, this plan would go on", o.Iteration)
	case o.Step == final && last:
		return b.unknown(beyond)
	case o.Step == d.Step && b.comparesOtherwise(&d):
		return b.unknown("in iteration %d this plan would ask %q about other versions than the recording", d.Iteration, p.nameOf(d.Step))
	case o.Step != d.Step && d.Sample > 1:
		return b.unknown("in iteration %d this plan would ask %q once more, of which the recording has no answer", d.Iteration,
			p.nameOf(d.Step))
	case o.Step != d.Step:
		return b.unknown("in iteration %d this plan would run %q, the recording has %q", d.Iteration,
			p.nameOf(d.Step), p.nameOf(o.Step))
	case o.Iteration != 0 && o.Iteration != d.Iteration:
		return b.unknown("this plan would run %q in iteration %d, the recording does in %d", p.nameOf(d.Step),
			d.Iteration, o.Iteration)
	}
	under, differs := b.outcomeUnder(*o, &d, then)
	if d.Action == RunStep {
		b.used.count(&addedOutcome{&under}, false)
	}
	if differs.note != "" && !differs.exact {
		return b.unknown("%s", differs.note)
	}
	p.Add(&b.t, under)
	if differs.note != "" && p.reason(&b.t) == "" {
		return b.unknown("%s", differs.note)
	}
	b.state, b.size = o.State, o.StateSize
	if then != nil {
		b.recorded.Add(&b.recordedTally, *o)
		if was := &b.recordedTally.Ended; b.t.Fresh && was.Number == b.t.Ended.Number { // a backtest cannot check the files again
			b.t.Ended.Findings = was.Findings
		}
	}
	return false
}

// ask says what a step outside of the iterations is asked about.
type ask int

const (
	noAsk    ask = iota
	askStart     // a step of the baseline scores the state before the first iteration
	askBest      // the judge scores the best version again, after a rollback has restored it
)

// askFor returns what the step of a decision is asked about.
func (p *Plan) askFor(t *Tally, d *Decision) ask {
	switch _, start := p.scoresStart(t); {
	case d.Action != RunStep:
		return noAsk
	case start:
		return askStart
	case t.Rejudge:
		return askBest
	}
	return noAsk
}

// comparesOtherwise reports whether the judges of the two plans work differently: only one compares versions, or both
// compare with different versions.
func (b *backtest) comparesOtherwise(d *Decision) bool {
	switch {
	case b.recorded == nil || !b.plan.judges(d.Step):
		return false
	case b.plan.compares() != b.recorded.compares():
		return true
	}
	return b.plan.compares() && b.t.Rival.Iteration != b.recordedTally.Rival.Iteration
}

// sameLeg reports whether the outcome begins a leg in the recording and the plan would begin the same leg.
func (b *backtest) sameLeg(d, then *Decision, o *Outcome) bool {
	if then == nil {
		return o.Step < 0
	}
	if d.Action != then.Action || d.To != then.To {
		return false
	}
	was, is := b.recorded.Leg(then.Leg), b.plan.Leg(d.Leg)
	return was.String() == is.String() && was.Instructions == is.Instructions && slices.Equal(was.Steps, is.Steps)
}

// otherLeg ends the backtest because only one of the plans begins a leg, or because the two legs differ.
func (b *backtest) otherLeg(d, then *Decision, o *Outcome) bool {
	after := d.Iteration
	if o.Step < 0 && o.Iteration > 0 {
		after = o.Iteration
	}
	is, was := "would go on", "goes on"
	if d.Action == BeginLeg {
		is = fmt.Sprintf("would begin leg %d (%s)", d.Leg, b.plan.Leg(d.Leg))
	}
	if then != nil && then.Action == BeginLeg {
		was = fmt.Sprintf("begins leg %d (%s)", then.Leg, b.recorded.Leg(then.Leg))
	}
	return b.unknown("after iteration %d this plan %s, the recording %s", after, is, was)
}

// next returns the decision of the plan. If the plan would roll back and then stop, and the recording has no rollback
// there (restores is false), next assumes that the rollback succeeds.
func (b *backtest) next(restores bool) Decision {
	d := b.plan.Next(&b.t)
	b.endIteration(d.Ended)
	if d.Action == Rollback && !restores && b.plan.reason(&b.t) != "" {
		b.plan.Add(&b.t, Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true})
		d = b.plan.Next(&b.t)
	}
	return d
}

// stop ends the backtest with the plan's stop, and computes what the plan would have saved.
func (b *backtest) stop(d Decision) {
	t, r := &b.t, &b.res
	b.unknown("")
	r.Unknown, r.Stop = false, d.Stop
	r.SavedSteps, r.SavedIterations = max(0, b.all.steps-t.Steps), max(0, b.all.iterations-t.Iteration)
	all, used := &b.all.used, &b.used
	r.SavedCalls = all.Usage.Calls - used.Usage.Calls
	r.SavedTokens = all.Usage.tokens() - used.Usage.tokens()
	r.SavedTime = Duration(all.Active - used.Active)
	r.Used = used.Usage
	r.Used.CacheSaved = roundDecimals(r.Used.CacheSaved)
	if c := r.Used.Cost; c != nil {
		r.Used.Cost = new(roundDecimals(*c))
	}
	if all.Usage.Cost != nil && !used.CostUnknown {
		r.SavedCost = new(roundDecimals(all.KnownCost - used.KnownCost))
	}
}

// unknown ends the backtest without a stop, for the reason in note. It always returns true.
func (b *backtest) unknown(note string, args ...any) bool {
	r := &b.res
	r.Unknown, r.Note = true, fmt.Sprintf(note, args...)
	r.Steps, r.Iterations = b.t.Steps, b.t.Iteration
	r.BestScore, r.BestIteration = b.t.Best, b.t.BestIteration
	return true
}

func (b *backtest) endIteration(rec IterationRecord) {
	if n := len(b.res.Records); rec.Number != 0 && (n == 0 || b.res.Records[n-1].Number != rec.Number) {
		b.res.Records = append(b.res.Records, rec)
	}
}

// recordingSize is the size of a recording: its steps, iterations and usage without the finalizer and rollbacks.
type recordingSize struct {
	steps, iterations int
	used              Tally
}

// measure computes the size of the recording. If the recorded plan is unknown, p takes its place.
func (e *recordingSize) measure(recorded, p *Plan, outcomes []Outcome) {
	var t Tally // counts the steps of a plan that is known
	known := recorded != nil
	recorded = cmp.Or(recorded, p)
	final := recorded.Finalizer()
	if known {
		defer func() { e.steps = t.Steps }()
	}
	var iteration, step int
	for _, o := range outcomes {
		if known {
			recorded.Add(&t, o)
		}
		if o.Step < 0 || o.Step == final {
			continue
		}
		e.used.count(&addedOutcome{&o}, false)
		if o.Canceled != "" {
			continue
		}
		if o.Iteration == 0 || o.Iteration != iteration || o.Step != step { // else it is another try
			e.steps++
		}
		iteration, step = o.Iteration, o.Step
		e.iterations = max(e.iterations, o.Iteration)
	}
}

// slack is how much a recorded time may differ from the time that was decided, if the recorded plan is unknown. It
// allows for inexact clocks and schedulers.
const slack = 250 * time.Millisecond

// mismatch says why the outcome under the plan differs from the recorded one; the zero value means that it does not. If
// exact is true, the new outcome is known and only what follows it is unknown.
type mismatch struct {
	note  string
	exact bool
}

// outcomeUnder returns the outcome that the recorded outcome o would have been under the plan's decision d. then is the decision
// of the recorded plan, nil if that plan is unknown.
func (b *backtest) outcomeUnder(o Outcome, d, then *Decision) (Outcome, mismatch) {
	if d.Action != RunStep || o.Step < 0 || o.Canceled != "" {
		return o, mismatch{}
	}
	name, kind := b.plan.nameOf(o.Step), ""
	if o.Failure != nil {
		kind = o.Failure.Kind
	}
	switch {
	case d.Refuse != nil && kind != CircuitOpen:
		return b.failureOutcome(&o, 0, 0, d.Refuse), mismatch{
			note:  fmt.Sprintf("in iteration %d this plan would not run %q, whose circuit is open", d.Iteration, name),
			exact: b.state != nil,
		}
	case d.Refuse == nil && kind == CircuitOpen:
		return o, mismatch{note: fmt.Sprintf("in iteration %d this plan would run %q, whose circuit was open in the "+
			"recording", d.Iteration, name)}
	case d.Refuse != nil:
		return o, mismatch{}
	case kind == BudgetSpent && b.budgetIsLooser():
		return o, mismatch{note: fmt.Sprintf("in iteration %d a call of %q did not fit into the budget of the recording, "+
			"but might into this one", d.Iteration, name)}
	}
	took := o.took()
	within := func(a, b time.Duration) bool { return a-b <= slack && b-a <= slack }
	same, sameWait, off := d.TimeoutKind == kind && within(took, d.Timeout), within(o.Waited, d.Wait), slack
	if then != nil { // the decision of the recorded plan is known exactly, so no slack is needed
		same, sameWait, off = then.TimeoutKind == d.TimeoutKind && then.Timeout == d.Timeout, then.Wait == d.Wait, 0
	}
	if !sameWait {
		o.Waited = d.Wait
	}
	if !o.Started.IsZero() {
		o.Finished = o.Started.Add(o.Waited + o.Limited + took)
	}
	limited := kind == Timeout || kind == IterationTimeout || kind == TotalTimeout
	switch {
	case same, limited && d.Timeout == 0 && then == nil:
	case limited && (d.Timeout == 0 || took < d.Timeout-off):
		return o, mismatch{note: fmt.Sprintf("in iteration %d the recording cuts %q short after %s, this plan would not",
			d.Iteration, name, brief.Clock(took))}
	case d.Timeout > 0 && (limited || took > d.Timeout+off):
		f := &Failure{Kind: d.TimeoutKind, Message: fmt.Sprintf("%s is cut short after %s", name, brief.Clock(d.Timeout))}
		return b.failureOutcome(&o, o.Waited, d.Timeout, f), mismatch{
			note: fmt.Sprintf("in iteration %d this plan would cut %q short after %s, the recording has %s",
				d.Iteration, name, brief.Clock(d.Timeout), brief.Clock(took)),
			// The score of the iteration depends on the state before the step.
			exact: b.state != nil || d.TimeoutKind == TotalTimeout,
		}
	}
	return o, mismatch{}
}

// failureOutcome returns the outcome of a step that fails with f and leaves the state as it was.
func (b *backtest) failureOutcome(o *Outcome, waited, took time.Duration, f *Failure) Outcome {
	return Outcome{
		Iteration: o.Iteration, Step: o.Step, Started: o.Started, Finished: o.Started.Add(waited + took),
		Waited:  waited,
		Failure: f, State: b.state, StateSize: b.size,
	}
}

// budgetIsLooser reports whether the plan's budget is larger than the recorded one in at least one limit, so that a call that
// was refused in the recording might be allowed.
func (b *backtest) budgetIsLooser() bool {
	if b.recorded == nil {
		return b.plan.Budget == nil
	}
	mine, theirs := b.plan.budget(&b.t), b.recorded.budget(&b.recordedTally)
	for i := range theirs {
		if theirs[i].unit != "" && (mine[i].unit == "" || mine[i].limit > theirs[i].limit) {
			return true
		}
	}
	return false
}
