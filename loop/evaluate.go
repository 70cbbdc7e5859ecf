// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"math"
	"slices"

	"github.com/refrain-dev/refrain/expr"
)

// conditions are the results of the last evaluation of StopWhen.
type conditions struct {
	// Truths has the results. Looked says that the last outcome caused the evaluation.
	Truths []conditionResult `json:"truths,omitzero"`
	Looked bool              `json:"looked,omitzero"`
	// Met is the best of the last consecutive iterations after which StopWhen held, without regard to its For; 0 if it
	// did not hold. MetScore is the score of that iteration.
	Met      int      `json:"met,omitzero"`
	MetScore *float64 `json:"met_score,omitzero"`
}

// conditionResult is the result of evaluating one condition. Tally.Truths has those of a plan in the order of its conditions, each
// condition before its parts.
type conditionResult struct {
	Holds bool `json:"holds,omitzero"`
	// Run is the number of iterations in a row in which the condition has held.
	Run uint `json:"run,omitzero"`
	// Op is the sign of a comparison of the two numbers Left and Right. They become text only when a record is made.
	Op    string  `json:"op,omitzero"`
	Left  float64 `json:"left,omitzero"`
	Right float64 `json:"right,omitzero"`
	// Value and Threshold are the two sides of any other condition, as text. For a long text they have only its length.
	Value     string `json:"value,omitzero"`
	Threshold string `json:"threshold,omitzero"`
	// Near is how close the condition is to holding, from 0 to 1; 1 if it holds.
	Near float64 `json:"near,omitzero"`
	// Note says why the condition could not be evaluated.
	Note string `json:"note,omitzero"`
}

// sides returns the two sides as text for people.
func (t *conditionResult) sides() (value, threshold string) {
	if t.Op != "" {
		return num(t.Left), t.Op + " " + num(t.Right)
	}
	return t.Value, t.Threshold
}

// evaluate evaluates StopWhen and stores the results. ended says that an iteration has just ended.
func (p *Plan) evaluate(t *Tally, o *addedOutcome, ended bool) {
	l := evaluator{view: o.scope(t), prev: t.Truths, ended: ended}
	l.evaluate(p.StopWhen)
	t.Looked = true
	if !slices.Equal(l.next, t.Truths) {
		t.Truths = l.next
	}
}

// evaluateOnce evaluates StopWhen for the stop record.
func (p *Plan) evaluateOnce(t *Tally, o *addedOutcome) {
	if p.StopWhen != nil && o.State != nil {
		p.evaluate(t, o, false)
	}
}

// evaluator evaluates the conditions of a plan against one state.
type evaluator struct {
	view  *scope
	prev  []conditionResult // results of the previous evaluation; may be shorter
	next  []conditionResult
	ended bool // an iteration has ended, so the counts for For change
}

// evaluate appends the results of c and its parts. known is false if the condition could not be evaluated.
func (l *evaluator) evaluate(c *Condition) (holds, known bool) {
	i := len(l.next)
	l.next = append(l.next, conditionResult{})
	var t conditionResult
	switch {
	case c.Expr != "":
		holds, known = l.leaf(&t, c.Expr)
	case c.Not != nil:
		j := len(l.next)
		holds, known = l.evaluate(c.Not)
		holds = !holds && known
		if known {
			t.Near = 1 - l.next[j].Near
		}
	case c.Any != nil:
		holds, known, t.Near = l.parts(c.Any, true)
	default:
		holds, known, t.Near = l.parts(c.All, false)
	}
	var run uint
	if i < len(l.prev) {
		run = l.prev[i].Run
	}
	if l.ended && !holds {
		run = 0
	} else if l.ended {
		run++
	}
	t.Run = run // in the middle of an iteration the count does not change
	if c.For > 1 {
		t.Near = 0
		if holds {
			t.Near = float64(run) / float64(c.For)
		}
		holds = holds && run >= c.For
	}
	if t.Holds = holds; holds {
		t.Near = 1
	} else {
		t.Near = min(t.Near, nearly)
	}
	l.next[i] = t
	return holds, known
}

// nearly is the largest Near of a condition that does not hold.
const nearly = 0.999

// parts evaluates the parts of Any (decides is true) or of All (decides is false) with three-valued logic. One known
// part that equals decides gives the result; otherwise the result is unknown if any part is.
func (l *evaluator) parts(cs []Condition, decides bool) (holds, known bool, near float64) {
	known, decided := true, false
	for i := range cs {
		j := len(l.next)
		h, k := l.evaluate(&cs[i])
		decided = decided || k && h == decides
		known = known && k
		if decides {
			near = max(near, l.next[j].Near)
		} else {
			near += l.next[j].Near / float64(len(cs))
		}
	}
	if decided {
		return decides, true, near
	}
	return known && !decides, known, near
}

// leaf evaluates one expression. known is false if it cannot be compiled or evaluated; t.Note then says why.
func (l *evaluator) leaf(t *conditionResult, src string) (holds, known bool) {
	q, err := compile(src)
	if err != nil {
		t.Note = truncate(err.Error())
		return false, false
	}
	v, err := q.Test(l.view)
	if err != nil {
		t.Note = truncate(err.Error())
		if _, reads := q.Reads("score"); reads && l.view.t.Score == nil {
			t.Note = "there is no score"
		}
		return false, false
	}
	t.compare(&v)
	return v.Holds, true
}

// compare stores the two sides of the comparison that an expression has made.
func (t *conditionResult) compare(v *expr.Verdict) {
	if v.Op == "" {
		t.Value, t.Threshold = "false", "true"
		if v.Holds {
			t.Value = "true"
		}
		return
	}
	l, okL := v.Left.Number()
	r, okR := v.Right.Number()
	if okL && okR {
		t.Near = closeness(l, r)
		if !math.IsInf(l, 0) && !math.IsInf(r, 0) {
			t.Op, t.Left, t.Right = v.Op, l, r
			return
		}
	}
	t.Value, t.Threshold = formatSide(v.Left), v.Op+" "+formatSide(v.Right)
}

func formatSide(s expr.Side) string {
	if text, ok := s.Text(); ok {
		return briefText(text)
	}
	return summarize(s.Value)
}
