// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
)

// Assumed is what a file does not say and [Definition.Worst] is to take for
// granted. Zero values leave it unknown, or as the file says.
type Assumed struct {
	// Model is asked by agents that name none, EveryModel by all, whatever the
	// file says.
	Model, EveryModel string
	// InputTokens is how many tokens each request has at most, OutputTokens
	// each answer of an agent without max_tokens.
	InputTokens, OutputTokens int64
	// MaxIterations and Timeout are those of [BuildConfig].
	MaxIterations *uint
	Timeout       *time.Duration
	// MaxModelCalls and Budget are those of agent.RunConfig: a guard that takes
	// the place of the file's, and what the whole run may use.
	MaxModelCalls int
	Budget        *budget.Limits
}

// Allows is nil if a run can have the limits that are given. Else it is what
// [Definition.Build] would say: there is no loop that they could be for, or they
// take away a loop's only bound.
func (d *Definition) Allows(given Assumed) error {
	return (&worst{def: d, given: given}).limit()
}

// limit finds the loop that limits from outside are for. Those that no run can
// have count for nothing.
func (w *worst) limit() error {
	b := builder{cfg: BuildConfig{MaxIterations: w.given.MaxIterations, Timeout: w.given.Timeout}}
	if err := b.limit(w.def); err != nil {
		return err
	}
	w.limited, w.limits = b.limited, b.limits
	return nil
}

// planOf is the rules that a loop follows in the run; nil for an agent that is no
// loop.
func (w *worst) planOf(a *Agent) *loop.Plan { return w.as(a).Plan() }

// as is an agent as it is in the run.
func (w *worst) as(a *Agent) *Agent {
	if a != w.limited {
		return a
	}
	as := *a
	as.Loop = &w.limits
	return &as
}

// allowed is the budget of the run, as loops have theirs; nil if there is none.
func (w *worst) allowed() *loop.Budget {
	if w.given.Budget == nil {
		return nil
	}
	return new(loop.Budget(*w.given.Budget))
}

// Stops are the ways in which a loop of the run can end, as [Agent.Stops], under
// what was assumed.
func (w *WorstCase) Stops(a *Agent) []StopWay {
	if a.Type != TypeLoop {
		return nil
	}
	ways := w.of.as(a).Stops()
	if b := w.of.allowed(); b != nil && a.asksModel() {
		ways = append(ways, StopWay{loop.ReasonBudget, "when the run has used " + budgetWords(b)})
	}
	return ways
}

// Problems are the warnings and notes of the definition, as far as they hold
// under what was assumed, and those of [WorstCase.Notes].
func (w *WorstCase) Problems() Problems {
	of := w.of
	all := slices.Concat(of.def.warnings, of.def.notes)
	if a := of.limited; a != nil {
		stale := timeProblems(a)
		all = slices.DeleteFunc(all, func(p *Problem) bool {
			// Not by their places, which may have been traced to another file.
			return slices.ContainsFunc(stale, func(q *Problem) bool { return p.Code == q.Code && p.Message == q.Message })
		})
		as := of.as(a)
		if of.given.Timeout != nil { // as if the file gave it
			as.nodes = maps.Clone(a.nodes)
			if _, given := a.nodes["timeout"]; !given {
				as.nodes["timeout"] = cmp.Or(a.nodes["max_iterations"], a.nodes["name"], a.node)
			}
		}
		all = append(all, timeProblems(as)...)
	}
	return append(all, w.Notes()...)
}

// timeProblems are what there is to say about a loop's times.
func timeProblems(a *Agent) Problems {
	c := &checker{loader: newLoader()}
	c.times(a)
	c.presetTimes(a)
	return append(c.problems, c.notes...)
}
