// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"slices"
)

// The constants of the rules under noise; doc/stopping.md has their reasons.
const (
	window    = 8              // number of last scores that a proof of convergence uses
	fewScores = 5              // number of scores below which the noise cannot be estimated from them
	least     = 1.0 / 3        // smallest gain per iteration that counts, in standard errors of a score
	leastPair = 0.22           // the same for a judge that compares two versions
	undone    = 1.5            // an iteration that is worse by more than this many standard errors of the difference is undone
	step      = 2 * math.Sqrt2 // two scores may differ by this many standard errors by chance
	mostProof = 6              // from this patience on, the required odds do not grow
	mostOdds  = 1e6            // largest odds that are written as a number
)

// point is one score of a course; more is better. N is the number of answers that Y is the mean of.
type point struct {
	Y float64 `json:"y"`
	N int     `json:"n"`
	// From is the score of the reference version, for a judge that compares. Gap is the number of iterations from that
	// version to this one; 0 if there is no reference.
	From float64 `json:"from,omitzero"`
	Gap  int     `json:"gap,omitzero"`
}

// trace adds the score of the iteration that has just ended to the course, unless one of its steps failed.
func (p *Plan) trace(t *Tally, score float64) {
	if p.proves() && t.IterationFailures == 0 {
		own := point{Y: p.Score.sense() * score, N: t.answers()}
		if p.compares() {
			if t.Rival.Score == nil { // there is no reference version yet
				return
			}
			own.From, own.Gap = *t.Rival.Score, t.Rival.Ahead
		}
		t.Course = slices.Concat(t.Course[max(0, len(t.Course)-window+1):], []point{own})
	}
}

// retrace replaces the score of an undone iteration in the course by the best score, because the loop goes back to the
// best version. A failed attempt is not evidence that the scores stand still.
func (p *Plan) retrace(t *Tally) {
	n, ground := len(t.Course), p.rollbackTarget(t).Score
	if n == 0 || t.Score == nil || ground == nil || t.IterationFailures > 0 {
		return
	}
	own := t.Course[n-1]
	own.Y = p.Score.sense() * *ground
	t.Course = slices.Concat(t.Course[:n-1], []point{own})
}

// free returns the number of answers that repeat an earlier answer about the same version. These are the degrees of
// freedom of the variance.
func (j *judgeTally) free() int { return j.PastFreedom + max(0, j.Count-1) }

// variance returns the variance of one answer, computed from repeated answers. With few of them it returns a larger
// value, as in Student's t distribution.
func (j *judgeTally) variance() float64 {
	f := float64(j.free())
	return (j.PastSquares + j.Squares) / f * (f + 2) / f
}

// spread returns the variance of one answer of the judge; 0 if it is unknown. exact reports whether the scores have no
// noise.
func (p *Plan) spread(t *Tally) (v float64, exact bool) {
	if !p.proves() {
		return 0, true
	}
	if t.Judge.free() > 0 {
		v = t.Judge.variance()
		return v, v == 0
	}
	return courseSpread(p.spreadScores(t)), false
}

// courseSpread returns the variance of single answers, estimated from the second differences of the last scores. A
// constant level or a linear trend does not change these.
func courseSpread(scores []float64) float64 {
	if scores = scores[max(0, len(scores)-window):]; len(scores) < fewScores {
		return 0
	}
	return scatter(scores)
}

// scatter returns the mean square of the second differences of three or more scores, divided by 6: the variance of
// single scores about a line.
func scatter(scores []float64) float64 {
	sum := 0.0
	for i := 2; i < len(scores); i++ {
		d := scores[i] - 2*scores[i-1] + scores[i-2]
		sum += d * d / 6
	}
	return sum / float64(len(scores)-2)
}

// standstill compares two explanations of the last scores: that they have stopped changing, and that they gain twice
// the smallest gain that counts in every iteration. odds says how much better the first explanation fits.
type standstill struct {
	plain      bool    // no proof is needed, because the scores are exact or the version stays the same
	same       int     // for how many iterations the version has been the same; 0 if that is not the reason
	scores     int     // number of last scores with the best odds; 0 means unknown
	slope      float64 // measured gain per iteration
	gain       float64 // smallest gain per iteration that counts
	percent    float64 // the same in percent, if the plan gives it in percent
	vague      bool    // gain was raised to the smallest gain that the error of a score lets us see
	odds, need float64 // natural logarithms; need grows with the patience
}

func (s standstill) holds() bool { return s.plain || s.scores > 0 && s.odds >= s.need }

// findStandstill returns what the course says about convergence.
func (p *Plan) findStandstill(t *Tally) standstill {
	s := p.Score
	v, exact := p.spread(t)
	switch {
	case exact:
		return standstill{plain: true}
	case t.Judge.Same >= int(s.patience()):
		return standstill{plain: true, same: t.Judge.Same}
	case v == 0 && len(p.spreadScores(t)) >= fewScores: // the scores lie exactly on a line
		return standstill{plain: true}
	}
	return s.weigh(t.Course, v, s.patience(), s.threshold)
}

