// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Loop has what the steps of a loop can know about it. The loop agent updates it between steps. All other code only
// reads it.
type Loop struct {
	// Name is the loop agent's name, and Address its address.
	Name    string
	Address session.Address
	// Goal and Instructions say what the loop is for and how to reach it. Agents in the loop
	// that ask a model add them to their prompts.
	Goal, Instructions string
	// IterationAddress is the address of the running iteration, such as "story/refine[3]".
	IterationAddress session.Address
	// Iteration counts from 1.
	Iteration int
	// Plan has the rules of the loop, such as its limits. It is nil in a loop without rules. Nobody changes it.
	Plan *loop.Plan
	// Outer is the loop around this one; nil if there is none.
	Outer *Loop
	// Started is when the loop began. It is zero if nothing in the loop reads it.
	Started time.Time
	// Results has the results of earlier iterations.
	Results
	// Leg has the settings that the loop has changed since it last converged; nil before the first leg. See loop.Leg.
	Leg *Leg
	// Since is the first iteration of a leg that began from the loop's start. The agents of the loop see no earlier
	// iteration. 0 means that they see all.
	Since int
	// Sample identifies the answer that the running step gives as a judge. It is nil if the step is no judge, or is a
	// judge that is asked once.
	Sample *Sample
	// Hints are what people have told the run for this iteration.
	Hints []mark.Hint
	// Scores is true while the running step gives the score, and Scorers names further agents that write it. None of them gets
	// hints, because scores would not compare.
	Scores  bool
	Scorers []string
	// Refusal returns why the agent at an address may not leave the loop, or "" if it may. A
	// nil function lets every agent leave.
	Refusal func(at session.Address) string
	// Cache has the values that loop agents inside this one keep from one run to the next, each agent under its own
	// keys. Nested loops share it. It is nil if no loop needs it.
	Cache *sync.Map
}

// Results has what the steps of a loop can know about the results of its earlier iterations.
type Results struct {
	// Score is the score of the previous iteration and BestScore the best so far; nil if there
	// is none.
	Score, BestScore *float64
	// Prev is the state after the previous iteration, and Best the state after the best one.
	// They are nil if there is no such iteration, or if the loop keeps no states.
	Prev, Best map[string]any
	// Rejected is the previous iteration if it was not accepted, or nil.
	Rejected *RejectedIteration
	// History has the iterations before this one. It is nil unless a step reads it: see [Traits].
	History *History
}

// MaxIterations returns the limit of the loop's iterations; 0 means no limit.
func (l *Loop) MaxIterations() uint {
	if l.Plan == nil {
		return 0
	}
	return l.Plan.MaxIterations
}

// Leg has the settings that a loop has changed for some of its agents.
type Leg struct {
	Settings
	// Agents are the names of the agents for which the settings hold.
	Agents []string
}

// Settings are settings of an agent that asks a model. An empty field keeps the agent's own setting.
type Settings struct {
	// Model is a name among the models of the agent, and Thinking one of minimal, low, medium and high. Instructions are
	// added to the agent's own.
	Model, Instructions, Thinking string
}

// Settable is an agent that uses the settings of [Loop.SettingsOf].
type Settable interface {
	// Models returns the names that Settings.Model can have.
	Models() []string
}

// SettingsOf returns the settings that the loop, and the loops around it, have changed for an agent. The innermost
// loop that sets Model or Thinking decides. The Instructions of all loops are joined, those of the outermost loop
// first.
func (l *Loop) SettingsOf(agent string) (s Settings) {
	for ; l != nil; l = l.Outer {
		leg := l.Leg
		if leg == nil || !slices.Contains(leg.Agents, agent) {
			continue
		}
		s.Model, s.Thinking = cmp.Or(s.Model, leg.Model), cmp.Or(s.Thinking, leg.Thinking)
		if s.Instructions == "" {
			s.Instructions = leg.Instructions
		} else if leg.Instructions != "" {
			s.Instructions = leg.Instructions + "\n\n" + s.Instructions
		}
	}
	return s
}

