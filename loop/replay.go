// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"time"
)

// slack is how far a time may be off what was decided: clocks and schedulers
// are not exact.
const slack = 250 * time.Millisecond

func about(a, b time.Duration) bool { return a-b <= slack && b-a <= slack }

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
		return b.cut(&o, 0, 0, d.Refuse), but{fmt.Sprintf("in iteration %d this plan would not run %q, whose circuit is open", d.Iteration, name), true}
	case d.Refuse == nil && kind == CircuitOpen:
		return o, but{note: fmt.Sprintf("in iteration %d this plan would run %q, whose circuit was open in the recording", d.Iteration, name)}
	case d.Refuse != nil:
		return o, but{}
	case kind == BudgetSpent && b.roomier():
		return o, but{note: fmt.Sprintf("in iteration %d a call of %q did not fit into the budget of the recording, but might into this one", d.Iteration, name)}
	}
	took := o.took()
	if !about(o.Waited, d.Wait) {
		o.Waited = d.Wait
	}
	if !o.Started.IsZero() {
		o.Finished = o.Started.Add(o.Waited + took)
	}
	limited := kind == Timeout || kind == IterationTimeout || kind == TotalTimeout
	switch {
	case then != nil && then.TimeoutKind == d.TimeoutKind && about(then.Timeout, d.Timeout): // the same limit
	case limited && (d.Timeout == 0 && then == nil || d.TimeoutKind == kind && about(took, d.Timeout)):
	case limited && (d.Timeout == 0 || took < d.Timeout-slack):
		return o, but{note: fmt.Sprintf("in iteration %d the recording cuts %q short after %s, this plan would not", d.Iteration, name, took.Round(time.Millisecond))}
	case d.Timeout > 0 && (limited || took > d.Timeout+slack):
		f := &Failure{Kind: d.TimeoutKind, Message: fmt.Sprintf("%s is cut short after %s", name, d.Timeout)}
		return b.cut(&o, o.Waited, d.Timeout, f), but{fmt.Sprintf(
			"in iteration %d this plan would cut %q short after %s, the recording has %s", d.Iteration, name, d.Timeout, took.Round(time.Millisecond)), true}
	}
	return o, but{}
}

// cut is an outcome that leaves nothing but a failure.
func (b *backtest) cut(o *Outcome, waited, took time.Duration, f *Failure) Outcome {
	return Outcome{
		Iteration: o.Iteration, Step: o.Step, Started: o.Started, Finished: o.Started.Add(waited + took), Waited: waited,
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
