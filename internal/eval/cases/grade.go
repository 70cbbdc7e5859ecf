// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"fmt"

	"github.com/refrain-dev/refrain/internal/eval/check"
)

// Grader has the compiled checks of a set. It is safe for concurrent use.
type Grader struct {
	pass check.Pass
	of   map[string][]scoped // by the ID of the case
}

// scoped is a check of a whole case, or of one of its turns.
type scoped struct {
	*check.Check
	turn int // -1 is the whole case
	name string
}

// Grader compiles the checks of all cases. An error names the case, and wraps a [check.Error].
func (s *Set) Grader() (*Grader, error) {
	g := &Grader{pass: s.Pass, of: make(map[string][]scoped, len(s.Cases))}
	for i := range s.Cases {
		c := &s.Cases[i]
		add := func(spec check.Spec, turn int) error {
			if spec.Judged() {
				spec.Model, spec.Samples = cmp.Or(spec.Model, s.Judge.Model), cmp.Or(spec.Samples, s.Judge.Samples)
			}
			compiled, err := check.Compile(spec)
			if err != nil {
				return fmt.Errorf("check %q of case %q: %w", spec.Label(), c.ID, err)
			}
			name := spec.Label()
			if turn >= 0 && len(c.Turns) > 1 {
				name = fmt.Sprintf("turn %d: %s", turn+1, name)
			}
			g.of[c.ID] = append(g.of[c.ID], scoped{compiled, turn, name})
			return nil
		}
		for _, spec := range s.ChecksOf(c) {
			if err := add(spec, -1); err != nil {
				return nil, err
			}
		}
		for at, t := range c.Turns {
			for _, spec := range t.Checks {
				if err := add(spec, at); err != nil {
					return nil, err
				}
			}
		}
		unique(g.of[c.ID])
	}
	return g, nil
}

// unique numbers the checks of a case that have the same name.
func unique(checks []scoped) {
	count := make(map[string]int)
	for i, c := range checks {
		if count[c.name]++; count[c.name] > 1 {
			checks[i].name = fmt.Sprintf("%s #%d", c.name, count[c.name])
		}
	}
}

// Asks returns the questions that the checks of a case ask a judge: about each run, or, if pairs is set, about each pair of runs of
// two versions. Their messages are empty.
func (g *Grader) Asks(c *check.Case, pairs bool) (all []*check.Question) {
	for _, k := range g.of[c.ID] {
		of := c
		if k.turn >= 0 {
			of = &(&check.Subject{Case: *c}).Turn(k.turn).Case
		}
		if spec := k.Spec(); (spec.Kind == check.Pairwise) == pairs {
			all = append(all, spec.Asks(of)...)
		}
	}
	return all
}

// Grade runs the checks of the subject's case: those that compare it with a rival if it has one, and else the others. It fails only
// if ctx ends, with its cause.
func (g *Grader) Grade(ctx context.Context, s *check.Subject) (check.Grade, error) {
	var results []check.Result
	for _, c := range g.of[s.Case.ID] {
		if (c.Spec().Kind == check.Pairwise) != (s.Rival != nil) {
			continue
		}
		of := s
		if c.turn >= 0 {
			of = s.Turn(c.turn)
		}
		r := c.Run(ctx, of)
		r.Name = c.name
		results = append(results, r)
	}
	if ctx.Err() != nil {
		return check.Grade{}, context.Cause(ctx)
	}
	return check.Combine(results, g.pass), nil
}
