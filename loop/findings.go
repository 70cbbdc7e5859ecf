// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"slices"
)

// Watch names state keys whose values show whether a score may be dishonest.
// [IterationRecord.Findings] has the findings. A finding alone does not stop the loop.
type Watch struct {
	// Tests are state keys of test counts. Each holds a map with total, skipped and, if the total is not known, broken.
	// If the map also has total_before and skipped_before, the counts at the start, the counts are compared with these,
	// and tests that were there and can no longer be counted are a finding. Otherwise the counts are compared with those
	// of the best iteration so far, and an iteration whose total is not known is left out.
	Tests []string `json:"tests,omitzero"`
	// Files are state keys of workspaces. Each holds a map with protected, the names of files that a step was not
	// allowed to change. The map of the first key also has lines, the number of lines that differ from the base.
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
	FindingProtected FindingKind = "protected" // a step changed protected files, and the changes were undone
	FindingTests     FindingKind = "tests"     // there are fewer tests than before, more are skipped, or they cannot be counted (see [Watch])
	FindingHoldout   FindingKind = "holdout"   // the score is better than in the best iteration so far, and the hold-out score is worse
	FindingGrowth    FindingKind = "growth"    // the changes grew in 3 iterations in a row (not counting rejected ones), without a new best
)

// FindingKinds lists the kinds of findings.
func FindingKinds() []string {
	return []string{string(FindingProtected), string(FindingTests), string(FindingHoldout), string(FindingGrowth)}
}

// growths is the number of iterations in a row that make a [FindingGrowth].
const growths = 3

// findingValues holds the values that findings are computed from. An iteration is compared with the best accepted one or, in
// a plan without a score, with the last accepted one, provided that it had a value to compare.
type findingValues struct {
	// Wrote lists the watched keys that the running iteration has written.
	Wrote []string `json:"wrote,omitzero"`
	// Tests has the counts in the order of Watch.Tests. Counts with Iteration 0 are unknown.
	Tests   []testCount   `json:"tests,omitzero"`
	Holdout *holdoutScore `json:"holdout,omitzero"`
	// Lines is the number of lines that differed in the last accepted iteration. Grown is the number of accepted
	// iterations in a row in which it grew without a new best.
	Lines float64 `json:"lines,omitzero"`
	Grown int     `json:"grown,omitzero"`
}

// testCount is the number of tests in an iteration.
type testCount struct {
	Iteration int     `json:"iteration,omitzero"`
	Total     float64 `json:"total,omitzero"`
	Skipped   float64 `json:"skipped,omitzero"`
}

// holdoutScore is the score of an iteration, with its hold-out score in Value.
type holdoutScore struct {
	Iteration int     `json:"iteration"`
	Score     float64 `json:"score"`
	Value     float64 `json:"value"`
}

// measures returns the watched state keys that are written by steps that only measure.
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

// noteWritten records which watched keys a step has written. If the written keys are unknown, every watched key counts as
// written.
func (p *Plan) noteWritten(t *Tally, o *addedOutcome) {
	if p.Watch == nil && (p.Score == nil || p.Score.Holdout == "") {
		return
	}
	for _, k := range append(p.measures(), p.Compares()...) {
		if (o.Wrote == nil || slices.Contains(o.Wrote, k)) && !slices.Contains(t.Watched.Wrote, k) {
			t.Watched.Wrote = append(slices.Clone(t.Watched.Wrote), k)
		}
	}
}

// recordFindings adds the findings of the iteration that has just ended to its record. It runs before the loop decides whether
// the iteration is accepted. It returns the values to compare later iterations with, for the case that it is accepted.
func (p *Plan) recordFindings(t *Tally, o *addedOutcome) (now findingValues) {
	now = t.Watched
	state, f := o.visibleState(), findingRecorder{t: t}
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

// updateBaseline stores the values that later iterations are compared with, if the iteration was accepted.
func (p *Plan) updateBaseline(t *Tally, now findingValues) {
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

// findingRecorder adds findings to the record of an iteration.
type findingRecorder struct{ t *Tally }

func (f findingRecorder) add(kind FindingKind, format string, args ...any) {
	rec := &f.t.Ended
	found := Finding{kind, truncate(fmt.Sprintf(format, args...))}
	if !slices.Contains(rec.Findings, found) { // parallel copies of a step report the same finding
		rec.Findings = append(rec.Findings, found)
	}
}

// tests compares the counts with those in was, and then replaces these. of begins each finding; it names the state key
// if there are several.
func (f findingRecorder) tests(of string, counts map[string]any, was *testCount) {
	total, err := plain(counts["total"])
	skipped, err2 := plain(counts["skipped"])
	if err != nil || err2 != nil {
		return
	}
	before, since, known := *was, fmt.Sprintf("in iteration %d", was.Iteration), was.Iteration > 0
	start, err := plain(counts["total_before"])
	startSkipped, err2 := plain(counts["skipped_before"])
	atStart := err == nil && err2 == nil
	if atStart {
		before, since, known = testCount{Total: start, Skipped: startSkipped}, "at the start", true
	}
	if broken, _ := plain(counts["broken"]); broken > 0 {
		if atStart && start > 0 {
			f.add(FindingTests, "%sthe tests cannot be counted, and there %s %s %s", of, countText(start, "was", "were"), num(start), since)
		}
		return
	}
	if known && total < before.Total {
		f.add(FindingTests, "%sthere %s %s, and there %s %s %s", of, countText(total, "is", "are"), tests(total),
			countText(before.Total, "was", "were"), num(before.Total), since)
	}
	if known && skipped > before.Skipped {
		f.add(FindingTests, "%s%s skipped, and %s %s", of, tests(skipped), num(before.Skipped), since)
	}
	*was = testCount{f.t.Iteration, total, skipped}
}

func tests(n float64) string { return num(n) + countText(n, " test", " tests") }

// countText returns the singular or the plural, depending on n.
func countText(n float64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// holdout compares the score and the hold-out score with those in now.Holdout, and then replaces these.
func (f findingRecorder) holdout(s *Score, v any, now *findingValues) {
	t, was := f.t, now.Holdout
	got, err := (&Score{Label: s.Label, Field: s.Field}).number(v)
	if err == nil {
		got, err = finite(got)
	}
	if err != nil {
		t.Ended.warn(truncate(fmt.Sprintf("the hold-out %s cannot be read: %v", s.Holdout, err)))
	}
	if err != nil || t.Score == nil {
		return
	}
	if was != nil && s.gain(was.Score, *t.Score) > t.Ended.Noise && s.gain(was.Value, got) < 0 {
		f.add(FindingHoldout, "the score went from %s to %s, and the hold-out from %s to %s, since iteration %d", num(was.Score),
			num(*t.Score), num(was.Value), num(got), was.Iteration)
	}
	now.Holdout = &holdoutScore{t.Iteration, *t.Score, got}
}

// growth updates the number of iterations in which the changes grew without a gain.
func (f findingRecorder) growth(s *Score, files map[string]any, now *findingValues) {
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
