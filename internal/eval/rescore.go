// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Score scores the case-runs of an eval with other checks, from their logs, and returns the new eval. Nothing runs but
// judges: before is called with the most that they use, and their programs, and may refuse it. It fails for a
// case that was run with another input, and for a run that was removed.
func Score(ctx context.Context, cfg Config, old *Record, set *cases.Set, file string,
	before func(Worst, []*program.Program) error) (*Record, error) {
	e := &Eval{Config: cfg, Record: &Record{Plan: Plan{File: file, Hash: set.Hash(), Set: *set, Scores: old.ID, Failed: old.Failed}}}
	for _, v := range old.Versions {
		if p, err := program.Decode(mark.RunStarted{Program: v.Program}); err == nil {
			if def, err := p.DefinitionFor(&cfg.Code); err == nil {
				e.prices = append(e.prices, def.Prices)
			}
		}
		if v.Program = nil; old.Scores == "" { // else it names the eval that has run
			v.Eval, v.Began = old.ID, old.Began
		}
		e.Versions = append(e.Versions, v)
	}
	if err := e.prepare(); err != nil {
		return nil, err
	}
	byID := make(map[string]*check.Case)
	for i := range set.Cases {
		byID[set.Cases[i].ID] = &set.Cases[i]
	}
	for i := range old.Set.Cases {
		was := &old.Set.Cases[i]
		if c := byID[was.ID]; c != nil && inputOf(c) != inputOf(was) {
			return nil, fmt.Errorf("case %q has another input, state or answers than in eval %s; run it with refrain eval", c.ID, old.ID)
		}
	}
	set = new(*set)
	set.Cases = slices.DeleteFunc(slices.Clone(set.Cases), func(c check.Case) bool {
		return !slices.ContainsFunc(old.Scored, func(s Scored) bool { return s.Case == c.ID })
	})
	set.Repeat = old.Set.Repeat // that of the runs: the report says how many cases it takes with as many
	for i := range set.Cases {
		set.Cases[i].Repeat = repeatIn(&old.Set, set.Cases[i].ID)
	}
	e.Set = *set
	if err := e.beforeScore(old, byID, before); err != nil {
		return nil, err
	}
	var scored []Scored
	for _, s := range old.Scored {
		c := byID[s.Case]
		if c == nil {
			continue
		}
		view, err := e.session(ctx, s.Run)
		if err != nil {
			return nil, err
		}
		if view == nil && s.Error == "" {
			return nil, fmt.Errorf("run %s of case %q was removed, so it cannot be scored again", s.Run, s.Case)
		}
		eval, _, _ := strings.Cut(s.Run, ".")
		again, err := e.score(ctx, c, view, s.Error, e.panel(eval, s.Side, s.Case, s.N))
		if err != nil {
			return nil, err
		}
		again.Side, again.N, again.Run = s.Side, s.N, s.Run
		scored = append(scored, *again)
	}
	if len(scored) == 0 {
		return nil, fmt.Errorf("eval %s has run none of these cases", old.ID)
	}
	e.Scored = scored
	var pairs []Compared
	for _, j := range e.pairs() {
		a, b := e.pair(j.of.ID, j.n)
		one, err := e.judgePair(ctx, j.of, a, b, old.ID)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, *one)
	}
	made, err := create(ctx, &cfg, &e.Plan, scored, pairs, &Ended{Reason: EndedComplete}, "", "")
	if err != nil {
		return nil, err
	}
	return recordOf(session.ViewOf(made.Session))
}

// beforeScore calls before if checks ask judges.
func (e *Eval) beforeScore(old *Record, byID map[string]*check.Case, before func(Worst, []*program.Program) error) error {
	var w Worst
	for _, s := range old.Scored {
		c := byID[s.Case]
		if c == nil || s.Error != "" {
			continue
		}
		asks := e.grader.Asks(c, false)
		if s.Side == SideA && e.comparesPairs(c) {
			asks = append(asks, e.grader.Asks(c, true)...)
		}
		cost, err := w.addVotes(e, asks)
		if err != nil {
			return err
		}
		w.Total += cost
	}
	if w.Votes == 0 {
		return nil
	}
	judges, err := e.Judges()
	if err != nil {
		return err
	}
	return before(w, judges)
}

// repeatIn returns how often a set runs a case if that is not what the set says of all cases; else 0.
func repeatIn(set *cases.Set, id string) int {
	i := slices.IndexFunc(set.Cases, func(c check.Case) bool { return c.ID == id })
	if i < 0 {
		return 0
	}
	return set.Cases[i].Repeat
}

// inputOf returns what a case gives its runs, as a text to compare.
func inputOf(c *check.Case) string {
	one := check.Case{Values: c.Values, State: c.State, Answers: c.Answers}
	for _, t := range c.Turns {
		one.Turns = append(one.Turns, check.Turn{Input: t.Input})
	}
	text, err := canonical.AppendJSON(nil, one)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
