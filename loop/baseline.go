// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
)

// baseline is the score of the state before the first iteration.
type baseline struct {
	// BaselineOver says that the baseline has ended, with or without a score.
	BaselineOver bool `json:"baseline_over,omitzero"`
	// Start is the score, the mean of StartCount answers. StartNote says why there is none.
	Start      *float64 `json:"start,omitzero"`
	StartCount int      `json:"start_count,omitzero"`
	StartNote  string   `json:"start_note,omitzero"`
}

// BaselineSteps returns the steps that score what is there before the first iteration, as indices into Steps; nil if
// the plan has no baseline.
func (p *Plan) BaselineSteps() []int {
	s := p.Score
	if s == nil || !s.Baseline {
		return nil
	}
	names := s.Scorers
	if s.Judge != nil {
		names = []string{s.Judge.Step}
	}
	var steps []int
	for _, i := range p.Sequence() {
		if slices.Contains(names, p.Steps[i].Name) {
			steps = append(steps, i)
		}
	}
	return steps
}

// scoresStart returns the step of the baseline that is due. ok is false if the baseline is finished, or if the plan has
// none.
func (p *Plan) scoresStart(t *Tally) (step int, ok bool) {
	if t.Iteration > 0 || t.BaselineOver {
		return 0, false
	}
	steps := p.BaselineSteps()
	if t.Place >= len(steps) {
		return 0, false
	}
	return steps[t.Place], true
}

// addBaseline adds the outcome of a step of the baseline. A failed step ends the baseline but not the loop; the first
// iteration is then compared with nothing.
func (p *Plan) addBaseline(t *Tally, o *addedOutcome) {
	if o.Canceled != "" {
		t.Canceled = truncate(o.Canceled)
		return
	}
	p.recordStep(t, o)
	if p.repeatsStep(t, o) {
		return
	}
	t.finishStep()
	if o.Failure != nil {
		if p.failApart(t, o) {
			t.ScoreNote = t.LastFailure.String()
			p.endBaseline(t)
		}
		return
	}
	t.ScoreWritten = t.ScoreWritten || p.Score.writtenBy(o.Wrote)
	t.Place++
	if _, more := p.scoresStart(t); more {
		return
	}
	if got, ok := p.measure(t, o); ok {
		t.Best, t.Accepted, t.Start = new(got.score), new(got.score), new(got.score)
		p.trace(t, got.score)
		if p.proves() {
			t.BestCount, t.StartCount = t.answers(), t.answers()
		}
		p.updateRival(t, true)
	}
	p.endBaseline(t)
}

// endBaseline ends the baseline and resets the fields of t that the first iteration uses next.
func (p *Plan) endBaseline(t *Tally) {
	t.BaselineOver, t.Place, t.StartNote = true, 0, t.ScoreNote
	t.Ended, t.ScoreNote, t.Dimensions = IterationRecord{}, "", nil
	t.Judge.Runs, t.Judge.Samples = 0, nil
}

// compare writes the score of the start into the record of the first iteration.
func (p *Plan) compare(t *Tally) {
	if t.Iteration != 1 || !t.BaselineOver {
		return
	}
	if t.Ended.Baseline = t.Start; t.Start == nil {
		t.Ended.warn("the start has no score: " + t.StartNote)
	}
}

// Rejudged is one more answer of the judge about the best version, given after a rollback to it.
type Rejudged struct {
	// Iteration is the best iteration; 0 means the start. Score is the answer.
	Iteration int     `json:"iteration"`
	Score     float64 `json:"score"`
	// Mean is the mean of all answers about this version, and Answers is their number.
	Mean    float64 `json:"mean"`
	Answers int     `json:"answers"`
}

// Rejudges reports whether the judge scores the best version again after a rollback to it, provided that its scores
// have noise. Without this, one score that is too high by chance would block the loop. A judge that compares versions
// does not need it, because each comparison is about both versions.
func (p *Plan) Rejudges() bool {
	return p.Version >= 3 && p.proves() && p.OnRegression == RollbackOnWorse && !p.Score.Judge.Bound && !p.compares()
}

// rejudge makes the judge due for the best version, after a rollback has restored its state.
func (p *Plan) rejudge(t *Tally) {
	if p.Rejudges() && t.Ended.Number != 0 && t.Score != nil && p.rollbackTarget(t).Score != nil {
		v, _ := p.spread(t)
		t.Rejudge = v > 0
	}
}

// judgeStep returns the index of the judge, -1 if there is none.
func (p *Plan) judgeStep() int {
	return slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == p.Score.Judge.Step })
}

// addRejudged adds the judge's answer about the best version to the mean of its score. If the judge fails, the mean
// does not change.
func (p *Plan) addRejudged(t *Tally, o *addedOutcome) {
	if o.Canceled != "" {
		t.Canceled = truncate(o.Canceled)
		return
	}
	p.recordStep(t, o)
	if f := o.Failure; f != nil {
		switch {
		case p.mayRetry(o.Step, t.Attempt+1, f):
			t.retry(f)
			return
		case !p.failApart(t, o):
			return
		}
	}
	t.finishStep()
	t.RetryAfter, t.Rejudge = 0, false
	if o.Failure != nil || !p.Score.writtenBy(o.Wrote) {
		return
	}
	got, err := p.Score.read(t, o)
	if err != nil {
		return
	}
	b := p.rollbackTarget(t)
	n := float64(max(1, b.Count))
	b.Score, b.Count = new(roundDecimals((*b.Score*n+got.score)/(n+1))), int(n)+1
	if b.Iteration == t.BestIteration {
		t.Best, t.BestCount = b.Score, b.Count
	}
	if p.isFreshLeg(t) {
		t.Own = b
	}
	t.Accepted = new(*b.Score)
	t.Rejudged = &Rejudged{b.Iteration, got.score, *b.Score, b.Count}
}
