// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
)

// SentenceKind says what a [Sentence] is about.
type SentenceKind string

// The kinds of sentences. The first six are about loops that go on.
const (
	SaysImproving   SentenceKind = "improving"
	SaysPlateau     SentenceKind = "plateau"
	SaysRegressing  SentenceKind = "regressing"
	SaysOscillating SentenceKind = "oscillating"
	SaysTooEarly    SentenceKind = "too_early"  // a forecast needs more scores
	SaysNotScored   SentenceKind = "not_scored" // the loop has no score
	SaysDone        SentenceKind = "done"       // it stopped by a criterion of its own
	SaysLimit       SentenceKind = "limit"      // it stopped at a limit of iterations, time or budget
	SaysFailed      SentenceKind = "failed"
	SaysCanceled    SentenceKind = "canceled"
)

// Sentence describes the state of a loop: its expected end, or why it has stopped. Its fields are data; [Sentence.In]
// puts them into words.
type Sentence struct {
	Kind SentenceKind `json:"kind"`
	// Iteration is the iteration under way, or the last one; 0 before the first.
	Iteration int `json:"iteration"`
	// Trend is the direction of the scores; empty with fewer than three of them. Since is the iteration with which a
	// plateau began, or after which the scores fell; 0 elsewhere.
	Trend loop.Trend `json:"trend,omitzero"`
	Since int        `json:"since,omitzero"`
	// Until is the reason that is expected to end the loop, or that ended it; empty if none is expected. After is the
	// iteration after which the loop is expected to stop, or stopped.
	Until loop.StopReason `json:"until,omitzero"`
	After int             `json:"after,omitzero"`
	// Final is the score expected at the end, Target the score to reach; nil if there is none.
	Final  *float64 `json:"final,omitzero"`
	Target *float64 `json:"target,omitzero"`
	// Best is the best score so far, BestIteration its iteration; nil if there is none.
	Best          *float64 `json:"best,omitzero"`
	BestIteration int      `json:"best_iteration,omitzero"`
	// BestError is by how much a judge's Best is off by chance; 0 if that is unknown.
	BestError float64 `json:"best_error,omitzero"`
	// Range is the expected number of further iterations; nil if it cannot be predicted.
	Range *Range `json:"range,omitzero"`
	// Basis is the number of scores of a forecast, Needed the number that a forecast needs.
	Basis  int `json:"basis"`
	Needed int `json:"needed"`
	// AtMost is how many more iterations the limit allows, without the running one; nil means no limit.
	AtMost *int `json:"at_most,omitzero"`
	// Limit is the largest number of iterations; 0: no limit.
	Limit int `json:"limit,omitzero"`
	// Decimals is the number of decimals of the loop's scores, at most 3.
	Decimals int `json:"decimals"`
	// By is the agent that asked to stop, or the step that failed, Detail its own words or, for a
	// condition, the expression. Only a loop that has stopped has them.
	By     string `json:"by,omitzero"`
	Detail string `json:"detail,omitzero"`
	// NotWorth says that the loop converged because the next iteration promised too little.
	NotWorth bool `json:"not_worth,omitzero"`
	// Proof says how sure the end is; nil if no score with noise has decided.
	Proof *loop.Proof `json:"proof,omitzero"`
}

// Range is the expected number of iterations after the running one.
type Range struct {
	// Iterations is the most likely number of further iterations, Low and High are an interval.
	Iterations int `json:"iterations"`
	Low        int `json:"low"`
	High       int `json:"high"`
	// Left is the expected active time until the end, with the rest of the iteration under way, in
	// nanoseconds; 0 if unknown.
	Left time.Duration `json:"left_ns,omitzero"`
}

// needed is the number of scores that a forecast needs.
const needed = 3

