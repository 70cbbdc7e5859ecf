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
	// Max is the largest number of runs in an iteration, at most 32: after Samples of them the step runs
	// again until it is clear whether the score's Target is reached, which needs 95 %. 0 means Samples.
	Max uint `json:"max,omitzero"`
	// Bound says that the step reads what only its iteration has, so that it cannot judge the best again after a
	// rollback.
	Bound bool `json:"bound,omitzero"`
	// Compare makes the step compare each version with another one, in place of marking it. "" means that it marks.
	Compare Comparison `json:"compare,omitzero"`
}

// Comparison is the version with which a judge compares each version. It is asked an even number of times, every second time
// with the places of the two swapped, and answers with a number from -2 to 2: by how much the first of them is better. The
// score of a version is its place in the chain: the score of the other version plus the mean of the answers. The first
// version has the score 0, for which the judge runs once, and its answer does not count.
type Comparison string

// CompareBest compares with the best version at the time at which it was proved to be better than the one that was compared
// with until then: by 1.5 standard errors.
const CompareBest Comparison = "best"

// mostBetter is the largest answer of a comparison.
const mostBetter = 2

// rival is the version that a judge compares others with.
type rival struct {
	Score     *float64 `json:"score,omitzero"` // nil if there is none yet
	Iteration int      `json:"iteration,omitzero"`
	Ahead     int      `json:"ahead,omitzero"`      // iterations from it to the state
	BestAhead int      `json:"best_ahead,omitzero"` // iterations from it to the best
}

// compares reports whether the judge compares versions.
func (p *Plan) compares() bool { return p.Score != nil && p.Score.compares() }

func (s *Score) compares() bool { return s.Judge != nil && s.Judge.Compare != "" }

// placed makes an answer of the judge a score: if it compares versions, a place in the chain.
func (p *Plan) placed(t *Tally, answer float64) (float64, error) {
	if !p.compares() {
		return answer, nil
	}
	if math.Abs(answer) > mostBetter {
		return 0, fmt.Errorf("the judge %s compares two versions and answers from -2 to 2, not %s", clip(p.Score.Judge.Step), num(answer))
	}
	switch other := t.Rival.Score; {
	case other == nil:
		return 0, nil
	case t.Judge.Runs%2 == 0: // swapped
		return tidy(*other - answer), nil
	default:
		return tidy(*other + answer), nil
	}
}

// challenge makes the iteration that has just ended, or the start, the version with which later ones are compared, if it is better
// than that by more than chance. best says that it is the best.
func (p *Plan) challenge(t *Tally, best bool) {
	if !p.compares() || !best {
		return
	}
	t.Rival.BestAhead = t.Rival.Ahead
	if other := t.Rival.Score; other == nil || *t.Best-*other > undone*p.errorOf(t) {
		t.Rival = rival{Score: t.Best, Iteration: t.BestIteration}
	}
}

// judgeTally is what the samples of a judge have shown so far.
type judgeTally struct {
	// Runs is how often the judge has run for the iteration under way, Samples
	// what it said.
	Runs    int       `json:"runs,omitzero"`
	Samples []float64 `json:"samples,omitzero"`
	// Print stands for what was produced since the judge ran last, Judged for
	// what had been when it began.
	Print  uint64 `json:"print,omitzero"`
	Judged uint64 `json:"judged,omitzero"`
	// Candidate stands for what was judged last; 0 if that is unknown. Count,
	// Mean and Squares (the sum of squared distances from it) are of all its
	// samples, those of earlier iterations that judged the same included.
	Candidate uint64  `json:"candidate,omitzero"`
	Count     int     `json:"count,omitzero"`
	Mean      float64 `json:"mean,omitzero"`
	Squares   float64 `json:"squares,omitzero"`
	// PastSquares and PastFreedom are of the candidates before, within each.
	PastSquares float64 `json:"past_squares,omitzero"`
	PastFreedom int     `json:"past_freedom,omitzero"`
	// Same is in how many iterations running the candidate was judged again, Since the iteration that judged it first.
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

// sample takes down what a judge has said, and reports whether it is to be
// asked again. A cached answer would be the same again.
func (p *Plan) sample(t *Tally, o *incoming) (again bool) {
	if !p.judges(o.Step) {
		return false
	}
	if t.Judge.Runs == 0 {
		t.Judge.Samples, t.Dimensions = nil, nil
		t.Judge.Judged, t.Judge.Print = t.Judge.Print, 0
	}
	t.Judge.Runs++
	var got reading
	err := p.Score.unwritten(p.Score.Judge.Step)
	if p.Score.writtenBy(o.Wrote) {
		got, err = p.Score.read(t, o)
	}
	if err == nil {
		got.score, err = p.placed(t, got.score)
	}
	if err != nil {
		t.ScoreNote = clip(err.Error())
	} else {
		t.Judge.Samples = append(slices.Clone(t.Judge.Samples), got.score)
		t.Dimensions = meanOf(t.Dimensions, got.dims, len(t.Judge.Samples))
	}
	j, runs := p.Score.Judge, uint(t.Judge.Runs)
	if p.compares() && t.Rival.Score == nil { // there is nothing to compare with
		return false
	}
	return !o.Cached && (runs < max(1, j.Samples) || runs < j.Most() && p.Score.undecided(t))
}

// meanOf adds the nth sample's dimensions to the mean of those before. A
// dimension that a sample lacks is left out.
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

// pool ends the judging of an iteration: its samples join those of the same
// candidate, if that was judged just before. The result is the score.
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
	return tidy(j.Mean)
}

