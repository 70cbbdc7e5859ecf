// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"slices"
)

// Watch names state keys whose values show whether a score may be dishonest.
// [IterationRecord.Findings] has the findings. A finding alone does not stop the loop.
type Watch struct {
	// Tests are keys of counts of tests: maps with total, skipped and, if the total is not known, broken. Those with total_before and
	// skipped_before, of the start, are compared with these, and the others with those of an earlier iteration.
	Tests []string `json:"tests,omitzero"`
	// Files are keys of workspaces: maps with protected, the names of files that a step was not allowed to change. The first
	// key's map also has lines, the number of lines that differ from the base.
	Files []string `json:"files,omitzero"`
}

// Finding is a fact about an iteration because of which its score may be too good.
type Finding struct {
	Kind FindingKind `json:"kind"`
	Text string      `json:"text"` // for people; it may name files
}

// FindingKind is a kind of [Finding], as conditions see it in findings.
type FindingKind string

// The kinds of findings.
const (
	FindingProtected FindingKind = "protected" // protected files were changed, and put back
	FindingTests     FindingKind = "tests"     // there are fewer tests than in the best iteration so far, or more are skipped
	FindingHoldout   FindingKind = "holdout"   // the score is better than in the best iteration so far, and the hold-out score is worse
	FindingGrowth    FindingKind = "growth"    // in 3 accepted iterations in a row the changes grew, and none was a new best
)

// FindingKinds lists the kinds of findings.
func FindingKinds() []string {
	return []string{string(FindingProtected), string(FindingTests), string(FindingHoldout), string(FindingGrowth)}
}

// growths is how many iterations in a row make a [FindingGrowth].
const growths = 3

// watched is what findings are made from. The iterations that others are compared with are the best accepted ones, or without
// a score the last accepted ones, in which there was something to compare.
type watched struct {
	// Wrote are the keys of findings that the iteration has written.
	Wrote []string `json:"wrote,omitzero"`
	// Tests are in the order of Watch.Tests; those of an iteration 0 are not known.
	Tests   []testCount `json:"tests,omitzero"`
	Holdout *heldOut    `json:"holdout,omitzero"`
	// Lines is how many lines differed in the last accepted iteration, Grown in how many accepted ones in a row they grew
	// without a new best.
	Lines float64 `json:"lines,omitzero"`
	Grown int     `json:"grown,omitzero"`
}

type testCount struct {
	Iteration int     `json:"iteration,omitzero"`
	Total     float64 `json:"total,omitzero"`
	Skipped   float64 `json:"skipped,omitzero"`
}

type heldOut struct {
	Iteration int     `json:"iteration"`
	Score     float64 `json:"score"`
	Value     float64 `json:"value"`
}

// measures returns the state keys of findings that steps write which only measure.
func (p *Plan) measures() (keys []string) {
	if p.Watch != nil {
		keys = slices.Clone(p.Watch.Tests)
	}
	if p.Score != nil && p.Score.Holdout != "" {
		keys = append(keys, p.Score.Holdout)
	}
	return keys
}

// Compares returns the state keys of NoProgress and of Watch.Files. The loop's decisions depend on them, as on the keys
// of Reads, but they are written by steps that produce results and not by steps that judge.
func (p *Plan) Compares() (keys []string) {
	if p.NoProgress != nil {
		keys = slices.Clone(p.NoProgress.Keys)
	}
	if p.Watch != nil {
		keys = append(keys, p.Watch.Files...)
	}
	return keys
}

// notice takes down which keys of findings a step has written. Keys that are not known are taken for all.
func (p *Plan) notice(t *Tally, o *incoming) {
	if p.Watch == nil && (p.Score == nil || p.Score.Holdout == "") {
		return
	}
	for _, k := range append(p.measures(), p.Compares()...) {
		if (o.Wrote == nil || slices.Contains(o.Wrote, k)) && !slices.Contains(t.Watched.Wrote, k) {
			t.Watched.Wrote = append(slices.Clone(t.Watched.Wrote), k)
		}
	}
}

// find makes the findings of the iteration that has just ended, before it is known whether the iteration is accepted. It
// returns what later ones are compared with if it is.
func (p *Plan) find(t *Tally, o *incoming) (now watched) {
	now = t.Watched
	state, f := o.seen(), finder{t: t}
	written := func(key string) map[string]any {
		m, _ := state[key].(map[string]any)
		if !slices.Contains(t.Watched.Wrote, key) {
			return nil
		}
		return m
	}
	if w := p.Watch; w != nil {
		for _, key := range w.Files {
			if files, _ := written(key)["protected"].(string); files != "" {
				f.add(FindingProtected, "protected files were changed: %s", files)
			}
		}
		now.Tests = make([]testCount, len(w.Tests))
		copy(now.Tests, t.Watched.Tests)
		for i, key := range w.Tests {
			of := ""
			if len(w.Tests) > 1 {
				of = key + ": "
			}
			f.tests(of, written(key), &now.Tests[i])
		}
		if len(w.Files) > 0 && p.Score != nil && t.Score != nil {
			m, _ := state[w.Files[0]].(map[string]any)
			f.growth(p.Score, m, &now)
		}
	}
	if p.Score != nil && p.Score.Holdout != "" && slices.Contains(t.Watched.Wrote, p.Score.Holdout) {
		f.holdout(p.Score, state[p.Score.Holdout], &now)
	}
	return now
}

