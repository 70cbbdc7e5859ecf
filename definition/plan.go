// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"

	"github.com/refrain-dev/refrain/loop"
)

// Plan returns the rules that a run of the loop follows; nil for an agent that is no
// loop. The checks and [Definition.Worst] look at this plan, rehearsals play it, and
// the loop agent that [Definition.Build] makes follows it. Do not change what its
// pointers lead to: they are the definition's.
func (a *Agent) Plan() *loop.Plan {
	if a.Type != TypeLoop {
		return nil
	}
	return a.planWith(a.Loop)
}

// planWith is the plan of a loop with l in place of what the file says of it. A
// limit from outside makes the difference.
func (a *Agent) planWith(l *Loop) *loop.Plan {
	p := &loop.Plan{
		Name: a.Name, MaxIterations: l.MaxIterations, Order: slices.Clone(l.Order), CanExit: canExit(a),
		StopWhen: l.StopWhen, StopCheck: l.StopCheck, Score: l.Score,
		OnError: a.OnError, MaxConsecutiveFailures: l.MaxConsecutiveFailures,
		Timeout: loop.Duration(l.Timeout), IterationTimeout: loop.Duration(l.IterationTimeout),
		Budget: l.Budget, Reserve: l.Reserve, NoProgress: l.NoProgress, NotWorth: l.NotWorth,
		QualityGate: l.QualityGate, OnRegression: l.OnRegression, BestOnExit: l.BestOnExit, FinalizeEach: l.FinalizeEach,
		DelayAfter: loop.Duration(l.IterationDelay), StateLimit: l.StateLimit,
	}
	for _, sub := range a.SubAgents {
		p.Steps = append(p.Steps, sub.planStep())
	}
	return p
}

// planStep is how the loop around the agent treats it.
func (a *Agent) planStep() loop.Step {
	s := loop.Step{Name: a.Name, Finalizer: a.OutputKey == LoopOutput}
	if a.Type != TypeLoop { // a loop's on_error is for its own steps
		s.OnError = a.OnError
	}
	if own := a.Step; own != nil {
		s.Timeout, s.Adaptive, s.Retry, s.Circuit = loop.Duration(own.Timeout), own.Adaptive, own.Retry, own.Circuit
		s.DelayBefore, s.DelayAfter = loop.Duration(own.DelayBefore), loop.Duration(own.DelayAfter)
	}
	return s
}
