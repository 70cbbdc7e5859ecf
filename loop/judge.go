// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Judge runs a scoring step more than once on the same candidate. The score is the mean. The
// spread gives the error of a score, which the rules of convergence and of regressions take into account.
type Judge struct {
	// Step is the name of the scoring step. The score is read after each of its runs.
	Step string `json:"step"`
	// Samples is the number of runs in an iteration, at most 32. 0 means 1.
	Samples uint `json:"samples,omitzero"`
	// Max is the largest number of runs in an iteration, at most 32. After Samples runs, the step runs again until it
	// is clear whether the score reaches its Target: it is above the target with a certainty of 95 %, or below it by
	// more than one standard error. 0 means Samples.
	Max uint `json:"max,omitzero"`
	// Bound says that the step reads data that exists only in its own iteration, so it cannot judge the best version
	// again after a rollback.
	Bound bool `json:"bound,omitzero"`
	// Compare makes the step compare each version with another one instead of giving it a mark. "" means that it gives
	// marks.
	Compare Comparison `json:"compare,omitzero"`
}

// Comparison says with which version a judge compares each version. The judge is asked an even number of times, and
// every second time the two versions change places. It answers with a number from -2 to 2, which says by how much the
// first of the two is better. The score of a version is the score of the other version plus the mean of the answers.
// The first version has the score 0; the judge runs once for it, and that answer does not count.
type Comparison string

// CompareBest compares each version with the reference version. At first this is the first version. A new best version
// becomes the reference if its score is higher than that of the reference by more than 1.5 standard errors.
const CompareBest Comparison = "best"

// mostBetter is the largest answer of a judge that compares.
const mostBetter = 2

// rival is the reference version with which a judge compares the others.
type rival struct {
	Score     *float64 `json:"score,omitzero"` // nil if there is none yet
	Iteration int      `json:"iteration,omitzero"`
	Ahead     int      `json:"ahead,omitzero"`      // number of iterations from it to the current state
	BestAhead int      `json:"best_ahead,omitzero"` // number of iterations from it to the best version
}

// compares reports whether the judge compares versions.
func (p *Plan) compares() bool { return p.Score != nil && p.Score.compares() }

func (s *Score) compares() bool { return s.Judge != nil && s.Judge.Compare != "" }

// scoreOfAnswer converts an answer of the judge to a score. If the judge compares versions, it adds the answer to the score of
// the reference version.
func (p *Plan) scoreOfAnswer(t *Tally, answer float64) (float64, error) {
	if !p.compares() {
		return answer, nil
	}
	if math.Abs(answer) > mostBetter {
		return 0, fmt.Errorf("the judge %s compares two versions and answers from -2 to 2, not %s", truncate(p.Score.Judge.Step), num(answer))
	}
	switch other := t.Rival.Score; {
	case other == nil:
		return 0, nil
	case t.Judge.Runs%2 == 0: // swapped
		return roundDecimals(*other - answer), nil
	default:
		return roundDecimals(*other + answer), nil
	}
}

// updateRival makes the iteration that has just ended, or the start, the reference version for later comparisons, if it
// is better than the current reference by more than chance. best says that it is the best version.
func (p *Plan) updateRival(t *Tally, best bool) {
	if !p.compares() || !best {
		return
	}
	t.Rival.BestAhead = t.Rival.Ahead
	if other := t.Rival.Score; other == nil || *t.Best-*other > undone*p.errorOf(t) {
		t.Rival = rival{Score: t.Best, Iteration: t.BestIteration}
	}
}

// judgement is what a tally knows from the judge.
type judgement struct {
	// Judge has the samples and their statistics.
	Judge judgeTally `json:"judge,omitzero"`
	// Rival is the version that the judge compares others with; zero if the judge gives marks.
	Rival rival `json:"rival,omitzero"`
	// Rejudge says that the judge must score the best version once more, because a rollback has restored its state.
	// Rejudged is its answer, until the next iteration ends.
	Rejudge  bool      `json:"rejudge,omitzero"`
	Rejudged *Rejudged `json:"rejudged,omitzero"`
}

