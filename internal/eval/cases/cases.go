// SPDX-License-Identifier: Apache-2.0

// Package cases reads the cases of an evaluation: what an agent is asked, and what is expected of it. A file is in
// YAML, CSV or JSON Lines, or in one of the forms of Google's ADK.
//
//	set, err := cases.Open("cases.yaml")
//	if err != nil {
//		return err // definition.Problems, with positions
//	}
//	grader, err := set.Grader()
//	...
//	grade, err := grader.Grade(ctx, subject)
//
// Nothing of a case is executed. Files that a file names are inside its folder.
package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/values/canonical"
)

// Case, Turn and Call are the parts of a set; see package check.
type (
	Case = check.Case
	Turn = check.Turn
	Call = check.Call
)

// The defaults of the fields of a set.
const (
	DefaultRepeat   = 3
	DefaultParallel = 4
	DefaultSeed     = 1
)

// Set is what a file of cases says. Read fills in the defaults.
type Set struct {
	// Name is the field "name", or the name of the file without its ending.
	Name string `json:"name"`
	// Cases are in the order of the file, at least one. Their IDs differ.
	Cases []Case `json:"cases"`
	// Checks are for every case. nil stands for the default: rouge1 and calls where there is a reference, else completed;
	// see [Set.ChecksOf].
	Checks []check.Spec `json:"checks,omitzero"`
	// Pass says when a case-run passes; the zero value asks for all checks.
	Pass check.Pass `json:"pass,omitzero"`
	// Decide is what two versions are compared by: passed, score, cost, seconds, or the name of a check.
	Decide string `json:"decide"`
	// Repeat is how often each case is run, and Parallel how many case-runs work at a time.
	Repeat   int `json:"repeat"`
	Parallel int `json:"parallel"`
	// Seed is the seed of every choice by chance.
	Seed uint64 `json:"seed"`
	// Margin is the difference up to which two versions are called the same, below 1; 0 means that they are never called so.
	Margin float64 `json:"margin,omitzero"`
	// Budget limits the whole evaluation.
	Budget budget.Limits `json:"budget,omitzero"`
	// Judge is who judges, for checks that do not say so themselves.
	Judge Judge `json:"judge,omitzero"`
	// Timeout limits each case-run; 0 means the limits of the definition alone.
	Timeout time.Duration `json:"timeout,omitzero"`
	// Replace has, by the name of a step, the outcome that stands in for the step. The step does not run.
	Replace map[string]any `json:"replace,omitempty"`
	// ADK is the ID of the set in a file of ADK's forms, for its results; empty for other files.
	ADK string `json:"adk,omitzero"`
}

// Judge is a model that judges.
type Judge struct {
	// Model is its name as provider/name, and Samples how often it votes on a statement; 0 is 3 times, and 4 times on two answers.
	Model   string `json:"model,omitzero"`
	Samples int    `json:"samples,omitzero"`
}

// JudgeBy makes a model the judge of all checks.
func (s *Set) JudgeBy(model string) {
	s.Judge.Model = model
	clear := func(specs []check.Spec) []check.Spec {
		specs = slices.Clone(specs)
		for i := range specs {
			specs[i].Model = ""
		}
		return specs
	}
	s.Checks, s.Cases = clear(s.Checks), slices.Clone(s.Cases)
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Checks, c.Turns = clear(c.Checks), slices.Clone(c.Turns)
		for k := range c.Turns {
			c.Turns[k].Checks = clear(c.Turns[k].Checks)
		}
	}
}

// CheckMargin returns an error unless a margin is a share: at least 0 and below 1. All metrics are shares, or ratios minus 1, so
// that a margin of 1 would call any two versions the same.
func CheckMargin(margin float64) error {
	if !(margin >= 0 && margin < 1) {
		return fmt.Errorf("margin must be at least 0 and below 1, got %v: %s", margin, marginHint)
	}
	return nil
}

// marginHint says what a margin is.
const marginHint = "a margin is a share, such as 0.05 for 5 of 100"

// ChecksOf returns the checks of a case: those of the set, or else the default ones, and then the case's own. Checks of
// its turns are not among them. A default check is left out if one of the case's own checks reads the same reference.
func (s *Set) ChecksOf(c *Case) []check.Spec {
	if s.Checks != nil {
		return append(s.Checks[:len(s.Checks):len(s.Checks)], c.Checks...)
	}
	var expected, calls bool
	own := c.Checks
	for _, t := range c.Turns {
		expected, calls = expected || t.Expected != nil, calls || t.Calls != nil
		own = append(own[:len(own):len(own)], t.Checks...)
	}
	own = slices.DeleteFunc(slices.Clone(own), func(s check.Spec) bool { return s.Kind == check.Pairwise }) // it fails no case
	var specs []check.Spec
	for _, d := range own {
		expected = expected && !d.ReadsExpected()
		calls = calls && d.Kind != check.Calls
	}
	if expected {
		specs = append(specs, check.Spec{Kind: check.Rouge1})
	}
	if calls {
		specs = append(specs, check.Spec{Kind: check.Calls})
	}
	if len(specs)+len(own) == 0 {
		specs = append(specs, check.Spec{Kind: check.Completed})
	}
	return append(specs, c.Checks...)
}

// Hash returns the SHA-256, in hexadecimal, of what decides about the result of a case-run: the cases, the checks and
// their judge, what passes, and what replaces steps. Sets that differ only in how often, in which order or within which limits their cases
// run have the same hash.
func (s *Set) Hash() string {
	text, err := canonical.AppendJSON(nil, Set{Cases: s.Cases, Checks: s.Checks, Pass: s.Pass, Judge: s.Judge, Replace: s.Replace})
	if err != nil {
		panic("cases: a set that is no JSON: " + err.Error()) // values come from files or from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
