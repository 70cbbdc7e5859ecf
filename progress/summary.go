// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Summary is how a run stands, for a row in a list of runs: what its last events
// say of the whole.
//
//	s := progress.Summarize(lastEvents)
//	fmt.Println(s.Name, s.Status, s.Iteration)
type Summary struct {
	// ID is the invocation's, Name that of the definition or of the root agent.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Status is what the log says: a run that was cut off is still running by it.
	Status session.RunStatus `json:"status"`
	// Began and Updated are the times of the first and of the last event.
	Began   time.Time `json:"began,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	// Iteration is the outermost loop's, 0 before there is one. Score is the last
	// that was accepted in it, and the best one once the loop has stopped; nil:
	// there is none.
	Iteration int      `json:"iteration,omitempty"`
	Score     *float64 `json:"score,omitempty"`
	// Stop is why the last outermost loop stopped; nil if it has not.
	Stop *loop.StopRecord `json:"stop,omitempty"`
	// Error is why the run failed, or was canceled; Paused why it is paused, and
	// who asked for that.
	Error  string `json:"error,omitempty"`
	Paused string `json:"paused,omitempty"`
	// Waits are the questions that have no answer yet.
	Waits []session.Question `json:"waits,omitempty"`
}

// Summarize reads a summary of the last run in a log off its events, oldest
// first. The last few will do for all but Began; what they do not tell is empty.
func Summarize(events []*session.Event) *Summary {
	s := &Summary{Status: session.RunRunning}
	events = session.Current(LastRun(events))
	for _, ev := range events {
		s.add(ev)
	}
	return s
}

// LastRun are the events of the last run in a log: those of the invocation that
// its last event belongs to.
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
	if s.Began.IsZero() {
		s.Began = ev.Timestamp
	}
	if s.Name == "" && ev.Address != "" {
		s.Name, _, _ = strings.Cut(string(ev.Address), "/")
		s.Name, _, _ = strings.Cut(s.Name, "[")
	}
	if n := outermost(ev.Address); n > 0 {
		s.Iteration = n
	}
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case session.MarkIterationFinished:
		var it loop.IterationRecord
		if ev.Iteration == 0 && ev.Mark.Decode(&it) == nil {
			s.Iteration = it.Number
			if it.Score != nil && it.Rejected == "" {
				s.Score = it.Score
			}
		}
	case session.MarkLoopStopped:
		rec := new(loop.StopRecord)
		if ev.Iteration == 0 && ev.Mark.Decode(rec) == nil {
			s.Stop, s.Iteration = rec, rec.Iteration
			if rec.BestScore != nil {
				s.Score = rec.BestScore
			}
		}
	case session.MarkStepStarted:
		if ev.Address.Parent() == "" {
			s.Status = session.RunRunning
		}
	case session.MarkStepFinished:
		s.finished(ev)
	case session.MarkAsked:
		var q session.Question
		if ev.Mark.Decode(&q) == nil && ev.Address != "" {
			s.Waits = append(without(s.Waits, q.ID), q)
		}
	case session.MarkAnswered:
		var a session.Answer
		if ev.Mark.Decode(&a) == nil {
			s.Waits = without(s.Waits, a.ID)
		}
	default:
		s.run(ev.Mark)
	}
}

// run takes a mark of the run as a whole.
func (s *Summary) run(m *session.Mark) {
	switch m.Kind {
	case session.MarkRunStarted:
		var d session.RunStarted
		if m.Decode(&d) == nil && d.Name != "" {
			s.Name = d.Name
		}
	case session.MarkRunPaused:
		var d session.RunPaused
		if m.Decode(&d) != nil {
			return
		}
		if s.Status = session.RunIsPaused; len(d.Waits) > 0 {
			s.Status = session.RunWaiting
		}
		if s.Paused = d.Reason; d.By != "" {
			s.Paused = strings.TrimSuffix("by "+d.By+": "+d.Reason, ": ")
		}
	case session.MarkRunResumed:
		s.Status, s.Error, s.Paused = session.RunRunning, "", ""
	case session.MarkRunEnded:
		var d session.RunEnded
		if m.Decode(&d) == nil {
			s.Status, s.Error, s.Paused = d.Status, d.Error, ""
		}
	}
}

// finished takes the end of a step. That of the root's is the run's, where nobody
// writes down how runs end.
func (s *Summary) finished(ev *session.Event) {
	var fin session.StepFinished
	if ev.Address.Parent() != "" || ev.Mark.Decode(&fin) != nil || fin.Canceled {
		return
	}
	if s.Status, s.Error = session.RunCompleted, fin.Error; fin.Error != "" {
		s.Status = session.RunFailed
	}
}

func without(qs []session.Question, id string) []session.Question {
	var left []session.Question
	for _, q := range qs {
		if q.ID != id {
			left = append(left, q)
		}
	}
	return left
}

// outermost is the iteration of the outermost loop that a step is in; 0 outside
// loops.
func outermost(at session.Address) int {
	_, rest, _ := strings.Cut(string(at), "[")
	number, _, _ := strings.Cut(rest, "]")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
