// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
)

// interruption is a cancellation, or a limit of the loop that cut a step short. Its zero value is a loop that nothing has
// interrupted. [Plan.Reopen] removes it.
type interruption struct {
	// Canceled says why the run was canceled.
	Canceled string `json:"canceled,omitzero"`
	// TimedOut and Spent say which limit of time or budget cut a step short.
	TimedOut string `json:"timed_out,omitzero"`
	Spent    string `json:"spent,omitzero"`
	// Bounds has the limits that the plan had then.
	Bounds *bounds `json:"bounds,omitzero"`
}

// isLimit reports whether a limit of time or budget of the loop cut a step short.
func (i *interruption) isLimit() bool { return i.TimedOut != "" || i.Spent != "" }

// interrupt records that a failure is a limit of the loop that cut its step short. It returns false for another failure.
func (p *Plan) interrupt(t *Tally, f *Failure) bool {
	switch f.Kind {
	case TotalTimeout:
		t.TimedOut = cmp.Or(truncate(f.Message), "out of time")
	case BudgetSpent:
		t.Spent = cmp.Or(truncate(f.Message), "a call did not fit")
	default:
		return false
	}
	t.Bounds = p.bounds()
	return true
}

// bounds are the limits of a plan that can end a loop in the middle of a step.
type bounds struct {
	Timeout Duration `json:"timeout,omitzero"`
	Budget  *Budget  `json:"budget,omitzero"`
}

func (p *Plan) bounds() *bounds {
	b := &bounds{Timeout: p.Timeout}
	if p.Budget != nil {
		own := *p.Budget
		if own.Cost != nil {
			own.Cost = new(*own.Cost)
		}
		b.Budget = &own
	}
	return b
}

// StoppedError reports why a loop that has stopped cannot continue.
type StoppedError struct {
	Reason StopReason
	Detail string // for people
	Hint   string // what to do; "" if nothing helps
}

