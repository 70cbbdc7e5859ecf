// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"slices"
)

// Regression says what follows an iteration that is worse than the best.
type Regression string

// The ways to treat a worse iteration.
const (
	KeepBest        Regression = "keep_best" // the state runs on; the best result is handed back
	RollbackOnWorse Regression = "rollback"  // the iteration is rejected and its changes of state are undone
)

// value takes the score of the iteration that has just ended into the tally,
// and decides whether the iteration is accepted.
func (p *Plan) value(t *Tally, o *Outcome) {
	got, ok := p.measure(t, o)
	if !ok {
		return
	}
	s, rec := p.Score, &t.Ended
	rec.Score, t.Score = new(got.score), new(got.score)
	rec.Dimensions, t.Dimensions = got.dims, got.dims
	if t.Accepted != nil {
		prev := *t.Accepted
		delta := s.gain(prev, got.score)
		rec.Delta = new(delta)
		if prev != 0 {
			rec.Percent = new(tidy(delta / math.Abs(prev) * 100))
		}
		if t.IterationFailures == 0 {
			s.flat(t, rec)
		}
	}
	scores := append(slices.Clone(t.Scores), got.score)
	t.Scores = scores[max(0, len(scores)-maxScores):]
	t.Scored++
	switch {
	case p.QualityGate != nil && s.better(*p.QualityGate, got.score):
		p.reject(t, fmt.Sprintf("score %s does not pass the quality gate of %s", num(got.score), num(*p.QualityGate)))
		return
	case p.OnRegression == RollbackOnWorse && t.Best != nil && -s.gain(*t.Best, got.score) > rec.Noise:
		p.reject(t, fmt.Sprintf("score %s is worse than %s, the best so far (iteration %d)", num(got.score), num(*t.Best), t.BestIteration))
		return
	}
	t.Accepted = new(got.score)
	if t.Best == nil || s.better(got.score, *t.Best) && s.gain(*t.Best, got.score) > rec.Noise {
		rec.Best = true
		t.Best, t.BestIteration = new(got.score), t.Iteration
	}
}

// measure is the score of the iteration: what its judge's samples come to, or
// what can be read now.
func (p *Plan) measure(t *Tally, o *Outcome) (got reading, ok bool) {
	j := &t.Judge
	if own := o.Exit != nil && o.Exit.Score != nil && t.Exit != nil; !own && j.Runs > 0 {
		if len(j.Samples) == 0 {
			return reading{}, false // ScoreNote says why
		}
		t.ScoreNote = ""
		n := len(j.Samples)
		got = reading{j.pool(t.Print), t.Dimensions}
		t.Ended.Samples, t.Ended.Noise = n, j.noise(n)
		return got, true
	}
	got, err := p.Score.read(t, o)
	if err != nil {
		t.ScoreNote = clip(err.Error())
		return reading{}, false
	}
	return got, true
}

// reject refuses the iteration that has just ended.
func (p *Plan) reject(t *Tally, why string) {
	t.Ended.Rejected = why
	t.Rejections++
	t.RollbackDue = p.OnRegression == RollbackOnWorse
}

// gain is the improvement from one score to another, more is better.
func (s *Score) gain(from, to float64) float64 {
	if s.LowerIsBetter {
		return tidy(from - to)
	}
	return tidy(to - from)
}

// flat counts how often running the improvement was below a threshold, or no
// larger than chance.
func (s *Score) flat(t *Tally, rec *IterationRecord) {
	percent := rec.Percent
	if percent == nil && *rec.Delta <= 0 {
		percent = new(0.0) // no gain over a score of zero
	}
	switch {
	case s.MinDelta == nil && s.MinDeltaPercent == nil:
		return
	case s.MinDelta != nil && *rec.Delta < *s.MinDelta:
		t.FlatBy = num(*s.MinDelta)
	case s.MinDeltaPercent != nil && percent != nil && *percent < *s.MinDeltaPercent:
		t.FlatBy = num(*s.MinDeltaPercent) + "%"
	case rec.Noise > 0 && *rec.Delta <= rec.Noise:
		t.FlatBy = num(rec.Noise) + " (the judge's noise)"
	default:
		t.Flat, t.FlatBy = 0, ""
		return
	}
	t.Flat++
}
