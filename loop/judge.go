// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"math"
	"slices"
)

// Judge runs a scoring step more than once on the same candidate. The score is the mean. The
// spread gives the error of a score, which the rules of convergence and of regressions take into account.
type Judge struct {
	// Step is the name of the scoring step. The score is read after each of its runs.
	Step string `json:"step"`
	// Samples is the number of runs in an iteration, at most 32. 0 means 1.
	Samples uint `json:"samples,omitzero"`
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

// samples is how often the step is run as a judge; 0 if it is none.
func (p *Plan) samples(step int) int {
	if p.Score == nil || p.Score.Judge == nil || step < 0 || step >= len(p.Steps) ||
		p.Score.Judge.Step != p.Steps[step].Name {
		return 0
	}
	return int(max(1, p.Score.Judge.Samples))
}

// sample takes down what a judge has said, and reports whether it is to be
// asked again. A cached answer would be the same again.
func (p *Plan) sample(t *Tally, o *incoming) (again bool) {
	n := p.samples(o.Step)
	if n == 0 {
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
	if err != nil {
		t.ScoreNote = clip(err.Error())
	} else {
		t.Judge.Samples = append(slices.Clone(t.Judge.Samples), got.score)
		t.Dimensions = meanOf(t.Dimensions, got.dims, len(t.Judge.Samples))
	}
	return t.Judge.Runs < n && !o.Cached
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
