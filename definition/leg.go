// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/loop"
)

var legParts = parts[loop.Leg]{rows: []row[loop.Leg]{
	field("model", "model that the steps ask instead", plain(modelShape, (*reader).text), func(l *loop.Leg) *string { return &l.Model }),
	field("instructions", "text added to the instructions of the steps, with placeholders such as {{best.draft}}", aWords, func(l *loop.Leg) *string { return &l.Instructions }),
	field("thinking", "how much the steps think: minimal, low, medium or high", oneWord(loop.ThinkingLevels()...), func(l *loop.Leg) *string { return &l.Thinking }),
	field("fresh", "true begins from the state at the loop's start, in place of the best; {{best.KEY}} has the best", aBool, func(l *loop.Leg) *bool { return &l.Fresh }),
	field("steps", "names of the agents for which the entry holds; all that ask a model if left out, except those that give the score and the finalizer",
		each(aText, listing{empty: "leave it out for all that ask a model", unique: true}), func(l *loop.Leg) *[]string { return &l.Steps }),
}, what: "on_plateau"}

// legValue reads an entry of on_plateau: a map, or the word fresh.
var legValue = value[*loop.Leg]{
	func() shape { return schema.Either(schema.OneOf("fresh"), legParts.shape()) },
	func(p place, n *source.Node) (*loop.Leg, bool) {
		if n.Kind == source.Scalar {
			return &loop.Leg{Fresh: true}, p.choice(n, p.field, []string{"fresh"}) != ""
		}
		return legParts.read(p, n)
	},
}

func legsOf(all []*loop.Leg) (legs []loop.Leg) {
	for _, l := range all {
		if l != nil {
			legs = append(legs, *l)
		}
	}
	return legs
}

// legs checks the models, the instructions and the steps of on_plateau.
func (c *checker) legs(a *Agent) {
	var names []string
	for sub := range a.All {
		if sub != a {
			names = append(names, sub.Name)
		}
	}
	a.Loop.legs = make([]*Agent, len(a.Loop.OnPlateau))
	for i := range a.Loop.OnPlateau {
		leg, field := &a.Loop.OnPlateau[i], index("on_plateau", i)
		if leg.Model != "" {
			by := *a
			by.Model, by.nodes = leg.Model, map[string]*source.Node{"model": a.nodes[field+".model"]}
			c.model(&by)
			a.Loop.legs[i] = &by
		}
		c.template(a, field+".instructions", leg.Instructions, template.Canonical)
		asked := a.askedIn(leg)
		if len(leg.Steps) == 0 && leg.Sets() && len(asked) == 0 && !a.incomplete() {
			c.report(a.at(field), CodeStop, "%s changes no step: none asks a model, except those that give the score and the finalizer", field).
				Hint = "write fresh, or leave it out"
		}
		for k, name := range leg.Steps {
			at := index(field+".steps", k)
			switch sub := a.descendant(name); {
			case sub == nil:
				c.report(a.at(at), CodeStop, "%s names %q, which is not in the loop", at, name).
					suggest(meant.Hint(name, names, "its agents are "+strings.Join(names, ", ")))
			case a.gives(sub) && !a.Plan().Score.GivenBy(name):
				c.report(a.at(at), CodeStop, "%s names %q, which gives the score", at, name).
					Hint = "leave it out: all legs are measured in the same way"
			case !sub.asksModel():
				c.report(a.at(at), CodeStop, "%s names %q, which asks no model", at, name).Hint = "name an agent of type llm"
			}
		}
	}
}

// fewForALeg is the number of iterations below which another leg hardly pays.
const fewForALeg = 8

// legNote notes a limit that leaves too few iterations for on_plateau.
func (w *WorstCase) legNote(l *loader, a *Agent) {
	p := w.of.planOf(a)
	if len(p.OnPlateau) == 0 || p.MaxIterations == 0 {
		return
	}
	soonest := uint(3) // scores that a forecast needs
	if s := p.Score; s != nil && (s.MinDelta != nil || s.MinDeltaPercent != nil) {
		if soonest = max(1, s.Patience) + 1; s.Judge != nil {
			soonest = max(soonest, 7) // see doc/stopping.md
		}
	}
	if left := int(p.MaxIterations) - int(soonest); left < fewForALeg {
		l.note(a.at("max_iterations"), CodeStop, "a flat course ends after %d iterations or more, and max_iterations %d leaves %d at most for on_plateau",
			soonest, p.MaxIterations, max(0, left)).
			Hint = fmt.Sprintf("another way pays with %d iterations or more: give max_iterations: %d", fewForALeg, soonest+fewForALeg)
	}
}

// gives reports whether an agent, or one inside it, gives the score of the loop.
func (a *Agent) gives(sub *Agent) bool {
	s := a.Loop.Score
	if s == nil {
		return false
	}
	if j := s.Judge; j != nil && (j.Step == sub.Name || a.descendant(j.Step) != nil && sub.in(a.descendant(j.Step))) {
		return true
	}
	keys := scoreKeys(s)
	return sub.contains(func(in *Agent) bool { return in.writesOneOf(keys) })
}

// askedIn returns the agents for which an entry of on_plateau holds.
func (a *Agent) askedIn(leg *loop.Leg) (asked []*Agent) {
	if !leg.Sets() {
		return nil
	}
	add := func(sub *Agent, all bool) {
		for in := range sub.steps {
			if in.Type == TypeLLM && (all || !a.gives(in)) && !slices.Contains(asked, in) {
				asked = append(asked, in)
			}
		}
	}
	for _, name := range leg.Steps {
		if sub := a.descendant(name); sub != nil {
			add(sub, true)
		}
	}
	for _, sub := range a.SubAgents {
		if len(leg.Steps) == 0 && sub.OutputKey != LoopOutput {
			add(sub, false)
		}
	}
	return asked
}

// planLegs returns the legs of the plan, with the names of the agents for which each holds.
func (a *Agent) planLegs() []loop.Leg {
	legs := slices.Clone(a.Loop.OnPlateau)
	for i := range legs {
		if len(legs[i].Steps) > 0 {
			continue
		}
		for _, sub := range a.askedIn(&legs[i]) {
			legs[i].Steps = append(legs[i].Steps, sub.Name)
		}
	}
	return legs
}

// legModels returns the models that loops around an agent that asks a model may give it, each as the agent that names it.
func (a *Agent) legModels() (all []*Agent) {
	for l := a.loopAround(); l != nil; l = l.loopAround() {
		for i, by := range l.Loop.legs {
			if by != nil && slices.Contains(l.askedIn(&l.Loop.OnPlateau[i]), a) {
				all = append(all, by)
			}
		}
	}
	return all
}
