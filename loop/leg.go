// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"slices"
	"strings"
)

// Leg is what a loop does when it has converged, in place of stopping: it goes back to the best version, or to its
// start, and goes on with other settings. Each leg of a plan runs once, in order, until the loop converges again. Legs
// share the limits and the ranking of the loop, so that the best of all is handed back.
type Leg struct {
	// Model is the name of the model that the agents in Steps ask. "" means their own.
	Model string `json:"model,omitzero"`
	// Instructions are added to those of the agents in Steps.
	Instructions string `json:"instructions,omitzero"`
	// Thinking is how much the agents in Steps think: minimal, low, medium or high. "" means their own.
	Thinking string `json:"thinking,omitzero"`
	// Fresh begins the leg from the state at the loop's start, or after its Baseline. Of the earlier iterations the leg
	// keeps only the best version and its score.
	Fresh bool `json:"fresh,omitzero"`
	// Steps are the names of steps, or of agents in them, for which Model, Instructions and Thinking hold. Empty means
	// all agents that ask a model, except the judge, the scorers and the finalizer.
	Steps []string `json:"steps,omitzero"`
}

// Sets reports whether the leg changes the settings of agents.
func (l *Leg) Sets() bool { return l.Model != "" || l.Instructions != "" || l.Thinking != "" }

// String returns what the leg does, for people, such as "model openai/gpt-5, thinking high"; "" for nil.
func (l *Leg) String() string {
	if l == nil {
		return ""
	}
	var parts []string
	if l.Fresh {
		parts = append(parts, "from the start")
	}
	if l.Model != "" {
		parts = append(parts, "model "+l.Model)
	}
	if l.Thinking != "" {
		parts = append(parts, "thinking "+l.Thinking)
	}
	if l.Instructions != "" {
		parts = append(parts, "more instructions")
	}
	return strings.Join(parts, ", ")
}

// Leg returns the leg with a number, from 1; nil for 0, which is the time before the first leg.
func (p *Plan) Leg(n int) *Leg {
	if n < 1 || n > len(p.OnPlateau) {
		return nil
	}
	return &p.OnPlateau[n-1]
}

// legTally is what a tally knows of the running leg.
type legTally struct {
	// LegScored is the number of scores before the leg began.
	LegScored int `json:"leg_scored,omitzero"`
	// Own is the best version of a leg that began from the loop's start.
	Own best `json:"own,omitzero"`
}

// isFreshLeg reports whether the running leg began from the loop's start.
func (p *Plan) isFreshLeg(t *Tally) bool {
	l := p.Leg(t.Leg)
	return l != nil && l.Fresh
}

// legDue reports whether the next leg is due: the loop has converged, has another leg, and may run another iteration.
func (p *Plan) legDue(t *Tally) bool {
	if t.Leg >= len(p.OnPlateau) || p.MaxIterations > 0 && uint(t.Iteration) >= p.MaxIterations || p.reasonWithoutLegs(t) != ReasonConverged {
		return false
	}
	if p.Budget == nil {
		return true
	}
	full, _ := p.budgetUsed(t)
	return !full
}

// decideLeg turns a decision into one that begins the next leg.
func (p *Plan) decideLeg(t *Tally, d *Decision) {
	d.Action, d.Leg, d.Why = BeginLeg, t.Leg+1, p.plateau(t)
	if !p.OnPlateau[t.Leg].Fresh {
		d.To = t.BestIteration
	}
}

// beginLeg begins the next leg after the driver has restored its state. The counts towards convergence start again from
// zero.
func (p *Plan) beginLeg(t *Tally, o *addedOutcome) {
	switch {
	case o.Canceled != "":
		t.Canceled = truncate(o.Canceled)
		return
	case o.Failure != nil:
		t.Fatal = &StepFailure{Failure: Failure{Kind: o.Failure.Kind, Message: truncate("begin another leg: " + o.Failure.Message)}}
		return
	}
	t.Leg++
	t.legTally, t.plateau, t.repetition = legTally{LegScored: t.Scored}, plateau{}, repetition{}
	t.Rival.Ahead, t.Judge.Same = t.Rival.BestAhead, 0
	if p.isFreshLeg(t) {
		t.Rejudge = false // the state is not that of the best
		t.Own = best{Score: t.Start, Count: t.StartCount}
	}
	t.Accepted = p.rollbackTarget(t).Score
}

// best is the best version of a ranking.
type best struct {
	Score     *float64 `json:"score,omitzero"` // nil if there is none
	Iteration int      `json:"iteration,omitzero"`
	Count     int      `json:"count,omitzero"` // number of the judge's answers that Score is the mean of
}