// watch keeps what later iterations are compared with.
func (p *Plan) watch(t *Tally, now watched) {
	rec, was := &t.Ended, &t.Watched
	if rec.Rejected != "" {
		return
	}
	was.Lines, was.Grown = now.Lines, now.Grown
	best := p.Score == nil || rec.Best
	if best || was.Holdout == nil {
		was.Holdout = now.Holdout
	}
	if len(was.Tests) != len(now.Tests) {
		was.Tests = make([]testCount, len(now.Tests))
	}
	tests := slices.Clone(was.Tests)
	for i := range tests {
		if best || tests[i].Iteration == 0 {
			tests[i] = now.Tests[i]
		}
	}
	was.Tests = tests
}

// finder adds findings to the record of an iteration.
type finder struct{ t *Tally }

func (f finder) add(kind FindingKind, format string, args ...any) {
	rec := &f.t.Ended
	found := Finding{kind, clip(fmt.Sprintf(format, args...))}
	if !slices.Contains(rec.Findings, found) { // the copies of a step show the same
		rec.Findings = append(rec.Findings, found)
	}
}

// tests compares counts with those of an earlier iteration, which they replace. of says whose they are.
func (f finder) tests(of string, counts map[string]any, was *testCount) {
	total, err := plain(counts["total"])
	skipped, err2 := plain(counts["skipped"])
	if broken, _ := plain(counts["broken"]); err != nil || err2 != nil || broken > 0 {
		return // not all could be counted
	}
	before, since := *was, fmt.Sprintf("in iteration %d", was.Iteration)
	start, err := plain(counts["total_before"])
	startSkipped, err2 := plain(counts["skipped_before"])
	known := was.Iteration > 0
	if err == nil && err2 == nil {
		before, since, known = testCount{Total: start, Skipped: startSkipped}, "at the start", true
	}
	if known && total < before.Total {
		f.add(FindingTests, "%sthere %s %s, and there %s %s %s", of, counted(total, "is", "are"), tests(total),
			counted(before.Total, "was", "were"), num(before.Total), since)
	}
	if known && skipped > before.Skipped {
		f.add(FindingTests, "%s%s skipped, and %s %s", of, tests(skipped), num(before.Skipped), since)
	}
	*was = testCount{f.t.Iteration, total, skipped}
}

func tests(n float64) string { return num(n) + counted(n, " test", " tests") }

// counted is the word that goes with a number.
func counted(n float64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// holdout compares the score and its hold-out with those of an earlier iteration, which they replace.
func (f finder) holdout(s *Score, v any, now *watched) {
	t, was := f.t, now.Holdout
	got, err := (&Score{Label: s.Label, Field: s.Field}).number(v)
	if err == nil {
		got, err = finite(got)
	}
	if err != nil {
		t.Ended.warn(clip(fmt.Sprintf("the hold-out %s cannot be read: %v", s.Holdout, err)))
	}
	if err != nil || t.Score == nil {
		return
	}
	if was != nil && s.gain(was.Score, *t.Score) > t.Ended.Noise && s.gain(was.Value, got) < 0 {
		f.add(FindingHoldout, "the score went from %s to %s, and the hold-out from %s to %s, since iteration %d", num(was.Score),
			num(*t.Score), num(was.Value), num(got), was.Iteration)
	}
	now.Holdout = &heldOut{t.Iteration, *t.Score, got}
}

// growth counts the iterations in which the changes have grown without a gain.
func (f finder) growth(s *Score, files map[string]any, now *watched) {
	t, was := f.t, now.Lines
	now.Lines, _ = plain(files["lines"])
	if now.Lines <= was || t.Best == nil || s.gain(*t.Best, *t.Score) > t.Ended.Noise {
		now.Grown = 0
		return
	}
	if now.Grown++; now.Grown >= growths {
		f.add(FindingGrowth, "the changes grew to %s lines in %d iterations without a better score", num(now.Lines), now.Grown)
	}
}

// kinds returns the kinds of the findings.
func (r *IterationRecord) kinds() []string {
	kinds := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		kinds[i] = string(f.Kind)
	}
	return kinds
}
