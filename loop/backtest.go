// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"time"
)

// BacktestResult says what a plan would have made of a recorded run.
type BacktestResult struct {
	// Stop is why it would have stopped; nil if Unknown.
	Stop *StopRecord `json:"stop,omitzero"`
	// Steps and Iterations are how much of the recording it would have run,
	// the finalizer excluded; an iteration that was begun counts.
	Steps      int `json:"steps"`
	Iterations int `json:"iterations"`
	// SavedSteps and SavedIterations are how much of it would not have run.
	SavedSteps      int `json:"saved_steps"`
	SavedIterations int `json:"saved_iterations"`
	// Unknown says that this plan would have gone on where the recording
	// ends, or gone another way; Note says which.
	Unknown bool   `json:"unknown,omitzero"`
	Note    string `json:"note,omitzero"`
	// Records are those of the iterations, in order.
	Records []IterationRecord `json:"records,omitzero"`
}

// Backtest replays the outcomes of a run, in their order and with their state,
// against the plan. The plan that was recorded gives the record of the run.
//
// Where the plan would have stopped earlier, its finalizer was not recorded
// there; the stop record then supposes that it would have succeeded.
func (p *Plan) Backtest(outcomes []Outcome) BacktestResult {
	var (
		t     Tally
		res   BacktestResult
		final = p.Finalizer()
	)
	steps, iterations := extent(outcomes, final)
	for _, o := range outcomes {
		d := p.Next(&t, o.Started)
		res.ended(d.Ended)
		switch {
		case d.Action == Stop, d.Action == Finalize && o.Step != final && o.Canceled == "":
			res.stop(&t, d, steps, iterations)
			return res
		case d.Action == RunStep && o.Step != d.Step && o.Canceled == "":
			note := beyond
			if name := p.nameOf(o.Step); name != "" && o.Step != final {
				note = fmt.Sprintf("in iteration %d this plan would run %q, the recording has %q", d.Iteration, p.nameOf(d.Step), name)
			}
			res.unknown(&t, note)
			return res
		}
		p.Add(&t, o)
	}
	d := p.Next(&t, time.Time{})
	res.ended(d.Ended)
	if d.Action == RunStep {
		res.unknown(&t, beyond)
		return res
	}
	res.stop(&t, d, steps, iterations)
	return res
}

const beyond = "unknown beyond the recording"

// extent is how many steps and iterations a recording has, without the finalizer.
func extent(outcomes []Outcome, final int) (steps, iterations int) {
	for _, o := range outcomes {
		if o.Step >= 0 && o.Step != final && o.Canceled == "" {
			steps++
			iterations = max(iterations, o.Iteration)
		}
	}
	return steps, iterations
}

func (r *BacktestResult) stop(t *Tally, d Decision, steps, iterations int) {
	r.Stop = d.Stop
	r.Steps, r.Iterations = t.Steps, t.Iteration
	r.SavedSteps, r.SavedIterations = max(0, steps-t.Steps), max(0, iterations-t.Iteration)
}

func (r *BacktestResult) unknown(t *Tally, note string) {
	r.Unknown, r.Note = true, note
	r.Steps, r.Iterations = t.Steps, t.Iteration
}

func (r *BacktestResult) ended(rec IterationRecord) {
	if n := len(r.Records); rec.Number != 0 && (n == 0 || r.Records[n-1].Number != rec.Number) {
		r.Records = append(r.Records, rec)
	}
}
