// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// The numbers of first and of last iterations of a loop that a tree with a bound has at least.
const (
	FirstKept = 10
	LastKept  = 20
)

// omission is what a loop keeps of the iterations that its tree left out.
type omission struct {
	left   int // how many
	usage  Usage
	failed bool // something in them
	counts counts
	upTo   int // the number of the last iteration in counts
}

// Left returns how many iterations the tree left out because of [Live.Most]. They are behind the first [FirstKept].
func (l *Loop) Left() int { return l.omission.left }

// trim takes iterations out of a tree that has too many steps.
func (l *Live) trim(s *Step) {
	if l.Most == 0 || len(l.steps) <= l.Most || s == nil || s.Loop == nil || len(s.Loop.Iterations) <= FirstKept+LastKept {
		return
	}
	its, best, p := s.Loop.Iterations, s.Loop.Best(), &s.Loop.omission
	to := len(its) - LastKept
	kept := slices.Clone(its[:FirstKept])
	for i, it := range its[:to] {
		if it.Number > p.upTo {
			p.counts.add(it)
			p.upTo = it.Number
		}
		at := session.Address(passName(s.Address, it.Number))
		switch {
		case i < FirstKept:
			continue
		case it.Record == nil || it == best || l.Keep != "" && l.Keep.Under(at):
			kept = append(kept, it)
			continue
		}
		p.left++
		p.usage.Add(it.Usage())
		p.failed = p.failed || it.Failed()
		for _, c := range it.Steps {
			l.forget(c)
		}
		if l.Drop != nil {
			l.Drop(s, it)
		}
	}
	s.Loop.Iterations = append(kept, its[to:]...)
}

// counts has what [Loop.Tally] counts of iterations that have ended.
type counts struct {
	tally loop.Tally
	noise float64
}

func (c *counts) add(it *Iteration) {
	if it.Record == nil {
		return
	}
	rec, t := *it.Record, &c.tally
	t.Iteration, t.Ended = rec.Number, rec
	if rec.Complete {
		t.Complete++
		t.LastComplete = rec.Number
	}
	if t.Score = rec.Score; rec.Score != nil {
		t.Scores = append(t.Scores, *rec.Score)
		t.Dimensions = rec.Dimensions
		if c.noise = rec.Noise; rec.Best {
			t.Best, t.BestIteration = rec.Score, rec.Number
		}
	}
	t.Active += it.Took(it.Ended)
	u := it.Usage()
	t.Usage.Calls += u.Calls
	t.Usage.InputTokens += u.InputTokens
	t.Usage.OutputTokens += u.OutputTokens
}
