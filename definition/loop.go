// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Loop is what only loops have.
type Loop struct {
	Goal         string
	Instructions string
	// MaxIterations is 0 for a loop that only something else stops.
	MaxIterations          uint
	Order                  []string
	StopWhen               *loop.Condition
	StopCheck              loop.StopCheck
	Score                  *loop.Score
	MaxConsecutiveFailures uint

	// Timeout bounds the loop and IterationTimeout each iteration; 0 bounds
	// nothing. What the file does not give comes from the preset that it names
	// in Timeouts. That is [TimeoutsStandard] for an outermost loop without one,
	// and empty for one in another loop, which the outer one bounds.
	Timeouts                  Timeouts
	Timeout, IterationTimeout time.Duration
	// Budget bounds what the model calls of the loop use; nil does not.
	Budget *loop.Budget
	// Reserve is the share of Timeout and Budget that is kept for the finalizer;
	// 0 is loopagent's default.
	Reserve float64
	// FinalizeEach makes the finalizer the last step of every iteration.
	FinalizeEach bool
	// IterationDelay is waited between two iterations.
	IterationDelay time.Duration
	// StateLimit is how many bytes the state may have when an iteration ends; 0
	// is no limit, and a file that does not say has [DefaultStateLimit].
	StateLimit int64

	// Result is the state key that holds what the loop hands back, and BestOnExit
	// hands back the best iteration after an exit too: see loopagent.Config.
	Result     string
	BestOnExit bool

	QualityGate  *float64
	OnRegression loop.Regression
	NoProgress   *loop.NoProgress
	NotWorth     *loop.NotWorth

	meant bool // somebody has chosen Timeout, so that it counts as a bound
}

// DefaultMaxIterations is the limit of a loop that gives none.
const DefaultMaxIterations = 5

// Timeouts is a preset of the time that a loop and its iterations may take.
type Timeouts string

// The presets, with the time of an iteration and of the loop.
const (
	TimeoutsFast     Timeouts = "fast"     // 2 minutes and 15
	TimeoutsStandard Timeouts = "standard" // 5 minutes and 30
	TimeoutsLong     Timeouts = "long"     // 10 minutes and an hour
	TimeoutsNone     Timeouts = "none"     // as long as it takes
)

var timeouts = []string{string(TimeoutsFast), string(TimeoutsStandard), string(TimeoutsLong), string(TimeoutsNone)}

// times are how long an iteration and the loop may take; 0 for no bound.
func (t Timeouts) times() (iteration, total time.Duration) {
	switch t {
	case TimeoutsFast:
		return 120 * time.Second, 900 * time.Second
	case TimeoutsStandard:
		return 300 * time.Second, 1800 * time.Second
	case TimeoutsLong:
		return 600 * time.Second, 3600 * time.Second
	}
	return 0, 0
}

func loopOf(a *Agent) *Loop {
	if a.Loop == nil {
		a.Loop = &Loop{}
	}
	return a.Loop
}

// preset fills in the times that the file does not give.
func (a *Agent) preset() {
	l := a.Loop
	if l.Timeouts == "" && a.loopAround() == nil {
		l.Timeouts = TimeoutsStandard
	}
	iteration, total := l.Timeouts.times()
	_, named := a.nodes["timeouts"]
	_, given := a.nodes["timeout"]
	l.meant = named || given
	if !given {
		l.Timeout = total
	}
	if _, given := a.nodes["iteration_timeout"]; !given {
		l.IterationTimeout = iteration
		l.clamp()
	}
}

// clamp keeps a preset's time of an iteration within that of the loop.
func (l *Loop) clamp() {
	if l.Timeout > 0 {
		l.IterationTimeout = min(l.IterationTimeout, l.Timeout)
	}
}