// GivesScore reports whether an agent in the loop, or the loop itself, belongs to a step that gives the score of a loop around it.
// Such an agent gets no hints.
func (l *Loop) GivesScore(agent string) bool {
	for ; l != nil; l = l.Outer {
		if l.Scores || slices.Contains(l.Scorers, agent) {
			return true
		}
		agent = l.Name
	}
	return false
}

// HintText returns the hints for an agent in the loop, of all loops around it, as a paragraph of its prompt; "" without hints, and for
// an agent that gives a score.
func (l *Loop) HintText(agent string) string {
	if l.GivesScore(agent) {
		return ""
	}
	var texts []string
	for ; l != nil; l = l.Outer {
		for i := len(l.Hints) - 1; i >= 0; i-- {
			texts = append(texts, l.Hints[i].Text)
		}
	}
	if texts == nil {
		return ""
	}
	slices.Reverse(texts)
	return "A person says for this iteration:\n" + strings.Join(texts, "\n")
}

// Fresh returns the nearest loop, from l outwards, whose leg began from its start; nil if there is none.
func (l *Loop) Fresh() *Loop {
	for ; l != nil; l = l.Outer {
		if l.Since > 0 {
			return l
		}
	}
	return nil
}

// RejectedIteration is an iteration that its loop has not accepted.
type RejectedIteration struct {
	Iteration int
	// Reason says why, for people and models.
	Reason string
	// State is the state at the end of the iteration. It is nil if the loop keeps no states.
	State map[string]any
}

// snapshot returns a copy of l and of the loops around it, for a step that may outlive the iteration.
func (l *Loop) snapshot() *Loop {
	if l == nil {
		return nil
	}
	now := *l
	now.Outer = l.Outer.snapshot()
	return &now
}

// Loop returns the nearest loop around the step, or nil.
func (p Place) Loop() *Loop {
	if inv := p.inv; inv != nil {
		return inv.loop
	}
	return nil
}

// ExitRefusal returns why the agent may not leave the nearest loop around it, as a text for a
// model. It returns "" if it may, or if there is no loop.
func (p Place) ExitRefusal() string {
	l := p.Loop()
	if l == nil || l.Refusal == nil {
		return ""
	}
	return l.Refusal(p.Address())
}

// Address returns the address of the step, or "" outside a step.
func (p Place) Address() session.Address {
	if inv := p.inv; inv != nil {
		return inv.address
	}
	return ""
}

// IsInside reports whether l or a loop around it has that name.
func (l *Loop) IsInside(name string) bool {
	for ; l != nil; l = l.Outer {
		if l.Name == name {
			return true
		}
	}
	return false
}

// Marks reports whether the run writes marks into its log.
func (p Place) Marks() bool {
	inv := p.inv
	return inv != nil && inv.run.Marks
}

// RaceLimit limits one of several loops that run in parallel, until it is known which loop is the best. The agent that
// runs the loops makes one for each, and gives it to the loop by [WithRaceLimit].
type RaceLimit struct {
	// Loop is the name of the loop.
	Loop string
	// Iterations and Budget limit the loop in addition to its own limits; 0 and the zero value set no limit.
	Iterations uint
	Budget     budget.Limits
	// OnLimit is called when the loop has reached one of these limits, and no limit of its own. It waits until the best
	// loop is known, and reports whether this loop continues without them. It returns false if ctx has ended. If
	// OnLimit is nil the loop stops.
	OnLimit func(ctx context.Context, s mark.Standing) (goesOn bool)
	// OnStop is called with the standing of a loop that stops.
	OnStop func(mark.Standing)
}

type raceLimitKey struct{}

// WithRaceLimit returns ctx with limits for the loop that runs under it.
func WithRaceLimit(ctx context.Context, s *RaceLimit) context.Context {
	return context.WithValue(ctx, raceLimitKey{}, s)
}

// RaceLimitOf returns the limits of the loop of that name; nil if it has none.
func RaceLimitOf(ctx context.Context, loop string) *RaceLimit {
	if s, _ := ctx.Value(raceLimitKey{}).(*RaceLimit); s != nil && s.Loop == loop {
		return s
	}
	return nil
}
