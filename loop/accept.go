// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"slices"
)

// Regression says what happens after an iteration that is worse than the best.
type Regression string

// The ways to treat a worse iteration.
const (
	KeepBest        Regression = "keep_best" // the next iteration continues from the worse state; the loop returns the best result
	RollbackOnWorse Regression = "rollback"  // the iteration is rejected and its changes of state are undone
)

// ranking says which versions have been accepted, beside Tally.Best, and which iterations were rejected.
type ranking struct {
	// Accepted is the last accepted score, from which the next improvement counts.
	Accepted *float64 `json:"accepted,omitzero"`
	// BestCount is the number of the judge's answers that Tally.Best is the mean of.
	BestCount int `json:"best_count,omitzero"`
	// Rejections and Rollbacks count iterations. RollbackDue says that the driver must restore the state before
	// anything else, unless the loop ends by an error or a cancellation.
	Rejections  int  `json:"rejections,omitzero"`
	Rollbacks   int  `json:"rollbacks,omitzero"`
	RollbackDue bool `json:"rollback_due,omitzero"`
}

// scoreIteration reads the score of the iteration that has just ended and adds it to the tally.
func (p *Plan) scoreIteration(t *Tally, o *addedOutcome) {
	got, ok := p.measure(t, o)
	if !ok {
		t.Ended.Unscored = t.ScoreNote
		return
	}
	p.setScore(t, got)
}

// setScore stores a reading as the score of the iteration that has just ended.
func (p *Plan) setScore(t *Tally, got reading) {
	s, rec := p.Score, &t.Ended
	t.Score, rec.Score = new(got.score), new(got.score)
	rec.Dimensions, t.Dimensions = got.dims, got.dims
	t.Scores = slices.Concat(t.Scores[max(0, len(t.Scores)-maxScores+1):], []float64{got.score})
	t.Scored++
	if p.compares() {
		t.Rival.Ahead++
	}
	p.trace(t, got.score)
	p.recordError(t)
	if t.Accepted != nil {
		prev := *t.Accepted
		rec.Delta = new(s.gain(prev, got.score))
		if percent := roundDecimals(*rec.Delta / math.Abs(prev) * 100); isFinite(percent) {
			rec.Percent = new(percent)
		}
		if t.IterationFailures == 0 {
			s.countFlat(&t.plateau, rec)
		}
	}
}

// accept decides whether the iteration that has just ended is accepted, and whether it is the best. If the loop ends
// with this iteration and returns it as its result, accept does not reject it for being worse than another, and the
// loop does not undo its changes of state. The quality gate applies in any case.
func (p *Plan) accept(t *Tally, scored bool) {
	s, rec := p.Score, &t.Ended
	rolls, ground := p.OnRegression == RollbackOnWorse, p.rollbackTarget(t)
	switch {
	case p.QualityGate != nil && t.Score == nil:
		p.reject(t, fmt.Sprintf("it has no score, and the quality gate is %s", num(*p.QualityGate)))
	case p.QualityGate != nil && s.better(*p.QualityGate, *t.Score):
		p.reject(t, fmt.Sprintf("score %s does not pass the quality gate of %s", num(*t.Score), num(*p.QualityGate)))
	case !rolls || p.handsBack(t):
	case !scored:
		p.reject(t, "a failure cut the iteration short")
	case ground.Score == nil, p.judgedAgain(t, ground):
	case t.Score == nil:
		p.reject(t, "it has no score; "+p.bestText(t))
	case -s.gain(*ground.Score, *t.Score) > p.margin(t):
		p.reject(t, p.worse(t))
	}
	t.RollbackDue = rolls && rec.Rejected != "" && !p.handsBack(t)
	if t.RollbackDue {
		p.retrace(t)
	}
	if rec.Rejected != "" || t.Score == nil {
		return
	}
	t.Accepted = new(*t.Score)
	top, first := p.updateBest(t, t.bestVersion())
	t.Best, t.BestIteration, t.BestCount, rec.Best = top.Score, top.Iteration, top.Count, first
	p.updateRival(t, first)
	if p.isFreshLeg(t) {
		t.Own, _ = p.updateBest(t, t.Own)
	}
}

// handsBack reports whether the iteration that has just ended ends the loop and is its result.
func (p *Plan) handsBack(t *Tally) bool {
	switch p.reason(t) {
	case ReasonTarget:
		return true
	case ReasonCondition: // unless the condition also held after an earlier, better iteration
		return t.Truths[0].Run <= 1 || t.MetScore == nil || t.Score != nil && !p.Score.better(*t.MetScore, *t.Score)
	case ReasonExit, ReasonEscalated:
		return !p.BestOnExit
	}
	return false
}

// noteMet stores the best of the consecutive iterations after which StopWhen held.
func (p *Plan) noteMet(t *Tally) {
	if len(t.Truths) == 0 || t.Truths[0].Run == 0 {
		t.Met, t.MetScore = 0, nil
		return
	}
	scored := t.Score != nil && t.Ended.Rejected == ""
	switch {
	case t.Truths[0].Run == 1, t.MetScore == nil:
	case !scored || !p.Score.better(*t.Score, *t.MetScore):
		return
	}
	t.Met, t.MetScore, t.Ended.Met = t.Iteration, nil, true
	if scored {
		t.MetScore = new(*t.Score)
	}
}

// measure returns the score of the iteration: the agent's own score if it left the loop with one, otherwise the mean of
// the judge's samples, otherwise the score that the plan reads from the state, if a step of this iteration wrote it. If
// there is no score, ok is false and t.ScoreNote says why.
func (p *Plan) measure(t *Tally, o *addedOutcome) (got reading, ok bool) {
	j := &t.Judge
	own := o.Exit != nil && o.Exit.Score != nil && t.Exit != nil && !p.compares()
	if p.Score.Judge == nil || own {
		var err error
		if !own && !t.ScoreWritten {
			err = p.Score.unwrittenError("")
		} else {
			got, err = p.Score.read(t, o)
		}
		if err != nil {
			t.ScoreNote = truncate(err.Error())
			return reading{}, false
		}
		return got, true
	}
	n := len(j.Samples)
	switch {
	case j.Runs == 0:
		t.ScoreNote = fmt.Sprintf("the judge %s has not judged this iteration", truncate(p.Score.Judge.Step))
		return reading{}, false
	case n == 0:
		return reading{}, false // ScoreNote says why
	}
	t.ScoreNote = ""
	got = reading{j.pool(t.Iteration), t.Dimensions}
	t.Ended.Samples = n
	return got, true
}

// reject marks the iteration that has just ended as rejected.
func (p *Plan) reject(t *Tally, why string) {
	t.Ended.Rejected = why
	t.Rejections++
}

// gain returns the improvement from one score to another; a positive gain is better.
func (s *Score) gain(from, to float64) float64 {
	if s.LowerIsBetter {
		return roundDecimals(from - to)
	}
	return roundDecimals(to - from)
}