// threshold returns the smallest gain that counts for scores around level. percent is that gain in percent, 0 if the
// plan gives it as a number.
func (s *Score) threshold(level float64) (gain, percent float64) {
	if s.MinDelta != nil {
		gain = *s.MinDelta
	}
	if s.MinDeltaPercent != nil {
		if own := *s.MinDeltaPercent / 100 * math.Abs(level); own > gain {
			gain, percent = own, *s.MinDeltaPercent
		}
	}
	return gain, percent
}

// weigh finds the number of last scores for which the odds of a stand-still are best. The odds that it requires are
// 100:1 for a patience of 2, and √10 times more for each further one, up to 10000:1. v is the variance of one answer.
func (s *Score) weigh(course []point, v float64, patience uint, threshold func(level float64) (gain, percent float64)) standstill {
	most := standstill{odds: math.Inf(-1), need: math.Ln10 * (1 + float64(min(patience, mostProof))/2)}
	if v == 0 {
		return most
	}
	share := least
	if s.compares() {
		share = leastPair
	}
	for m := int(min(patience+1, window)); m <= len(course); m++ {
		slope, xx, y, n := slopeOf(course[len(course)-m:])
		now := standstill{scores: m, slope: slope, need: most.need}
		now.gain, now.percent = threshold(y)
		if floor := share * math.Sqrt(v*float64(m)/n); now.gain < floor {
			now.gain, now.percent, now.vague = floor, 0, true
		}
		if now.odds = 2 * now.gain * (now.gain - now.slope) * xx / v; now.odds > most.odds {
			most = now
		}
	}
	return most
}

// slopeOf fits a line of least squares to a course. slope is the gain per iteration. The variance of one answer divided
// by xx is the variance of slope. y is the mean score, and n the number of answers. For marks the line goes through the
// mean of the course; for a comparison it goes through the reference version, Gap iterations before.
func slopeOf(course []point) (slope, xx, y, n float64) {
	var x, xy float64
	for i, p := range course {
		n, x, y = n+float64(p.N), x+float64(p.N*i), y+float64(p.N)*p.Y
	}
	x, y = x/n, y/n
	for i, p := range course {
		dx, dy := float64(i)-x, p.Y-y
		if p.Gap > 0 {
			dx, dy = float64(p.Gap), p.Y-p.From
		}
		xx, xy = xx+float64(p.N)*dx*dx, xy+float64(p.N)*dx*dy
	}
	return xy / xx, xx, y, n
}

// direction returns the trend of scores with noise. They rise or fall if the slope of the last 8 differs from 0 by more
// than chance and the slope of the last 5 is at least half of it.
func direction(course []point, v float64) Trend {
	all, xx, _, _ := slopeOf(course)
	late, _, _, _ := slopeOf(course[max(0, len(course)-trendWindow):])
	switch chance := sure * math.Sqrt(v/xx); {
	case all > chance && late >= all/2:
		return Improving
	case all < -chance && late <= all/2:
		return Regressing
	}
	return Plateau
}

// String returns a text that says what has converged.
func (s standstill) String() string {
	switch {
	case s.same > 0:
		return fmt.Sprintf("the version has been the same for %s more", count(s.same, "iteration"))
	case s.vague:
		return fmt.Sprintf("Improvement < %s an iteration (a third of a score's error), over the last %d scores", short(s.gain), s.scores)
	}
	return fmt.Sprintf("Improvement < %s an iteration, over the last %d scores", s.amount(), s.scores)
}

func (s standstill) amount() string {
	if s.percent > 0 {
		return num(s.percent) + "%"
	}
	return short(s.gain)
}

// row returns r with the state of the proof of convergence. It returns r unchanged if no proof is needed.
func (s standstill) row(r Row) Row {
	switch {
	case s.plain:
		return r
	case s.scores == 0:
		r.Threshold += ", and proof"
		r.Note = "too few scores to know the judge's error"
		return r.withNear(0)
	}
	r.Value = fmt.Sprintf("%s an iteration over %d scores, %s", signedShort(s.slope), s.scores, against(s.odds))
	r.Threshold = s.amount() + ", " + against(s.need)
	return r.withNear(min(r.Near, max(0, s.odds/s.need)))
}

// against writes odds as text, such as 100:1. Its argument is their natural logarithm.
func against(odds float64) string {
	if odds > math.Log(mostOdds) {
		return "over 1000000:1"
	}
	n := math.Exp(odds)
	if n >= 1000 {
		n = math.Round(n/100) * 100
	}
	return short(n) + ":1"
}

// short writes a number with three significant digits.
func short(f float64) string {
	if f >= 1000 || f <= -1000 {
		return num(math.Round(f))
	}
	return fmt.Sprintf("%.3g", f)
}

