// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"time"
)

// slack is how far a recorded time may be off what was decided, if that is not
// known: clocks and schedulers are not exact.
const slack = 250 * time.Millisecond

// but says that an outcome is not the recorded one. One that is exact can still
// be the last: only what comes after it is unknown.
type but struct {
	note  string
	exact bool
}

// as is the outcome that a recorded one would have been under the plan's
// decision d; then is that of the recorded plan, nil if it is not known.
func (b *backtest) as(o Outcome, d, then *Decision) (Outcome, but) {
	if d.Action != RunStep || o.Step < 0 || o.Canceled != "" {
		return o, but{}
	}
	name, kind := b.plan.nameOf(o.Step), ""
	if o.Failure != nil {
		kind = o.Failure.Kind
	}
	switch {
	case d.Refuse != nil && kind != CircuitOpen:
		return b.cut(&o, 0, 0, d.Refuse), but{
			note:  fmt.Sprintf("in iteration %d this plan would not run %q, whose circuit is open", d.Iteration, name),
			exact: b.state != nil,
		}
	case d.Refuse == nil && kind == CircuitOpen:
		return o, but{note: fmt.Sprintf("in iteration %d this plan would run %q, whose circuit was open in the "+
			"recording", d.Iteration, name)}
	case d.Refuse != nil:
		return o, but{}
	case kind == BudgetSpent && b.roomier():
		return o, but{note: fmt.Sprintf("in iteration %d a call of %q did not fit into the budget of the recording, "+
			"but might into this one", d.Iteration, name)}
	}
	took := o.took()
	within := func(a, b time.Duration) bool { return a-b <= slack && b-a <= slack }
	same, sameWait, off := d.TimeoutKind == kind && within(took, d.Timeout), within(o.Waited, d.Wait), slack
	if then != nil { // what was decided is known to the nanosecond
		same, sameWait, off = then.TimeoutKind == d.TimeoutKind && then.Timeout == d.Timeout, then.Wait == d.Wait, 0
	}
	if !sameWait {
		o.Waited = d.Wait
	}
	if !o.Started.IsZero() {
		o.Finished = o.Started.Add(o.Waited + took)
	}
	limited := kind == Timeout || kind == IterationTimeout || kind == TotalTimeout
	switch {
	case same, limited && d.Timeout == 0 && then == nil:
	case limited && (d.Timeout == 0 || took < d.Timeout-off):
		return o, but{note: fmt.Sprintf("in iteration %d the recording cuts %q short after %s, this plan would not",
			d.Iteration, name, took.Round(time.Millisecond))}
	case d.Timeout > 0 && (limited || took > d.Timeout+off):
		f := &Failure{Kind: d.TimeoutKind, Message: fmt.Sprintf("%s is cut short after %s", name, d.Timeout)}
		return b.cut(&o, o.Waited, d.Timeout, f), but{
			note: fmt.Sprintf("in iteration %d this plan would cut %q short after %s, the recording has %s",
				d.Iteration, name, d.Timeout, took.Round(time.Millisecond)),
			// What the iteration comes to depends on the state that the step found.
			exact: b.state != nil || d.TimeoutKind == TotalTimeout,
		}
	}
	return o, but{}
}

// cut is an outcome that leaves the state as it was, and a failure.
func (b *backtest) cut(o *Outcome, waited, took time.Duration, f *Failure) Outcome {
	return Outcome{
		Iteration: o.Iteration, Step: o.Step, Started: o.Started, Finished: o.Started.Add(waited + took),
		Waited:  waited,
		Failure: f, State: b.state, StateSize: b.size,
	}
}

// roomier reports whether the plan's budget is not as tight as the recorded one:
// what was refused there might not be here.
func (b *backtest) roomier() bool {
	if b.recorded == nil {
		return b.plan.Budget == nil
	}
	mine, theirs := b.plan.budget(&b.t), b.recorded.budget(&b.was)
	for i := range theirs {
		if theirs[i].name != "" && (mine[i].name == "" || mine[i].limit > theirs[i].limit) {
			return true
		}
	}
	return false
}
