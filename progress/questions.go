// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Questions finds the questions of a run that have no answer. The zero value is ready to use.
type Questions struct{ open []OpenQuestion }

// OpenQuestion is a question without an answer.
type OpenQuestion struct {
	mark.Question
	// At is the step that asks, and Iteration the iteration of its nearest loop; 0 outside loops.
	At        session.Address
	Iteration int
}

// Add takes the next event of the run. An answer closes its question, and so does the end of an enclosing step that
// was not cut off, because the step has taken a default or its loop continued. The error reports a mark that cannot
// be read.
func (q *Questions) Add(ev *session.Event) error {
	if ev.Mark == nil {
		return nil
	}
	switch ev.Mark.Kind {
	case mark.KindAsked:
		asked := OpenQuestion{At: ev.Address, Iteration: ev.Iteration}
		if err := ev.Mark.Decode(&asked.Question); err != nil {
			return err
		}
		q.drop(func(o OpenQuestion) bool { return o.ID == asked.ID })
		q.open = append(q.open, asked)
	case mark.KindAnswered:
		var a mark.Answer
		if err := ev.Mark.Decode(&a); err != nil {
			return err
		}
		q.drop(func(o OpenQuestion) bool { return o.ID == a.ID })
	case mark.KindStepFinished:
		var fin mark.StepFinished
		if len(q.open) > 0 && ev.Mark.Decode(&fin) == nil && !fin.Canceled {
			q.drop(func(o OpenQuestion) bool { return o.At.Under(ev.Address) })
		}
	}
	return nil
}

// drop closes questions.
func (q *Questions) drop(closed func(OpenQuestion) bool) { q.open = slices.DeleteFunc(q.open, closed) }

// Open returns the questions that have no answer, in the order in which they were asked. Do not change the slice.
func (q *Questions) Open() []OpenQuestion { return q.open }