func signedShort(f float64) string {
	if f < 0 {
		return short(f)
	}
	return "+" + short(f)
}

// latestRules is the latest version of the rules.
const latestRules = 4

// Current returns the version of the rules for a new run of the plan, which is the first that decides as the latest one:
// 4 with NotWorth, 3 with a judge, else 0. See Rules.
func (p *Plan) Current() uint {
	switch {
	case p.Score == nil:
		return 0
	case p.NotWorth != nil:
		return latestRules
	case p.Score.Judge != nil:
		return 3
	}
	return 0
}

// proves reports whether the loop decides by a proof over several iterations. Plans from version 2 of the rules on do
// so if a judge gives the score. Earlier versions compare single iterations, each with the noise of the judge.
func (p *Plan) proves() bool { return p.Version >= 2 && p.Score != nil && p.Score.Judge != nil }

// lead returns by how much a score must be better than the best to become the new best.
func (p *Plan) lead(t *Tally) float64 {
	if p.proves() {
		return 0
	}
	return t.Ended.Noise
}

// judgedAgain reports whether the judge has judged the best version again, so that its score is now the mean of all
// answers about it.
func (p *Plan) judgedAgain(t *Tally, b best) bool {
	return p.proves() && t.Ended.Samples > 0 && t.Judge.Same > 0 && b.Iteration > 0 && b.Iteration == t.Judge.Since
}

// answers returns the number of the judge's answers that the last score is the mean of, at least 1.
func (t *Tally) answers() int {
	if t.Ended.Number != 0 && t.Ended.Samples == 0 { // the agent gave the score itself
		return 1
	}
	return max(1, t.Judge.Count)
}

// errorOf returns the standard error of the last score; 0 if it is unknown, or if the score is exact.
func (p *Plan) errorOf(t *Tally) float64 {
	v, _ := p.spread(t)
	return roundDecimals(math.Sqrt(v / float64(t.answers())))
}

// BestError returns the standard error of the best score, which is the mean of all answers about the best version. It
// returns 0 if the score is exact or its error is unknown.
func (p *Plan) BestError(t *Tally) float64 {
	if t.BestCount == 0 {
		return 0
	}
	v, _ := p.spread(t)
	return roundDecimals(math.Sqrt(v / float64(t.BestCount)))
}

// margin returns by how much an iteration may be worse than the best without being undone.
func (p *Plan) margin(t *Tally) float64 {
	if !p.proves() {
		return t.Ended.Noise
	}
	v, _ := p.spread(t)
	ground := p.rollbackTarget(t)
	both := v / float64(t.answers())
	if !p.compares() || ground.Iteration != t.Rival.Iteration { // otherwise both scores come from one comparison with that version
		both += v / float64(max(1, ground.Count))
	}
	return roundDecimals(undone * math.Sqrt(both))
}

// worse returns a text that says by how much the iteration is worse than the best.
func (p *Plan) worse(t *Tally) string {
	s := fmt.Sprintf("score %s is worse than %s, %s", num(*t.Score), num(*p.rollbackTarget(t).Score), p.whichBest(t))
	if m := p.margin(t); p.proves() && m > 0 {
		s += ", by more than " + short(m)
	}
	return s
}

// isSettled reports whether the improvements were too small often enough, and the course proves that the scores stand
// still.
func (p *Plan) isSettled(t *Tally) bool {
	s := p.Score
	return (s.MinDelta != nil || s.MinDeltaPercent != nil) && t.Flat >= s.patience() && p.findStandstill(t).holds()
}

// recordError writes the error and the noise of the score into the record of the iteration.
func (p *Plan) recordError(t *Tally) {
	rec := &t.Ended
	rec.Noise = t.Judge.floor()
	if !p.proves() {
		return
	}
	rec.Error = p.errorOf(t)
	if t.Judge.free() == 0 {
		rec.Noise = roundDecimals(step * rec.Error)
	}
}

// whichBest returns a text that names the best version.
func (p *Plan) whichBest(t *Tally) string {
	switch b := p.rollbackTarget(t); {
	case b.Iteration == 0:
		return "the start"
	case p.isFreshLeg(t):
		return fmt.Sprintf("the best of this leg (iteration %d)", b.Iteration)
	default:
		return fmt.Sprintf("the best so far (iteration %d)", b.Iteration)
	}
}

// bestText returns a text that names the best version and its score.
func (p *Plan) bestText(t *Tally) string {
	switch b := p.rollbackTarget(t); {
	case b.Iteration == 0:
		return "the start has " + num(*b.Score)
	case p.isFreshLeg(t):
		return fmt.Sprintf("the best of this leg is %s (iteration %d)", num(*b.Score), b.Iteration)
	default:
		return fmt.Sprintf("the best so far is %s (iteration %d)", num(*b.Score), b.Iteration)
	}
}
