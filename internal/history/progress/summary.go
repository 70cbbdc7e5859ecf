// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/questions"
	"github.com/refrain-dev/refrain/internal/history/stops"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Summary is the status of a run for a row in a list of runs, computed from the last events.
//
//	s := progress.Summarize(lastEvents)
//	fmt.Println(s.Name, s.Status, s.Iteration)
type Summary struct {
	// ID is the invocation's ID, Name the name of the definition or of the root agent.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Status is the status in the log: an interrupted run still has the status running.
	Status mark.RunStatus `json:"status"`
	// Began and Updated are the times of the first and of the last event. A fork began when it was made: its first events
	// are copies.
	Began   time.Time `json:"began,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	// Iteration is the number of the outermost loop's last iteration; 0 before the first. Score is
	// the last accepted score, or the best one after the loop has stopped; nil if there is none.
	// After a race both are the winner's.
	Iteration int      `json:"iteration,omitempty"`
	Score     *float64 `json:"score,omitempty"`
	// Stop is why the last outermost loop stopped; nil if none has. Of loops that raced it is the winner that counts.
	Stop *loop.StopRecord `json:"stop,omitempty"`
	// Error is why the run failed or was canceled; Paused says why and by whom the run was paused,
	// and is empty for a run that waits.
	Error  string `json:"error,omitempty"`
	Paused string `json:"paused,omitempty"`
	// Waits are the questions that have no answer yet. A run that has ended asks none.
	Waits []mark.Question `json:"waits,omitempty"`
	// Parent is the run from which this one was forked; nil if none.
	Parent *mark.RunParent `json:"parent,omitempty"`
	// Driver and HandOver have the values of [mark.Run].
	Driver   string `json:"driver,omitempty"`
	HandOver bool   `json:"hand_over,omitempty"`

	asked questions.Fold
	stops stops.Fold
	owned bool // somebody writes down how the run as a whole has ended
}

// Summarize returns the summary of the last run in a log. events are the last ones of the log,
// oldest first; a few are enough for all fields but Began. A field that the events do not tell
// stays empty.
func Summarize(events []*session.Event) *Summary {
	return SummarizeAll(slices.Values(session.Current(LastRun(events))))
}

// SummarizeAll is Summarize for the events of one run, without superseded ones. It keeps none of them.
func SummarizeAll(events iter.Seq[*session.Event]) *Summary {
	var f SummaryFold
	for ev := range events {
		f.Add(ev)
	}
	return f.Summary()
}

// SummaryFold computes the summary of a run event by event. The zero value is ready to use.
type SummaryFold struct{ sum Summary }

// Add takes the next event of the run that is not superseded.
func (f *SummaryFold) Add(ev *session.Event) {
	f.sum.Status = cmp.Or(f.sum.Status, mark.RunRunning)
	f.sum.add(ev)
}

// Summary returns the summary of the events so far.
func (f *SummaryFold) Summary() *Summary {
	s := f.sum
	if s.Status = cmp.Or(s.Status, mark.RunRunning); s.Status.IsFinal() {
		return &s
	}
	for _, q := range s.asked.Open() {
		s.Waits = append(s.Waits, q.Question)
	}
	return &s
}

// StartTime returns when a run began, from what was known before its event ev: the time of its first event, or of the fork.
func StartTime(known time.Time, ev *session.Event) time.Time {
	if r := mark.RunIn(ev.Actions.StateDelta); r != nil && r.Parent != nil && !r.Started.IsZero() {
		return r.Started
	}
	if known.IsZero() {
		return ev.Timestamp
	}
	return known
}

// LastRun returns the events of the last run in a log: those with the invocation ID of the last
// event.
func LastRun(events []*session.Event) []*session.Event {
	if len(events) == 0 {
		return nil
	}
	id := events[len(events)-1].InvocationID
	var last []*session.Event
	for _, ev := range events {
		if ev.InvocationID == id {
			last = append(last, ev)
		}
	}
	return last
}

func (s *Summary) add(ev *session.Event) {
	s.ID, s.Updated = ev.InvocationID, ev.Timestamp
	if r := mark.RunIn(ev.Actions.StateDelta); r != nil && r.Parent != nil {
		s.Parent = r.Parent
	}
	s.Began = StartTime(s.Began, ev)
	if s.Name == "" && ev.Address != "" {
		s.Name, _, _ = strings.Cut(string(ev.Address), "/")
		s.Name, _, _ = strings.Cut(s.Name, "[")
	}
	lost := s.stops.Lost(ev.Address)
	if n := outermost(ev.Address); n > 0 && !lost {
		s.Iteration = n
	}
	if ev.Mark == nil {
		return
	}
	_ = s.asked.Add(ev) // a question that cannot be read is not shown
	switch ev.Mark.Kind {
	case mark.KindIterationFinished:
		var it loop.IterationRecord
		if ev.Iteration == 0 && !lost && ev.Mark.Decode(&it) == nil {
			s.Iteration = it.Number
			if it.Score != nil && it.Rejected == "" {
				s.Score = it.Score
			}
		}
	case mark.KindLoopStopped:
		rec := new(loop.StopRecord)
		if ev.Iteration != 0 || ev.Mark.Decode(rec) != nil {
			return
		}
		if s.stops.Stop(ev, rec); lost {
			return
		}
		s.Stop, s.Iteration = rec, rec.Iteration
		if rec.BestScore != nil {
			s.Score = rec.BestScore
		}
	case mark.KindRaceDecided:
		s.decided(ev)
	case mark.KindStepStarted:
		if ev.Address.Parent() == "" {
			s.Status = mark.RunRunning
		}
	case mark.KindStepFinished:
		s.finished(ev)
	case mark.KindAsked:
	case mark.KindAnswered:
		if r := mark.RunIn(ev.Actions.StateDelta); r != nil && r.Status != "" && s.Status == mark.RunWaiting {
			s.Status = r.Status
		}
	default:
		s.run(ev)
	}
}

// decided takes the decision of a race between outermost loops. Until then the last of them counts, after it the winner.
func (s *Summary) decided(ev *session.Event) {
	var d mark.RaceDecided
	if ev.Iteration != 0 || ev.Mark.Decode(&d) != nil {
		return
	}
	s.stops.Race(ev, &d)
	won := d.Won()
	if won == nil {
		return
	}
	s.Stop, s.Iteration, s.Score = nil, won.Iterations, won.Score
	if !d.Continues {
		if s.Stop = s.stops.Last(); s.Stop != nil {
			s.Iteration = s.Stop.Iteration
		}
	}
}

// run takes a mark of the run as a whole.
func (s *Summary) run(ev *session.Event) {
	if r := mark.RunIn(ev.Actions.StateDelta); r != nil {
		s.Driver, s.HandOver = r.Driver, r.HandOver
	}
	switch m := ev.Mark; m.Kind {
	case mark.KindRunStarted:
		s.owned = true
		var d mark.RunStarted
		if m.Decode(&d) == nil && d.Name != "" {
			s.Name = d.Name
		}
	case mark.KindRunPaused:
		var d mark.RunPaused
		if m.Decode(&d) != nil {
			return
		}
		// A paused run may have questions too, but waits for a person to resume it.
		s.Status, s.Paused = mark.RunIsPaused, ""
		if len(d.Waits) > 0 {
			s.Status = mark.RunWaiting
		}
		if r := mark.RunIn(ev.Actions.StateDelta); r != nil && r.Status != "" {
			s.Status = r.Status
		}
		if s.Status == mark.RunWaiting {
			return
		}
		if s.Paused = d.Reason; d.By != "" {
			s.Paused = strings.TrimSuffix("by "+d.By+": "+d.Reason, ": ")
		}
	case mark.KindRunResumed:
		s.Status, s.Error, s.Paused = mark.RunRunning, "", ""
	case mark.KindRunEnded:
		var d mark.RunEnded
		if m.Decode(&d) == nil {
			s.Status, s.Error, s.Paused = d.Status, PlainError(d.Error), ""
		}
	default: // somebody has taken it up
		if r := mark.RunIn(ev.Actions.StateDelta); r != nil && r.Status == mark.RunRunning {
			s.Status, s.Error, s.Paused = mark.RunRunning, "", ""
		}
	}
}

// finished takes the end of a step. The end of the root's step is the end of the run if nothing records the status of
// runs.
func (s *Summary) finished(ev *session.Event) {
	var fin mark.StepFinished
	if ev.Address.Parent() != "" || s.owned || ev.Mark.Decode(&fin) != nil || fin.Canceled {
		return
	}
	if s.Status, s.Error = mark.RunCompleted, fin.Error; fin.Error != "" {
		s.Status = mark.RunFailed
	}
}

// AskedBy returns the address of the step that asks the question with this ID; empty if it is
// unknown.
func (s *Summary) AskedBy(id string) session.Address {
	for _, q := range s.asked.Open() {
		if q.ID == id {
			return q.At
		}
	}
	return ""
}

// outermost returns the iteration of the outermost loop that contains a step; 0 outside loops.
func outermost(at session.Address) int {
	_, rest, _ := strings.Cut(string(at), "[")
	number, _, _ := strings.Cut(rest, "]")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
