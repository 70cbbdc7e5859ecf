// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// PausedLines tell why a run is paused, and how far it has got.
func PausedLines(log []*session.Event, sum *progress.Summary) []string {
	sum = new(*sum)
	sum.Paused = OwnerText(sum.Paused)
	var lines []string
	why := "Paused " + sum.Paused
	if text := whereabouts(progress.TreeOf(log), sum.Score); text != "" {
		lines = append(lines, text)
		why = strings.ToUpper(sum.Paused[:min(1, len(sum.Paused))]) + sum.Paused[min(1, len(sum.Paused)):]
	}
	if sum.Paused != "" {
		lines = append(lines, brief.Clean(why))
	}
	return lines
}

// whereabouts tells how far a paused run has got; empty for a run without a loop.
func whereabouts(t *progress.Tree, score *float64) string {
	main := t.Main()
	if main == nil {
		return ""
	}
	it := main.Loop.Current()
	if it == nil {
		return "Paused before iteration 1."
	}
	in := fmt.Sprintf("iteration %d", it.Number)
	if most := main.Loop.Plan.MaxIterations; most > 0 {
		in += fmt.Sprintf(" of %d", most)
	}
	var s string
	switch done, last := finishedSteps(it); {
	case it.Record != nil:
		s = fmt.Sprintf("Paused after %s.", in)
	case done == 0:
		s = fmt.Sprintf("Paused in %s, before its first step is done.", in)
	default:
		s = fmt.Sprintf("Paused in %s, after step %d of %d, %s.", in, done, len(it.Steps), last)
	}
	if score != nil {
		s += fmt.Sprintf(" Score so far %.6g.", *score)
	}
	return brief.Clean(s)
}

// finishedSteps returns the number of finished steps in an iteration, and the name of the last one.
func finishedSteps(it *progress.Iteration) (n int, last string) {
	for _, s := range it.Steps {
		if s.Status == progress.StatusCompleted || s.Status == progress.StatusFailed {
			n++
			last = s.Name
		}
	}
	return n, last
}

// SaidLast returns the answer so far of an unfinished run: the value of the state key that its loop hands back, if there is
// one, and otherwise said. def and view may be nil.
func SaidLast(def *definition.Definition, view *session.View, said string) string {
	if def == nil || view == nil || def.Root.Loop == nil || def.Root.Loop.Result == "" {
		return said
	}
	v, _ := view.State().Get(def.Root.Loop.Result)
	text, _ := v.(string)
	return text
}