// SentenceOf returns the state of a loop at a time of the run's clock.
func SentenceOf(l *progress.Loop, now time.Duration) Sentence {
	t, whole := l.Tally()
	m := l.Moment(now)
	s := Sentence{Needed: needed, Limit: int(min(l.Plan.MaxIterations, math.MaxInt32)), Decimals: decimals(l)}
	if cur := l.Current(); cur != nil {
		s.Iteration = cur.Number
	}
	if l.Plan.Score != nil {
		s.Target = l.Plan.Score.Target
	}
	s.Best, s.BestIteration = t.Best, t.BestIteration
	if best := l.Best(); best != nil && best.Number == s.BestIteration && best.Record != nil {
		s.BestError = best.Record.Error
	}
	rec := l.Stop
	if rec == nil && whole && m.Iteration == 0 && s.Iteration > 0 {
		rec = l.Plan.Next(&t).Stop // nil, unless only the finalizer is still to come
	}
	if rec != nil {
		s.over(rec)
		return s
	}
	if s.Limit > 0 {
		s.AtMost = new(max(0, s.Limit-s.Iteration))
	}
	f := l.Plan.ForecastAt(&t, m)
	s.Trend, s.Basis = f.Trend, len(t.Scores)
	if m.Score != nil {
		s.Basis++
	}
	switch {
	case l.Plan.Score == nil:
		s.Kind = SaysNotScored
	case f.Trend == "":
		s.Kind = SaysTooEarly
	default:
		s.Kind = SentenceKind(f.Trend)
	}
	switch s.Kind {
	case SaysPlateau:
		s.Since = flatSince(l, m.Score)
	case SaysRegressing:
		s.Since = t.BestIteration
	}
	if f.Predictable && f.Until != "" {
		s.Until, s.Final, s.Range = f.Until, new(f.Final), ahead(l, &f, now)
		s.After = s.Iteration + s.Range.Iterations
	}
	return s
}

// over describes a loop that has stopped.
func (s *Sentence) over(rec *loop.StopRecord) {
	s.Until, s.After, s.Trend, s.Proof = rec.Reason, rec.Iteration, rec.Trend, rec.Proof
	s.Best, s.BestIteration, s.BestError, s.By, s.Detail = rec.BestScore, rec.BestIteration, rec.BestError, rec.By, rec.Detail
	for _, c := range rec.Conditions {
		s.NotWorth = s.NotWorth || c.Name == "not_worth" && c.Fired
	}
	switch {
	case rec.Reason.Failed():
		s.Kind = SaysFailed
		if rec.By != "" {
			s.Detail = strings.TrimPrefix(s.Detail, rec.By+": ")
		}
	case rec.Reason.Limit():
		s.Kind = SaysLimit
	case rec.Reason == loop.ReasonCanceled:
		s.Kind = SaysCanceled
	default:
		s.Kind = SaysDone
		if reason, asked := rec.Request(); asked {
			s.Detail = reason
		}
	}
}

// flatSince returns the first of the last iterations whose scores hardly differ; 0 if it is the last one. It skips
// iterations that were not accepted.
func flatSince(l *progress.Loop, last *float64) (since int) {
	its := l.Iterations
	if l.Left() > 0 {
		its = its[progress.FirstKept:]
	}
	for _, it := range slices.Backward(its) {
		rec := it.Record
		switch {
		case rec == nil || rec.Score == nil || rec.Rejected != "":
			continue
		case last == nil:
			last = rec.Score
			continue
		}
		if math.Abs(*rec.Score-*last) > max(rec.Noise, 0.01*max(math.Abs(*last), math.Abs(*rec.Score))) {
			return since
		}
		since = it.Number
	}
	return since
}

// decimals returns the number of decimals of the scores.
func decimals(l *progress.Loop) int {
	most := 0
	for i := len(l.Iterations) - 1; i >= 0 && i >= len(l.Iterations)-16; i-- {
		if rec := l.Iterations[i].Record; rec != nil && rec.Score != nil {
			for most < 3 && math.Abs(*rec.Score*math.Pow10(most)-math.Round(*rec.Score*math.Pow10(most))) > 1e-6 {
				most++
			}
		}
	}
	return most
}
