// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// outcomeMark is a [mark.StepFinished] together with the step's outcome, so that one call encodes both as JSON.
type outcomeMark struct {
	mark.StepFinished
	Outcome *loop.Outcome `json:"outcome"`
}

// setEndData sets the data of a mark of the kind step finished.
func (r *run) setEndData(m *mark.Mark, fin *mark.StepFinished, o *loop.Outcome) error {
	all, err := mark.New(mark.KindStepFinished, &outcomeMark{*fin, o})
	if err == nil {
		m.Data = all.Data
	}
	return err
}
