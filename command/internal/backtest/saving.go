// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress/backtest"
)

// Saving is what a policy would not have used of what was recorded. Tokens and
// cost are those of models; the finalizer is not in it.
type Saving struct {
	Iterations int           `json:"iterations"`
	Steps      int           `json:"steps"`
	Time       loop.Duration `json:"time"`
	Tokens     int64         `json:"tokens"`
	Cost       *float64      `json:"cost,omitzero"` // nil: unknown
}

// savingOf is what was recorded less what the plan would have used.
func savingOf(rec *backtest.Recording, res *loop.BacktestResult) Saving {
	s := Saving{Iterations: res.SavedIterations, Steps: res.SavedSteps}
	if res.Stop == nil {
		return s
	}
	var spent time.Duration
	var usage loop.Usage
	known := true
	for _, o := range rec.Outcomes {
		if o.Step == rec.Plan.Finalizer() && o.Step >= 0 {
			continue
		}
		if o.Finished.After(o.Started) {
			spent += o.Finished.Sub(o.Started)
		}
		usage.InputTokens += o.Usage.InputTokens
		usage.OutputTokens += o.Usage.OutputTokens
		switch {
		case o.Usage.Cost != nil:
			usage.Cost = new(*o.Usage.Cost + cost(usage))
		case o.Usage.Calls > 0:
			known = false
		}
	}
	used := res.Stop.Usage
	s.Time = loop.Duration(max(0, spent-res.Stop.Elapsed))
	s.Tokens = max(0, usage.InputTokens+usage.OutputTokens-used.InputTokens-used.OutputTokens)
	if known && usage.Cost != nil {
		s.Cost = new(max(0, *usage.Cost-cost(used)))
	}
	return s
}

func cost(u loop.Usage) float64 {
	if u.Cost == nil {
		return 0
	}
	return *u.Cost
}
