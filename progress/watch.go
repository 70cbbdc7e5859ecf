// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Watch is what the summary of a run needs. It decodes each event once for all three. The zero
// value is ready to use.
type Watch struct {
	Fold      Fold
	Diagnosis Diagnosis
	Resources Resources
}

// Add takes the next event of the run and returns the lines that report it.
func (w *Watch) Add(ev *session.Event) []string {
	h := &heard{Event: ev}
	w.Diagnosis.add(h)
	w.Resources.add(h)
	return w.Fold.add(h)
}

// heard is an event with what its mark says, decoded when somebody asks.
type heard struct {
	*session.Event

	fin *mark.StepFinished
	it  *loop.IterationRecord
	err error
}

// finished is what the mark of a step that has finished says. Do not change it.
func (h *heard) finished() (*mark.StepFinished, error) {
	if h.fin == nil {
		h.fin = new(mark.StepFinished)
		h.err = h.Mark.Decode(h.fin)
	}
	return h.fin, h.err
}

// iteration is the record in the mark of an iteration that has finished. Do not change it.
func (h *heard) iteration() (*loop.IterationRecord, error) {
	if h.it == nil {
		h.it = new(loop.IterationRecord)
		h.err = h.Mark.Decode(h.it)
	}
	return h.it, h.err
}
