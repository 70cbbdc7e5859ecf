// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"context"
	"fmt"

	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/eval/report"
)

// Compared is what judges say about the runs of one case, with the same number, of both versions.
type Compared struct {
	Case string `json:"case"`
	N    int    `json:"n"`
	// Results are those of version A. The values of version B are 1 minus them.
	Results []check.Result `json:"results"`
	Judges  *Use           `json:"judges,omitzero"`
	// Error says why a judge has not answered. Both case-runs are then errors.
	Error string `json:"error,omitzero"`
}

// pair returns the results of both versions for one number of a case if both can be compared, and were not compared yet.
func (r *Record) pair(id string, n int) (a, b *Scored) {
	for i := range r.Pairs {
		if r.Pairs[i].Case == id && r.Pairs[i].N == n {
			return nil, nil
		}
	}
	for i := range r.Scored {
		if s := &r.Scored[i]; s.Case == id && s.N == n && s.Error == "" {
			if s.Side == SideA {
				a = s
			} else {
				b = s
			}
		}
	}
	if a == nil || b == nil {
		return nil, nil
	}
	return a, b
}

// comparesPairs reports whether a check of the case compares both versions.
func (e *Eval) comparesPairs(c *check.Case) bool {
	return len(e.Versions) > 1 && len(e.grader.Asks(c, true)) > 0
}

// pairs returns the pairs of case-runs that are over and not compared.
func (e *Eval) pairs() (left []*job) {
	for i := range e.Set.Cases {
		c := &e.Set.Cases[i]
		for n := range e.repeats(c) {
			if a, _ := e.pair(c.ID, n+1); a != nil && e.comparesPairs(c) {
				left = append(left, &job{of: c, n: n + 1, compares: true})
			}
		}
	}
	return left
}

// compare asks judges about the two runs of a case with one number, and records what they say.
func (e *Eval) compare(ctx context.Context, c *check.Case, n int) error {
	e.mu.Lock()
	a, b := e.pair(c.ID, n)
	e.mu.Unlock()
	done, err := e.judgePair(ctx, c, a, b, e.ID)
	if err != nil {
		return err
	}
	return e.append(markCompared, done, nil, func() { e.Pairs = append(e.Pairs, *done) })
}

// judgePair asks judges about two runs of a case. The IDs of the judges begin with that of an eval.
func (e *Eval) judgePair(ctx context.Context, c *check.Case, a, b *Scored, eval string) (*Compared, error) {
	var subjects [2]*check.Subject
	for i, id := range []string{a.Run, b.Run} {
		view, err := e.session(ctx, id)
		if err != nil {
			return nil, err
		}
		if view == nil {
			return nil, fmt.Errorf("run %s of case %q was removed, so it cannot be compared", id, c.ID)
		}
		if subjects[i], err = subjectOf(c, view); err != nil {
			return nil, err
		}
	}
	p := e.panel(eval, SideA+SideB, c.ID, a.N)
	subjects[0].Rival, subjects[0].Ask = subjects[1], p.ask
	grade, err := e.grader.Grade(ctx, subjects[0])
	why, fails := p.why()
	if err == nil {
		err = fails
	}
	return &Compared{Case: c.ID, N: a.N, Results: grade.Results, Judges: p.use, Error: why}, err
}

// addPair adds to a case-run what judges say about it and that of the other version. Their cost is that of version A.
func (r *Record) addPair(run *report.Run, s *Scored) {
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.Case != s.Case || p.N != s.N {
			continue
		}
		if s.Side == SideA && p.Judges != nil && p.Judges.Cost != nil {
			cost := *p.Judges.Cost
			if run.Judges != nil {
				cost += *run.Judges
			}
			run.Judges = &cost
		}
		if p.Error != "" {
			run.Error, run.Passed, run.Score = cmp.Or(run.Error, p.Error), nil, nil
		}
		for _, res := range p.Results {
			c := checkOf(&res)
			if s.Side == SideB && c.Value != nil {
				c.Value, c.Reason = new(1-*c.Value), "see version A"
				c.Votes, c.Split = 0, false
			}
			run.Checks = append(run.Checks, c)
		}
	}
}
