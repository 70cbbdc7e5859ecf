// SPDX-License-Identifier: Apache-2.0

package loop

import "fmt"

// Truth is what a look at one condition found. The truths of a plan stand in
// the order of its conditions, each before its parts.
type Truth struct {
	Holds bool `json:"holds,omitzero"`
	// Run is for how many iterations running it has held.
	Run uint `json:"run,omitzero"`
	// Value and Threshold are the two sides of a comparison; a text is
	// given by its length only.
	Value     string `json:"value,omitzero"`
	Threshold string `json:"threshold,omitzero"`
	// Near is how close it came, from 0 to 1; 1 if it holds.
	Near float64 `json:"near,omitzero"`
	// Note says why it could not be evaluated.
	Note string `json:"note,omitzero"`
}

// looker evaluates the conditions of a plan against one state.
type looker struct {
	vals  map[string]any
	prev  []Truth // of the look before; may be shorter
	next  []Truth
	ended bool // an iteration has ended: the counts of For move
}

// look appends the truths of c and its parts. known is false if it could not
// be evaluated.
func (l *looker) look(c *Condition) (holds, known bool) {
	i := len(l.next)
	l.next = append(l.next, Truth{})
	var t Truth
	switch {
	case c.Expr != "":
		holds, known, t = l.leaf(c.Expr)
	case c.Not != nil:
		j := len(l.next)
		holds, known = l.look(c.Not)
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
	switch {
	case !holds:
		run = 0
	case l.ended:
		run++
	}
	if l.ended {
		t.Run = run
	} else if i < len(l.prev) {
		t.Run = l.prev[i].Run // between iterations nothing counts
	}
	if c.For > 1 {
		holds = holds && run >= c.For
		t.Near = float64(run) / float64(c.For)
		if !known {
			t.Near = 0
		}
	}
	if t.Holds = holds; holds {
		t.Near = 1
	} else {
		t.Near = min(t.Near, nearly)
	}
	l.next[i] = t
	return holds, known
}

// nearly is as near as something that does not hold can be.
const nearly = 0.999

// parts is three-valued: unknown unless the known parts decide.
func (l *looker) parts(cs []Condition, decides bool) (holds, known bool, near float64) {
	known, decided := true, false
	for i := range cs {
		j := len(l.next)
		h, k := l.look(&cs[i])
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

func (l *looker) leaf(src string) (holds, known bool, t Truth) {
	q, err := compile(src)
	if err != nil {
		t.Note = clip(err.Error())
		return false, false, t
	}
	holds, err = q.EvalBool(l.vals)
	if err != nil {
		t.Note = clip(err.Error())
		if _, reads := q.Reads("score"); reads && l.vals["score"] == nil {
			t.Note = "there is no score"
		}
		return false, false, t
	}
	t.Value = fmt.Sprint(holds)
	t.Threshold = "true"
	if q.compared {
		left, errL := q.sides.Left.Eval(l.vals)
		right, errR := q.sides.Right.Eval(l.vals)
		if errL == nil && errR == nil {
			t.Value, t.Threshold = brief(left), q.sides.Op+" "+brief(right)
			t.Near = nearness(left, right)
		}
	}
	return holds, true, t
}