// judgeTally is the state of the judge: its samples so far and their statistics.
type judgeTally struct {
	// Runs is how often the judge has run in the running iteration, and Samples are its answers.
	Runs    int       `json:"runs,omitzero"`
	Samples []float64 `json:"samples,omitzero"`
	// Print is the fingerprint of what the steps have produced since the judge last ran. Judged is the value of Print
	// when the judge began.
	Print  uint64 `json:"print,omitzero"`
	Judged uint64 `json:"judged,omitzero"`
	// Candidate is the fingerprint of the version that was judged last; 0 means unknown. Count, Mean and Squares (the
	// sum of squared distances from Mean) cover all samples of this version, including those of earlier iterations that
	// judged the same version.
	Candidate uint64  `json:"candidate,omitzero"`
	Count     int     `json:"count,omitzero"`
	Mean      float64 `json:"mean,omitzero"`
	Squares   float64 `json:"squares,omitzero"`
	// PastSquares and PastFreedom are the sums of Squares and of Count-1 over the earlier versions.
	PastSquares float64 `json:"past_squares,omitzero"`
	PastFreedom int     `json:"past_freedom,omitzero"`
	// Same is the number of iterations in a row in which the same version was judged again. Since is the iteration that
	// judged it first.
	Same  int `json:"same,omitzero"`
	Since int `json:"since,omitzero"`
}

// Most returns the largest number of runs of the judge in an iteration, at least 1.
func (j *Judge) Most() uint { return max(1, j.Samples, j.Max) }

// Range returns the number of runs in an iteration as a definition writes it, such as 3, or 3..12.
func (j *Judge) Range() string {
	if j.Max == 0 || j.Max == max(1, j.Samples) {
		return strconv.FormatUint(uint64(max(1, j.Samples)), 10)
	}
	return fmt.Sprintf("%d..%d", max(1, j.Samples), j.Max)
}

// judges reports whether the step is the judge.
func (p *Plan) judges(step int) bool {
	return p.Score != nil && p.Score.Judge != nil && step >= 0 && step < len(p.Steps) &&
		p.Score.Judge.Step == p.Steps[step].Name
}

// sample records an answer of the judge, and reports whether the judge must be asked again. It is not asked again after
// a cached answer, because the next one would be the same.
func (p *Plan) sample(t *Tally, o *addedOutcome) (again bool) {
	if !p.judges(o.Step) {
		return false
	}
	if t.Judge.Runs == 0 {
		t.Judge.Samples, t.Dimensions = nil, nil
		t.Judge.Judged, t.Judge.Print = t.Judge.Print, 0
	}
	t.Judge.Runs++
	var got reading
	err := p.Score.unwrittenError(p.Score.Judge.Step)
	if p.Score.writtenBy(o.Wrote) {
		got, err = p.Score.read(t, o)
	}
	if err == nil {
		got.score, err = p.scoreOfAnswer(t, got.score)
	}
	if err != nil {
		t.ScoreNote = truncate(err.Error())
	} else {
		t.Judge.Samples = append(slices.Clone(t.Judge.Samples), got.score)
		t.Dimensions = meanOf(t.Dimensions, got.dims, len(t.Judge.Samples))
	}
	j, runs := p.Score.Judge, uint(t.Judge.Runs)
	if p.compares() && t.Rival.Score == nil { // there is nothing to compare with
		return false
	}
	return !o.Cached && (runs < max(1, j.Samples) || runs < j.Most() && p.Score.isUndecided(t))
}

// meanOf adds the dimensions of the nth sample to the mean of the samples before. It leaves out a dimension that one of
// them lacks.
func meanOf(mean, dims []Dimension, n int) []Dimension {
	if n == 1 {
		return dims
	}
	var next []Dimension
	for _, m := range mean {
		for _, d := range dims {
			if d.Name == m.Name {
				next = append(next, Dimension{m.Name, m.Value + (d.Value-m.Value)/float64(n)})
			}
		}
	}
	return next
}

// pool adds the samples of an iteration to the statistics of the judged version, and returns the mean. If the version
// differs from the one judged before, or is unknown, the statistics begin again.
func (j *judgeTally) pool(iteration int) float64 {
	j.Same++
	if j.Judged <= unknownPrint || j.Judged != j.Candidate {
		j.PastSquares += j.Squares
		j.PastFreedom += max(0, j.Count-1)
		j.Count, j.Mean, j.Squares = 0, 0, 0
		j.Same, j.Since = 0, iteration
	}
	j.Candidate = j.Judged
	for _, x := range j.Samples {
		j.Count++
		d := x - j.Mean
		j.Mean += d / float64(j.Count)
		j.Squares += d * (x - j.Mean)
	}
	return roundDecimals(j.Mean)
}