func (t *Tally) bestVersion() best { return best{t.Best, t.BestIteration, t.BestCount} }

// rollbackTarget returns the version that a rollback restores: the best of all or, in a leg that began from the loop's start,
// the best of the leg.
func (p *Plan) rollbackTarget(t *Tally) best {
	if p.isFreshLeg(t) {
		return t.Own
	}
	return t.bestVersion()
}

// updateBest updates a ranking with the score of the iteration that has just ended, and reports whether that iteration is now
// the best.
func (p *Plan) updateBest(t *Tally, b best) (_ best, first bool) {
	s := p.Score
	switch {
	case p.judgedAgain(t, b):
		return best{new(*t.Score), b.Iteration, t.Judge.Count}, false
	case b.Score != nil && (!s.better(*t.Score, *b.Score) || s.gain(*b.Score, *t.Score) <= p.lead(t)):
		return b, false
	}
	first = true
	b = best{Score: new(*t.Score), Iteration: t.Iteration}
	if p.proves() {
		b.Count = t.answers()
	}
	return b, first
}

// recent returns the last scores of the running leg.
func (t *Tally) recent() []float64 {
	if t.Leg == 0 {
		return t.Scores
	}
	return t.Scores[max(0, len(t.Scores)-(t.Scored-t.LegScored)):]
}

// spreadScores returns the scores whose spread gives the noise of a judge that answers once. In a leg from the loop's
// start it returns only the scores of the leg, because the drop to the start is not noise.
func (p *Plan) spreadScores(t *Tally) []float64 {
	if p.isFreshLeg(t) {
		return t.recent()
	}
	return t.Scores
}

// legText returns a text that says in which leg the loop is; "" in a plan without legs.
func (p *Plan) legText(t *Tally) string {
	n := len(p.OnPlateau)
	switch l := p.Leg(t.Leg); {
	case n == 0:
		return ""
	case l == nil:
		return fmt.Sprintf("leg 1 of %d has not begun", n)
	default:
		return fmt.Sprintf("leg %d of %d: %s", t.Leg, n, l)
	}
}

// legs checks the legs in OnPlateau.
func (c *checker) legs(p *Plan) {
	if len(p.OnPlateau) == 0 {
		return
	}
	if s := p.Score; p.NotWorth == nil && (s == nil || s.MinDelta == nil && s.MinDeltaPercent == nil) {
		c.about("on_plateau", "has no plateau to wait for: nothing says when the loop has converged",
			"give score.min_delta, score.min_delta_percent or not_worth")
	}
	for i := range p.OnPlateau {
		l, field := &p.OnPlateau[i], fmt.Sprintf("on_plateau[%d]", i)
		switch {
		case l.Fresh && p.compares():
			c.about(field, "begins from the start, and score.judge compares with the best", "leave out fresh, or compare")
		case !l.Sets() && !l.Fresh:
			c.about(field, "changes nothing", "give model, instructions, thinking or fresh")
		case !l.Sets() && len(l.Steps) > 0:
			c.about(field+".steps", "has nothing that changes", "give model, instructions or thinking")
		}
		if l.Thinking != "" && !slices.Contains(ThinkingLevels(), l.Thinking) {
			c.reportUnknown(field+".thinking", field+".thinking", fmt.Sprintf("is %q", l.Thinking), l.Thinking, ThinkingLevels(),
				"use minimal, low, medium or high")
		}
		for k, name := range l.Steps {
			c.legStep(p, fmt.Sprintf("%s.steps[%d]", field, k), name, slices.Contains(l.Steps[:k], name))
		}
	}
}

// ThinkingLevels returns the levels that Leg.Thinking can have, from the least to the most.
func ThinkingLevels() []string { return []string{"minimal", "low", "medium", "high"} }

// GivenBy reports whether a step is the judge or one of the scorers. For a nil score it returns false.
func (s *Score) GivenBy(step string) bool {
	return s != nil && (s.Judge != nil && s.Judge.Step == step || slices.Contains(s.Scorers, step))
}

// legStep reports a problem if a step that the leg names must not change its settings. It does not check whether the
// name exists, because only the driver knows the names of agents.
func (c *checker) legStep(p *Plan, field, name string, twice bool) {
	final := p.finalIndex()
	switch {
	case twice:
		c.about(field, fmt.Sprintf("names %q twice", name), "")
	case p.Score.GivenBy(name):
		c.about(field, fmt.Sprintf("names %q, which gives the score", name),
			"leave it out: all legs are measured in the same way")
	case final >= 0 && p.Steps[final].Name == name:
		c.about(field, fmt.Sprintf("names the finalizer %q", name), "it runs after the last leg; leave it out")
	}
}
