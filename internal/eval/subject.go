// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"encoding/json"
	"iter"
	"maps"
	"time"

	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// subjectOf reads what the runs of a case-run have left. view has the whole log of its session.
func subjectOf(c *check.Case, view *session.View) (*check.Subject, error) {
	s := &check.Subject{Case: *c, State: maps.Collect(view.State().All()), Usage: loop.Usage{Cost: new(0.0)}}
	var t turn
	for ev := range effectiveEvents(view) {
		if ev.InvocationID != t.id {
			t.end(s)
			t = turn{id: ev.InvocationID}
		}
		t.add(s, ev)
	}
	t.end(s)
	s.Events = func() (all []any) {
		for ev := range effectiveEvents(view) {
			data, err := ev.AppendJSON(nil)
			var v any
			if err == nil && json.Unmarshal(data, &v) == nil {
				all = append(all, v)
			}
		}
		return all
	}
	return s, view.Err()
}

// effectiveEvents yields the events of a log that are not superseded.
func effectiveEvents(view *session.View) iter.Seq[*session.Event] {
	gone := view.Log().Superseded()
	return func(yield func(*session.Event) bool) {
		for ev := range view.Log().All() {
			if !gone.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}

// turn reads the run of a turn.
type turn struct {
	id        string
	fold      progress.Fold
	resources progress.Resources
	calls     []check.Call
	active    time.Duration
	completed bool
	scores    map[int]*float64 // of the iterations of the last outermost loop
}

func (t *turn) add(s *check.Subject, ev *session.Event) {
	t.fold.Add(ev)
	t.resources.Add(ev)
	if r := mark.RunIn(ev.Actions.StateDelta); r != nil {
		t.active, t.completed = r.ActiveAt(ev.Timestamp), r.Status == mark.RunCompleted
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished && ev.Iteration == 0 {
		var it loop.IterationRecord
		if ev.Mark.Decode(&it) == nil {
			if it.Number <= 1 || t.scores == nil {
				t.scores = make(map[int]*float64)
			}
			t.scores[it.Number] = it.Score
		}
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
		var fin mark.StepFinished
		if ev.Mark.Decode(&fin) == nil && fin.Error != "" && !fin.Canceled && (fin.At == "" || session.Address(fin.At) == ev.Address) {
			s.Errors = append(s.Errors, ev.Address.Agent()+": "+fin.Error)
		}
	}
	if ev.Content == nil || ev.Partial || ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted {
		return
	}
	for _, p := range ev.Content.Parts {
		switch {
		case p.FunctionCall != nil:
			t.calls = append(t.calls, check.Call{Name: p.FunctionCall.Name, Args: p.FunctionCall.Args})
		case p.FunctionResponse != nil:
			if text, ok := p.FunctionResponse.Response["error"].(string); ok {
				s.Errors = append(s.Errors, p.FunctionResponse.Name+": "+text)
			}
		}
	}
}

// end adds the turn to what the case-run has left. A turn that has not completed is missing.
func (t *turn) end(s *check.Subject) {
	if t.id == "" {
		return
	}
	u := t.resources.SoFar()
	s.Usage.Calls += u.Calls
	s.Usage.InputTokens += u.InputTokens
	s.Usage.OutputTokens += u.OutputTokens
	s.Usage.CachedTokens += u.CachedTokens
	s.Usage.CacheSaved += u.CacheSaved
	if s.Usage.Cost != nil {
		*s.Usage.Cost += u.Cost
	}
	if u.Unknown {
		s.Usage.Cost = nil
	}
	s.Time += t.active
	s.Stop, s.Score, s.Iterations = "", nil, 0
	if rec := t.fold.Stop(); rec != nil {
		s.Stop, s.Score, s.Iterations = rec.Reason, t.scores[rec.Result.Iteration], rec.Iterations
	}
	if t.completed {
		s.Turns = append(s.Turns, check.Outcome{Answer: t.fold.Answer(), Calls: t.calls})
	}
}