// noise is how much two means of n samples differ by chance: twice the standard
// error of their difference. 0 if nothing is known.
func (j *judgeTally) noise(n int) float64 {
	free := j.free()
	if free == 0 || n == 0 {
		return 0
	}
	variance := (j.PastSquares + j.Squares) / float64(free)
	return tidy(2 * math.Sqrt(2*variance/float64(n)))
}

// floor is the noise of an iteration as far as it is known.
func (j *judgeTally) floor() float64 { return j.noise(max(1, len(j.Samples))) }

// The constants of a target that a judge with a range of samples decides about.
const (
	sure     = 1.645 // standard errors above the target: 95 %
	missed   = 1.0   // standard errors below it
	repeated = 3     // repeated answers before anything is decided
)

// ranges reports whether the judge is asked until it is clear whether the target is reached.
func (s *Score) ranges() bool {
	return s.Judge != nil && s.Judge.Max > max(1, s.Judge.Samples) && s.Target != nil
}

// answerError is the standard error of the mean of all answers about the version judged last; 0 if they
// agree, or if too few answers have been repeated to know it.
func (j *judgeTally) answerError() float64 {
	if j.free() < repeated {
		return 0
	}
	return math.Sqrt(j.variance() / float64(j.Count))
}

// undecided reports whether the answers so far do not say whether the target is reached.
func (s *Score) undecided(t *Tally) bool {
	if !s.ranges() || len(t.Judge.Samples) == 0 {
		return false
	}
	j := t.Judge
	over := s.gain(*s.Target, j.pool(t.Iteration))
	if j.free() < repeated {
		return true
	}
	e := j.answerError()
	return over < sure*e && over+e >= 0
}

// doubts reports whether the score does not reach the target for sure, although a range of samples asks for that.
func (s *Score) doubts(t *Tally) bool {
	return s.ranges() && (t.Ended.Number == 0 || t.Ended.Samples > 0) && s.gain(*s.Target, *t.Score) < sure*t.Judge.answerError()
}

// reached reports whether the score and its dimensions are at their targets.
func (s *Score) reached(t *Tally) bool {
	if s.Target == nil && s.DimensionTarget == nil || t.Score == nil {
		return false
	}
	if s.Target != nil && (s.better(*s.Target, *t.Score) || s.doubts(t)) {
		return false
	}
	return s.DimensionTarget == nil || s.weakest(t.Dimensions) == nil && len(t.Dimensions) > 0
}

// attained words a target that is reached.
func (p *Plan) attained(t *Tally) string {
	var parts []string
	s := p.Score
	if s.Target != nil {
		text := fmt.Sprintf("Score %s %s %s", num(*t.Score), s.sign(), num(*s.Target))
		if _, exact := p.spread(t); !exact && t.Ended.Samples > 0 {
			text += fmt.Sprintf(" (%s, %s)", count(t.answers(), "answer"), p.chanceWords(t))
		}
		parts = append(parts, text)
	}
	if s.DimensionTarget != nil {
		parts = append(parts, fmt.Sprintf("every dimension %s %s", s.sign(), num(*s.DimensionTarget)))
	}
	return strings.Join(parts, ", ")
}

// chance is the share of cases in which the truth behind the score of the iteration is at the target, and the error of the score; 0
// if that is unknown.
func (p *Plan) chance(t *Tally) (share, e float64) {
	if e = p.errorOf(t); e > 0 {
		share = math.Erfc(-p.Score.gain(*p.Score.Target, *t.Score)/e/math.Sqrt2) / 2
	}
	return share, e
}

// chanceWords says how sure it is that the score is at the target.
func (p *Plan) chanceWords(t *Tally) string {
	share, e := p.chance(t)
	if e == 0 {
		return "error unknown"
	}
	n, of := brief.Odds(share)
	return fmt.Sprintf("%s: %d in %d", strings.TrimSpace(brief.OffBy(e)), n, of)
}
