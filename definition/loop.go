// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"go.yaml.in/yaml/v4"
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

var loopRows = []row[Loop]{
	field("goal", "what the loop is to reach", aText, func(l *Loop) *string { return &l.Goal }),
	field("instructions", "how a loop is to go about it; what an llm agent is told, with placeholders", aText, func(l *Loop) *string { return &l.Instructions }).alone(),
	field("max_iterations", "the most iterations there are, 5 if left out; 0 for no limit, if something else stops the loop", wholeFrom[uint](0, ""), func(l *Loop) *uint { return &l.MaxIterations }).or(5),
	field("order", "another order of the sub-agents, by name, every one once", each(aText, listing{whole: true}), func(l *Loop) *[]string { return &l.Order }),
	field("stop_when", "an expression that ends the loop when it is true; or any, all, not of several; or when with for: k iterations running; or {text, of}: a step says a phrase", own(conditionRef, (*reader).condition), func(l *Loop) **loop.Condition { return &l.StopWhen }),
	field("stop_check", "when stop_when is looked at: after every iteration (the default) or every step", oneWord[loop.StopCheck]("iteration", "step"), func(l *Loop) *loop.StopCheck { return &l.StopCheck }).shown("iteration"),
	field("score", "the state key of an iteration's score; or key or expr with label, field, judge, dimensions, dimension_target, target, min_delta, min_delta_percent, patience, lower_is_better", scoreParts.value(), func(l *Loop) **loop.Score { return &l.Score }),
	field("quality_gate", "the score that an iteration needs to be accepted", maybe(aNumber), func(l *Loop) **float64 { return &l.QualityGate }),
	special("result", "the state key that holds what the loop hands back, if that is not what was said last; or best: the best iteration, after an exit too", text, takesResult),
	field("on_regression", "what follows an iteration that is worse than the best: keep_best (the default) or rollback, which undoes it", oneWord[loop.Regression]("keep_best", "rollback"), func(l *Loop) *loop.Regression { return &l.OnRegression }).shown("keep_best"),
	field("no_progress", "true ends a loop that goes round in circles; or repeats, swings, keys", noProgressParts.value(), func(l *Loop) **loop.NoProgress { return &l.NoProgress }),
	field("not_worth", "ends a loop whose next iteration promises too little: {gain, per: iteration, minute, ktokens or cost}", notWorthParts.value(), func(l *Loop) **loop.NotWorth { return &l.NotWorth }),
	field("timeouts", "fast, standard, long or none: how long an iteration and the loop may take; standard if left out, none for a loop in a loop", plain(func() shape { return oneOf(timeouts...) }, (*reader).timeouts), func(l *Loop) *Timeouts { return &l.Timeouts }).shown("standard"),
	field("timeout", "how long it may take, as 30s or 5m; a plain number is seconds. A sequence, a parallel agent and agents that ask a model, one elsewhere or a Go program have it as steps of a loop", plain(duration, (*reader).loopTime), func(l *Loop) *time.Duration { return &l.Timeout }),
	field("iteration_timeout", "how long one iteration may take; the rest of it is then skipped", plain(duration, (*reader).loopTime), func(l *Loop) *time.Duration { return &l.IterationTimeout }),
	field("iteration_delay", "how long to wait between two iterations", aDelay, func(l *Loop) *time.Duration { return &l.IterationDelay }),
	field("budget", "what model calls in the loop may use: {calls, tokens, cost}", budgetParts.value(), func(l *Loop) **loop.Budget { return &l.Budget }),
	field("finalizer", "when the finalizer runs: after the loop (the default: after) or each_iteration", plain(func() shape { return oneOf("after", finalizeEach) }, (*reader).finalizer), func(l *Loop) *bool { return &l.FinalizeEach }).helped("it says when; output_key: loop_output makes a step the finalizer").shown("after"),
	field("finalizer_reserve", "the share of time and budget that is kept for the finalizer; 10% if left out", plain(shareShape, (*reader).share), func(l *Loop) *float64 { return &l.Reserve }).shown("10%"),
	field("state_limit", "the largest state at the end of an iteration, as 10MB; none is no limit", plain(sizeOrNone, (*reader).stateLimit), func(l *Loop) *int64 { return &l.StateLimit }).helped("none is no limit; without state_limit it is 64MiB").or("64MiB"),
	field("max_consecutive_failures", "so many steps failing one after another end the loop", wholeFrom[uint](0, ""), func(l *Loop) *uint { return &l.MaxConsecutiveFailures }),
}

// takesResult reads a state key, or best.
func takesResult(p place, n *yaml.Node, l *Loop) bool {
	key, ok := p.text(n, p.field)
	if l.Result = key; key == "best" {
		l.Result, l.BestOnExit = "", true
	}
	return ok
}

var budgetParts = parts[loop.Budget]{rows: []row[loop.Budget]{
	field("calls", "requests to models", wholeFrom[int64](1, "leave it out for no limit"), func(b *loop.Budget) *int64 { return &b.Calls }),
	field("tokens", "tokens of input and output together", wholeFrom[int64](1, "leave it out for no limit"), func(b *loop.Budget) *int64 { return &b.Tokens }),
	field("cost", "by the prices at the root", maybe(numberAbove(0)), func(b *loop.Budget) **float64 { return &b.Cost }),
}, some: "give calls, tokens or cost"}

var noProgressParts = parts[loop.NoProgress]{rows: []row[loop.NoProgress]{
	field("repeats", "how often the same has to come running", wholeFrom[uint](1, ""), func(p *loop.NoProgress) *uint { return &p.Repeats }).shown(3),
	field("swings", "how often two results have to come in turns", wholeFrom[uint](1, ""), func(p *loop.NoProgress) *uint { return &p.Swings }).shown(2),
	field("keys", "the state keys to look at; all that is said and changed if left out", each(aText, listing{}), func(p *loop.NoProgress) *[]string { return &p.Keys }),
}, or: "true"}

var notWorthParts = parts[loop.NotWorth]{rows: []row[loop.NotWorth]{
	field("gain", "how much an iteration has to bring", aNumber, func(w *loop.NotWorth) *float64 { return &w.Gain }).must(),
	field("per", "for what: the iteration itself, a minute, a thousand tokens or a unit of cost", oneWord[loop.Per]("iteration", "minute", "ktokens", "cost"), func(w *loop.NotWorth) *loop.Per { return &w.Per }).shown("iteration"),
}}