// Error returns the reason, the detail and the hint.
func (e *StoppedError) Error() string {
	s := fmt.Sprintf("the loop stays stopped: %s: %s", e.Reason, e.Detail)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Reopen removes from t what ended a loop, so that the loop continues under p, which is the
// plan that it ran under with other limits. From then on the loop decides as if it had had
// these limits from the start. If the loop has not stopped, Reopen changes nothing.
//
// A step that was cut short, failed or was canceled runs again, with all its attempts. An
// iteration that was undone before its end is not repeated; the next one follows. The time and
// the usage of all steps that have run still count. This includes the finalizer, which runs
// again when the loop stops again.
//
// Reopen always removes a cancellation, and a failed step unless too many steps in a row had
// failed. It removes a limit if p has a larger one or none. For an exit, and for anything that
// stops the loop under p too, it returns a [*StoppedError] and leaves t unchanged.
func (p *Plan) Reopen(t *Tally) error {
	u := *t
	if err := p.reopen(&u); err != nil {
		return err
	}
	*t = u
	return nil
}

// Extend is like [Plan.Reopen], for a loop that continues in the same run. A step that was cut short keeps its place in
// the log, so its iteration ends there, and the next iteration follows.
func (p *Plan) Extend(t *Tally) error {
	u := *t
	u.IsRolledBack = u.IsRolledBack || u.Ended.Number == 0
	if err := p.reopen(&u); err != nil {
		return err
	}
	*t = u
	return nil
}

func (p *Plan) reopen(t *Tally) error {
	if err := p.checkReopen(t); err != nil {
		return err
	}
	within := t.Ended.Number == 0
	inStep := within && (t.isLimit() || t.Fatal != nil && !t.RollbackDue)
	if inStep || t.Canceled != "" && !t.RollbackDue {
		t.Looked = false // StopWhen was evaluated for the stop record only
	}
	switch {
	case t.IsRolledBack:
		t.Ended = IterationRecord{Number: t.Iteration, Failures: t.IterationFailures,
			Rejected: "the loop stopped before it was complete"}
	case inStep && t.Place > 0 && t.Iteration > 0: // a step of the baseline that was cut short has not moved the place
		t.Place--
		t.Attempt = 0
	}
	if within && t.RollbackDue {
		t.RollbackDue = false // the iteration continues instead of being undone
		t.Rejections--
	}
	t.interruption, t.finalPhase, t.Fatal, t.IsRolledBack = interruption{}, finalPhase{}, nil, false
	if r := p.reason(t); r != "" {
		return p.stillHolds(t, r)
	}
	return nil
}

// checkReopen returns an error if the plan does not remove what has ended the loop.
func (p *Plan) checkReopen(t *Tally) error {
	b := t.Bounds
	switch f := t.Fatal; {
	case t.Exit != nil && t.Exit.Waits:
		return &StoppedError{t.Exit.reason(), t.Exit.By + " waits for an answer", "answer it"}
	case t.Exit != nil:
		return p.stillHolds(t, t.Exit.reason())
	case f == nil:
	case f.Kind == StateTooLarge && f.Step == "" && p.StateLimit > 0 && t.StateSize > p.StateLimit:
		return p.stillHolds(t, ReasonError)
	case f.Kind == IterationTimeout && p.iterationIsOutOfTime(t):
		return &StoppedError{ReasonError, p.failure(t), "raise iteration_timeout above " + p.IterationTimeout.String()}
	case f.Running > 0 && p.MaxConsecutiveFailures > 0 && t.FailuresRunning >= p.MaxConsecutiveFailures:
		return &StoppedError{ReasonError, p.failure(t), fmt.Sprintf("raise max_consecutive_failures above %d",
			t.FailuresRunning)}
	}
	switch {
	case t.TimedOut != "" && b != nil && b.Timeout > 0 && p.Timeout > 0 && p.Timeout <= b.Timeout:
		return p.stillHolds(t, ReasonTimeout)
	case t.Spent != "" && b != nil && b.Budget != nil && !p.Budget.isLooserThan(b.Budget):
		return p.stillHolds(t, ReasonBudget)
	}
	return nil
}

// isLooserThan reports whether at least one limit of b is larger than that of other. other is not nil.
func (b *Budget) isLooserThan(other *Budget) bool {
	more := func(now, then int64) bool { return then > 0 && (now == 0 || now > then) }
	return b == nil || more(b.Calls, other.Calls) || more(b.Tokens, other.Tokens) ||
		other.Cost != nil && (b.Cost == nil || *b.Cost > *other.Cost)
}

// stillHolds returns the error for a reason that still holds.
func (p *Plan) stillHolds(t *Tally, r StopReason) error {
	e := &StoppedError{Reason: r, Detail: p.detail(t, r)}
	switch r {
	case ReasonMaxIterations:
		e.Hint = fmt.Sprintf("raise max_iterations above %d", t.Iteration)
	case ReasonTimeout:
		e.Hint = "raise timeout"
	case ReasonBudget:
		e.Hint = "raise budget"
	case ReasonTarget:
		e.Hint = "set the target further"
	case ReasonConverged, ReasonNoProgress, ReasonCondition:
		e.Hint = "take out what ends it, or make it stricter"
	case ReasonExit, ReasonEscalated, ReasonImpossible, ReasonBlocked:
		e.setExit(t.Exit.By, t.Exit.Reason)
	}
	return e
}

// setExit sets the detail and the hint for an agent that asked to leave the loop.
func (e *StoppedError) setExit(by, why string) {
	if e.Detail = by + " asked to leave"; why != "" {
		e.Detail += ": " + why
	}
	e.Hint = "a limit does not change that; begin a new run"
}

// Lifts returns an error if a loop that stopped with rec under the plan old cannot continue
// under p. It needs no replay. The error is a [*StoppedError] for an exit, and for a limit that
// is not larger in p. Other obstacles, such as a condition, are found only by [Plan.Reopen].
func (p *Plan) Lifts(rec *StopRecord, old *Plan) error {
	e := &StoppedError{Reason: rec.Reason, Detail: rec.Detail}
	switch rec.Reason {
	case ReasonExit, ReasonEscalated, ReasonImpossible, ReasonBlocked:
		e.setExit(rec.By, rec.Detail)
	case ReasonMaxIterations:
		if p.MaxIterations == 0 || int(p.MaxIterations) > rec.Iteration {
			return nil
		}
		e.Hint = fmt.Sprintf("raise max_iterations above %d", rec.Iteration)
	case ReasonTimeout:
		if p.Timeout == 0 || p.Timeout > old.Timeout || old.Timeout == 0 {
			return nil
		}
		e.Hint = "raise timeout above " + old.Timeout.String()
	case ReasonBudget:
		if old.Budget == nil || p.Budget.isLooserThan(old.Budget) {
			return nil // the budget that was spent may be that of the run
		}
		e.Hint = "raise budget"
	default:
		return nil
	}
	return e
}
