// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
)

// currentRules is the version of the rules by which new loops decide about scores of a judge.
const currentRules = 2

// Current returns the version of the rules for a new run of the plan: 2 with a judge, else 0, because
// scores without a judge are decided in the same way by all versions. See Rules.
func (p *Plan) Current() uint {
	if p.Score == nil || p.Score.Judge == nil {
		return 0
	}
	return currentRules
}

// proves reports whether the loop decides by proof that adds up over its iterations, as all plans of version 2
// do if a judge gives the score. The rules before compared single iterations, each with the noise of the judge.
func (p *Plan) proves() bool { return p.Rules >= 2 && p.Score != nil && p.Score.Judge != nil }

// lead is how much better than the best a score must be to be the new best.
func (p *Plan) lead(t *Tally) float64 {
	if p.proves() {
		return 0
	}
	return t.Ended.Noise
}

// bestAgain reports whether the judge has judged the best version again: its mean is now that of all its answers.
func (p *Plan) bestAgain(t *Tally) bool {
	return p.proves() && t.Ended.Samples > 0 && t.Judge.Same > 0 && t.BestIteration > 0 && t.BestIteration == t.Judge.Since
}

// countBest takes down of how many answers the new best is the mean.
func (p *Plan) countBest(t *Tally) {
	if p.proves() {
		t.BestCount = t.answers()
	}
}

// answers is of how many answers of the judge the last score is the mean.
func (t *Tally) answers() int {
	if t.Ended.Number != 0 && t.Ended.Samples == 0 { // a score of the agent's own
		return 1
	}
	return max(1, t.Judge.Count)
}

// errorOf is the standard error of the score; 0 if it is unknown, or none.
func (p *Plan) errorOf(t *Tally) float64 {
	v, _ := p.spread(t)
	return tidy(math.Sqrt(v / float64(t.answers())))
}

// margin is how much worse than the best an iteration may be without being undone.
func (p *Plan) margin(t *Tally) float64 {
	if !p.proves() {
		return t.Ended.Noise
	}
	v, _ := p.spread(t)
	n := t.answers()
	return tidy(undone * math.Sqrt(v/float64(n)+v/float64(max(1, t.BestCount))))
}

// worse says for people that the iteration is worse than the best.
func (p *Plan) worse(t *Tally) string {
	s := fmt.Sprintf("score %s is worse than %s, the best so far (iteration %d)", num(*t.Score), num(*t.Best), t.BestIteration)
	if m := p.margin(t); p.proves() && m > 0 {
		s += ", by more than " + short(m)
	}
	return s
}

// settled reports whether the improvements were too small often enough, and nothing is gained any more.
func (p *Plan) settled(t *Tally) bool {
	s := p.Score
	return (s.MinDelta != nil || s.MinDeltaPercent != nil) && t.Flat >= s.patience() && p.still(t).holds()
}

// recordError writes into the record how much the score of the iteration is off by chance.
func (p *Plan) recordError(t *Tally) {
	rec := &t.Ended
	rec.Noise = t.Judge.floor()
	if !p.proves() {
		return
	}
	rec.Error = p.errorOf(t)
	if t.Judge.free() == 0 {
		rec.Noise = tidy(step * rec.Error)
	}
}