// floor returns by how much two scores, each the mean of as many samples as the last one, differ by chance: twice the
// standard error of their difference. It returns 0 if the variance is unknown.
func (j *judgeTally) floor() float64 {
	free := j.free()
	if free == 0 {
		return 0
	}
	variance := (j.PastSquares + j.Squares) / float64(free)
	return roundDecimals(2 * math.Sqrt(2*variance/float64(max(1, len(j.Samples)))))
}

// The constants of the decision whether a score reaches its target, for a judge with a range of samples.
const (
	sure     = 1.645 // the target is reached if the score is this many standard errors above it (95 %)
	missed   = 1.0   // the target is missed if the score is this many standard errors below it
	repeated = 3     // number of repeated answers that a decision needs
)

// hasRange reports whether the judge is asked again until it is clear whether the score reaches the target.
func (s *Score) hasRange() bool {
	return s.Judge != nil && s.Judge.Max > max(1, s.Judge.Samples) && s.Target != nil
}

// answerError returns the standard error of the mean of all answers about the version that was judged last. It returns
// 0 if the answers agree, or if too few answers have been repeated to know it.
func (j *judgeTally) answerError() float64 {
	if j.free() < repeated {
		return 0
	}
	return math.Sqrt(j.variance() / float64(j.Count))
}

// isUndecided reports whether it is still unclear from the answers whether the score reaches the target.
func (s *Score) isUndecided(t *Tally) bool {
	if !s.hasRange() || len(t.Judge.Samples) == 0 {
		return false
	}
	j := t.Judge
	over := s.gain(*s.Target, j.pool(t.Iteration))
	if j.free() < repeated {
		return true
	}
	e := j.answerError()
	return over < sure*e && over+missed*e >= 0
}

// isDoubtful reports whether the score does not reach the target with a certainty of 95 %, in a plan whose judge has a
// range of samples.
func (s *Score) isDoubtful(t *Tally) bool {
	return s.hasRange() && (t.Ended.Number == 0 || t.Ended.Samples > 0) && s.gain(*s.Target, *t.Score) < sure*t.Judge.answerError()
}

// isReached reports whether the score and its dimensions are at their targets.
func (s *Score) isReached(t *Tally) bool {
	if s.Target == nil && s.DimensionTarget == nil || t.Score == nil {
		return false
	}
	if s.Target != nil && (s.better(*s.Target, *t.Score) || s.isDoubtful(t)) {
		return false
	}
	return s.DimensionTarget == nil || s.weakest(t.Dimensions) == nil && len(t.Dimensions) > 0
}

// targetText returns a text about the target that the loop has reached.
func (p *Plan) targetText(t *Tally) string {
	var parts []string
	s := p.Score
	if s.Target != nil {
		text := fmt.Sprintf("Score %s %s %s", num(*t.Score), s.sign(), num(*s.Target))
		if _, exact := p.spread(t); !exact && t.Ended.Samples > 0 {
			text += fmt.Sprintf(" (%s, %s)", count(t.answers(), "answer"), p.chanceText(t))
		}
		parts = append(parts, text)
	}
	if s.DimensionTarget != nil {
		parts = append(parts, fmt.Sprintf("every dimension %s %s", s.sign(), num(*s.DimensionTarget)))
	}
	return strings.Join(parts, ", ")
}

// chance returns the probability that the true score of the iteration reaches the target, and the standard error of the
// score. Both are 0 if the error is unknown.
func (p *Plan) chance(t *Tally) (share, e float64) {
	if e = p.errorOf(t); e > 0 {
		share = math.Erfc(-p.Score.gain(*p.Score.Target, *t.Score)/e/math.Sqrt2) / 2
	}
	return share, e
}

// chanceText returns a text that says how sure it is that the score reaches the target.
func (p *Plan) chanceText(t *Tally) string {
	share, e := p.chance(t)
	if e == 0 {
		return "error unknown"
	}
	n, of := brief.Odds(share)
	return fmt.Sprintf("%s: %d in %d", strings.TrimSpace(brief.OffBy(e)), n, of)
}
