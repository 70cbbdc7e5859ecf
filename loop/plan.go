// SPDX-License-Identifier: Apache-2.0

// Package loop holds the rules of a loop of agents: which step runs next, when the
// loop stops and why, and which result it returns.
//
// The rules are a pure function over plain data, without a clock, I/O, goroutines or
// randomness. A [Plan] describes the loop, a [Tally] what has happened, an [Outcome] the
// outcome of a step, and a [Decision] what comes next. All four encode to JSON.
//
//	var t loop.Tally // after plan.Check()
//	d := plan.Next(&t)
//	for ; d.Action != loop.Stop; d = plan.Next(&t) {
//		plan.Add(&t, run(d))
//	}
//	return d.Stop
//
// Expressions (StopWhen, Score.Expr) need an engine: a program that sets one imports _ "github.com/refrain-dev/refrain/expr/cel",
// or package definition, which does.
package loop

import (
	"cmp"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Plan describes a loop. With the zero value in every field but Steps, the steps run in order,
// again and again, until one of them exits or fails. A Plan is a value; nothing in this package
// changes it.
type Plan struct {
	// Version is the version of the rules by which the loop decides about scores of a judge, and from version 4 on about
	// NotWorth. Other scores follow the same rules in all versions. [Plan.Current] returns the version for new runs,
	// which loop agents and definitions use. 0 stands for the rules of runs that were recorded before versions existed.
	Version uint `json:"rules,omitzero"`
	// Name is the loop's name, for people.
	Name string `json:"name,omitzero"`
	// Steps run one after another. There is at least one besides the finalizer.
	Steps []Step `json:"steps"`
	// Order lists the names of all steps but the finalizer, and replaces the order of
	// Steps. nil: the order of Steps.
	Order []string `json:"order,omitzero"`
	// MaxIterations is the largest number of iterations; 0 sets no limit.
	MaxIterations uint `json:"max_iterations,omitzero"`
	// CanExit names the agents that may end the loop. nil: all but the finalizer; empty
	// but not nil: none.
	CanExit []string `json:"can_exit,omitzero"`
	// StopWhen ends the loop when it holds. nil: no condition.
	StopWhen *Condition `json:"stop_when,omitzero"`
	// StopCheck says when StopWhen is evaluated. "" means EachIteration.
	StopCheck StopCheck `json:"stop_check,omitzero"`
	// Score measures an iteration. nil: iterations are not scored.
	Score *Score `json:"score,omitzero"`
	// Watch names state keys that show whether a score may be dishonest. nil: none.
	Watch *Watch `json:"watch,omitzero"`
	// OnError says what happens after a failed step. "" means StopOnError, but SkipStep
	// after a Timeout. After an IterationTimeout everything but StopOnError means
	// NextIteration.
	OnError ErrorPolicy `json:"on_error,omitzero"`
	// MaxConsecutiveFailures ends the loop with reason error after this number of failed
	// steps in a row, whatever OnError says. 0: no limit.
	MaxConsecutiveFailures uint `json:"max_consecutive_failures,omitzero"`
	// Timeout limits the time that the loop spends in steps and delays. IterationTimeout
	// limits the time of one iteration, without the delays around it; the rest of the
	// iteration is skipped. 0: no limit.
	Timeout          Duration `json:"timeout,omitzero"`
	IterationTimeout Duration `json:"iteration_timeout,omitzero"`
	// Budget limits the loop's model calls. nil: no limit.
	Budget *Budget `json:"budget,omitzero"`
	// FinalizerReserve is the share of Timeout and Budget that is kept for the finalizer. 0
	// means 0.1. Without a finalizer nothing is kept.
	FinalizerReserve float64 `json:"reserve,omitzero"`
	// NoProgress ends a loop whose results repeat. nil: results may repeat.
	NoProgress *NoProgress `json:"no_progress,omitzero"`
	// NotWorth ends a loop whose next iteration promises too little. nil: no such limit.
	NotWorth *NotWorth `json:"not_worth,omitzero"`
	// OnPlateau lists the legs that the loop runs, one after another, each time that it has converged. nil means that
	// the loop stops when it has converged.
	OnPlateau []Leg `json:"on_plateau,omitzero"`
	// QualityGate is the score that an iteration needs to be accepted. nil: none.
	QualityGate *float64 `json:"quality_gate,omitzero"`
	// OnRegression says what happens after a worse iteration. "" means KeepBest.
	OnRegression Regression `json:"on_regression,omitzero"`
	// BestOnExit returns the best iteration after an exit too, instead of the iteration
	// with the exit.
	BestOnExit bool `json:"best_on_exit,omitzero"`
	// FinalizeEach makes the finalizer the last step of every iteration instead.
	FinalizeEach bool `json:"finalize_each,omitzero"`
	// DelayBefore and DelayAfter are the delays before and after each iteration.
	DelayBefore Duration `json:"delay_before,omitzero"`
	DelayAfter  Duration `json:"delay_after,omitzero"`
	// StateLimit is the largest state in bytes at the end of an iteration. 0: no limit.
	StateLimit int64 `json:"state_limit,omitzero"`
}

// ErrorPolicy says what happens after a failed step.
type ErrorPolicy string

// The error policies. Source: C13 and C14 in doc/testdata/requirements.md.
const (
	StopOnError   ErrorPolicy = "stop"           // the loop ends with reason error
	SkipStep      ErrorPolicy = "skip_step"      // the next step runs
	NextIteration ErrorPolicy = "next_iteration" // the rest of the iteration is skipped
)

// StopCheck says when a plan's StopWhen is evaluated.
type StopCheck string

// The moments.
const (
	EachIteration StopCheck = "iteration" // when an iteration has ended
	EachStep      StopCheck = "step"      // after every step
)

// Sequence returns the indices into Steps of one iteration, in the order in which they
// run. It leaves out names in Order that no step has.
func (p *Plan) Sequence() []int {
	var seq []int
	for i := range p.length() {
		if s := p.stepAt(i); s >= 0 {
			seq = append(seq, s)
		}
	}
	return seq
}

// Finalizer returns the index of the step that runs once after the last
// iteration, -1 if there is none.
func (p *Plan) Finalizer() int {
	if p.FinalizeEach {
		return -1
	}
	return p.finalIndex()
}

func (p *Plan) finalIndex() int {
	for i := range p.Steps {
		if p.Steps[i].Finalizer {
			return i
		}
	}
	return -1
}

// MayExit reports whether the agent with a name may end the loop. The driver checks it before
// it gives the agent the exit tool; Add checks it again.
func (p *Plan) MayExit(name string) bool {
	if f := p.finalIndex(); f >= 0 && p.Steps[f].Name == name {
		return false
	}
	return p.CanExit == nil || slices.Contains(p.CanExit, name)
}

// length returns the number of places in an iteration. Code that runs for every step uses length and stepAt instead of
// Sequence, because they allocate nothing.
func (p *Plan) length() int {
	n := len(p.Order)
	if n == 0 {
		for i := range p.Steps {
			if !p.Steps[i].Finalizer {
				n++
			}
		}
	}
	if p.FinalizeEach && p.finalIndex() >= 0 {
		n++
	}
	return n
}

// stepAt returns the step at a place of the iteration, -1 if there is none.
func (p *Plan) stepAt(place int) int {
	at := place
	if n := len(p.Order); n > 0 && place < n {
		return slices.IndexFunc(p.Steps, func(s Step) bool { return !s.Finalizer && s.Name == p.Order[place] })
	} else if n > 0 {
		at -= n
	} else {
		for i := range p.Steps {
			if p.Steps[i].Finalizer {
				continue
			}
			if at == 0 {
				return i
			}
			at--
		}
	}
	if at == 0 && p.FinalizeEach {
		return p.finalIndex()
	}
	return -1
}

// placeOf returns the place of a step. It is the inverse of stepAt.
func (p *Plan) placeOf(step int) (place int, ok bool) {
	if step < 0 || step >= len(p.Steps) {
		return 0, false
	}
	if p.Steps[step].Finalizer {
		return p.length() - 1, p.FinalizeEach
	}
	if len(p.Order) > 0 {
		place = slices.Index(p.Order, p.Steps[step].Name)
		return place, place >= 0
	}
	for i := range step {
		if !p.Steps[i].Finalizer {
			place++
		}
	}
	return place, true
}

// policy returns the error policy for a failure of the given kind in a step.
func (p *Plan) policy(step int, kind string) ErrorPolicy {
	var own ErrorPolicy
	if step >= 0 && step < len(p.Steps) {
		own = p.Steps[step].OnError
	}
	own = cmp.Or(own, p.OnError)
	switch {
	case kind == IterationTimeout && own != StopOnError:
		return NextIteration
	case own != "":
		return own
	case kind == Timeout:
		return SkipStep
	}
	return StopOnError
}

// nameOf returns the name of a step, "" if there is no such step.
func (p *Plan) nameOf(step int) string {
	if step < 0 || step >= len(p.Steps) {
		return ""
	}
	return p.Steps[step].Name
}

// Duration is a span of time whose JSON is a text such as "1m30s". 0 means no limit or no delay.
type Duration time.Duration

// String writes the duration without its zero parts: 5m, and not 5m0s.
func (d Duration) String() string { return brief.Duration(time.Duration(d)) }

// MarshalText writes the duration as [time.Duration] does: 5m0s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the forms that [time.ParseDuration] reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
