// SPDX-License-Identifier: Apache-2.0

// Package questions finds in the log of a run what it asks people.
//
//	var asked questions.Fold
//	for _, ev := range events {
//		if err := asked.Add(ev); err != nil {
//			return err
//		}
//	}
//	return asked.Open()
package questions

import (
	"slices"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Fold finds the questions of a run that have no answer. The zero value is ready to use.
type Fold struct{ open []Question }

// Question is a question without an answer.
type Question struct {
	mark.Question
	// At is the step that asks, and Iteration the iteration of its nearest loop; 0 outside loops.
	At        session.Address
	Iteration int
}

// Add takes the next event of the run. An answer closes its question, and so does the end of an enclosing step that
// was not cut off, because the step has taken a default or its loop continued. The error reports a mark that cannot
// be read.
func (f *Fold) Add(ev *session.Event) error {
	if ev.Mark == nil {
		return nil
	}
	switch ev.Mark.Kind {
	case mark.KindAsked:
		asked := Question{At: ev.Address, Iteration: ev.Iteration}
		if err := ev.Mark.Decode(&asked.Question); err != nil {
			return err
		}
		f.drop(func(o Question) bool { return o.ID == asked.ID })
		f.open = append(f.open, asked)
	case mark.KindAnswered:
		var a mark.Answer
		if err := ev.Mark.Decode(&a); err != nil {
			return err
		}
		f.drop(func(o Question) bool { return o.ID == a.ID })
	case mark.KindStepFinished:
		var fin mark.StepFinished
		if len(f.open) > 0 && ev.Mark.Decode(&fin) == nil && !fin.Canceled {
			f.drop(func(o Question) bool { return o.At.Under(ev.Address) })
		}
	}
	return nil
}

// drop closes questions.
func (f *Fold) drop(closed func(Question) bool) { f.open = slices.DeleteFunc(f.open, closed) }

// Open returns the questions that have no answer, in the order in which they were asked. Do not change the slice.
func (f *Fold) Open() []Question { return f.open }
