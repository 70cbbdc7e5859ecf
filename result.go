// SPDX-License-Identifier: Apache-2.0

package refrain

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Result is what a run has come to.
type Result struct {
	// Text is the answer: the result of the loop, or the last text of an agent after it.
	Text string
	// State is the state of the session at the end.
	State map[string]any
	// Best is the best iteration of the loop; nil if no iteration has ended, or if the agent has no loop.
	Best *Best
	// Stop says why the loop has stopped: its Reason is a limit, a target, a failure or another one. It is nil if
	// the agent has no loop. Of several loops in a row it is the record of the last one. Of loops that
	// raced it is the record of the winner.
	Stop *loop.StopRecord
	// Usage is the usage of all model calls of the run, also before it was resumed.
	Usage budget.Usage
}

// Best is an iteration of a loop: the one with the best score, or the last complete one if the loop has no score.
// It is known also if the run was canceled, has failed or was stopped by a limit.
type Best struct {
	// Iteration is the number of the iteration, from 1.
	Iteration int
	// Score is nil if the loop has no score.
	Score *float64
	// Text is the answer of the iteration, without those of a judge.
	Text string
	// State is the state at the end of the iteration.
	State map[string]any
}

// As decodes the answer, a JSON text, into the value that v points to. Answers have this form if the agent that gives
// them has an OutputSchema: see llmagent.OutputOf.
func (r *Result) As(v any) error {
	if err := json.Unmarshal([]byte(r.Text), v); err != nil {
		return fmt.Errorf("decode the answer into %T: %w; set OutputSchema of the agent that gives it to llmagent.OutputOf", v, err)
	}
	return nil
}

// resultOf reads the result of a run from its log.
func resultOf(view *session.View, id string) *Result {
	r := &Result{State: maps.Collect(view.State().All())}
	ended := false // and not cut off before the loop gave its result
	answer, live := progress.Fold{Whole: view.Log().Full}, progress.Live{Whole: view.Log().Full}
	for ev := range ofRun(view, id) {
		answer.Add(ev)
		live.AddOnce(ev, true)
		fin := rootEnd(ev)
		if ended = fin != nil && fin.Error == ""; fin != nil && fin.Usage != nil {
			_ = json.Unmarshal(fin.Usage, &r.Usage) // the runner has written it
		}
	}
	r.Text, r.Stop = answer.Answer(), answer.Stop()
	if step := live.Tree().Main(); step != nil {
		r.Best = bestOf(view, id, step)
	}
	if ended && r.Best != nil && r.Stop != nil && r.Stop.Result.Iteration == r.Best.Iteration && r.Stop.Result.Source != loop.FromFinalizer {
		r.Best.Text = r.Text
	}
	return r
}

// bestOf returns the best iteration of a loop.
func bestOf(view *session.View, id string, step *progress.Step) *Best {
	best := step.Loop.Best()
	if best == nil {
		for _, it := range step.Loop.Iterations {
			if it.Record != nil && it.Record.Complete {
				best = it
			}
		}
	}
	if best == nil {
		return nil
	}
	b := &Best{Iteration: best.Number, Score: best.Record.Score}
	end := progress.IterationSeq(ofRun(view, id), step.Address, best.Number)
	b.State = progress.StateAfter(nil, counting(view), end, view.Log().Full)
	var answer *session.Event
	for ev := range ofRun(view, id) {
		if ev.Seq < end && ev.Speaks() && isCandidate(step.Loop.Plan, best, ev.Address) {
			answer = session.Answer(answer, ev)
		}
	}
	if answer != nil {
		b.Text = view.Log().Full(answer).Text()
	}
	return b
}

// isCandidate reports whether an iteration's result can come from an agent: not from a judge or a scorer.
func isCandidate(plan *loop.Plan, it *progress.Iteration, at session.Address) bool {
	for _, s := range it.Steps {
		if s.Address != "" && at.Under(s.Address) {
			return plan == nil || !plan.Score.GivenBy(s.Name)
		}
	}
	return false
}

// ofRun yields the events of a run that count.
func ofRun(view *session.View, id string) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for ev := range counting(view) {
			if ev.InvocationID == id && !yield(ev) {
				return
			}
		}
	}
}

// counting yields the outline of the log without superseded events.
func counting(view *session.View) iter.Seq[*session.Event] {
	superseded := view.Log().Superseded()
	return func(yield func(*session.Event) bool) {
		for ev := range view.Log().Outline() {
			if !superseded.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}
