// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
)

// Score scores the case-runs of an eval with other checks, from their logs, and returns the new eval. Nothing runs. It fails for a
// case that was run with another input, and for a run that was removed.
func Score(ctx context.Context, cfg Config, old *Record, set *cases.Set, file string) (*Record, error) {
	e := &Eval{Config: cfg, Record: &Record{Plan: Plan{File: file, Hash: set.Hash(), Set: *set, Scores: old.ID, Failed: old.Failed}}}
	for _, v := range old.Versions {
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
	e.Set = *set
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
		again, err := e.score(ctx, c, view, s.Error)
		if err != nil {
			return nil, err
		}
		again.Side, again.N, again.Run = s.Side, s.N, s.Run
		scored = append(scored, *again)
	}
	if len(scored) == 0 {
		return nil, fmt.Errorf("eval %s has run none of these cases", old.ID)
	}
	made, err := create(ctx, cfg.Service, cfg.AppName, cfg.UserID, &e.Plan, scored, &Ended{Reason: EndedComplete}, "", 0)
	if err != nil {
		return nil, err
	}
	return recordOf(session.ViewOf(made.Session))
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
