// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/loop"
)

// Stops returns the ways in which a loop of the run can end, as [Agent.Stops] does, under the
// assumptions.
func (w *WorstCase) Stops(a *Agent) []StopWay {
	if a.Type != TypeLoop {
		return nil
	}
	ways := w.of.as(a).Stops()
	if b := w.of.allowed(); b != nil && a.asksModel() {
		ways = append(ways, StopWay{Reason: loop.ReasonBudget, Text: "when the run has used " + budgetWords(b)})
	}
	return ways
}

// Problems returns the warnings and notes of the definition that hold under the assumptions, and
// those of [WorstCase.Notes].
func (w *WorstCase) Problems() Problems {
	of := w.of
	all := slices.Concat(of.def.warnings, of.def.notes)
	if a := of.limited; a != nil {
		stale := timeProblems(a)
		all = slices.DeleteFunc(all, func(p *Problem) bool {
			// Not by their places, which may have been traced to another file.
			return slices.ContainsFunc(stale, func(q *Problem) bool {
				return p.Code == q.Code && p.Message == q.Message
			})
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

// Notes returns a note for each missing limit: an agent that may ask a model without end, an agent
// without a time limit, a model whose price is unknown. Each has its position in the file.
func (w *WorstCase) Notes() Problems {
	l := newLoader()
	for i := range w.Agents {
		if notes := w.Agents[i].Agent.Type.kind().notes; notes != nil {
			notes(w, l, &w.Agents[i])
		}
	}
	return l.notes.sort()
}

func (w *WorstCase) timeNote(l *loader, u *AgentWorst) {
	if !w.Total.Seconds.Unbounded() || !u.Seconds.Unbounded() || u.Agent.tool {
		return
	}
	hint := "give it a timeout"
	switch step := u.Agent.within(); {
	case u.Agent.isStep():
	case step != nil && u.Agent.Type == TypeLLM:
		hint = fmt.Sprintf("give %q or the loop around it a timeout", step.Name)
	case u.Agent.Type == TypeLLM:
		hint = "put it into a loop with max_iterations: 1 and a timeout"
	}
	l.note(u.Agent.at("name"), CodeNoBound, "nothing limits how long %q takes", u.Agent.Name).Hint = hint
}

// besideNote says that branches which are meant to work at once wait for each other,
// as the budget has no room for the first answers of all.
func (w *WorstCase) besideNote(l *loader, a *Agent) {
	var all int64
	for _, branch := range a.SubAgents {
		var most int64
		for b := range branch.All {
			if b.Type != TypeLLM {
				continue
			}
			out := int64(llmagent.DefaultOutputTokens)
			if b.LLM.MaxTokens > 0 {
				out = min(out, int64(b.LLM.MaxTokens))
			}
			most = max(most, out)
		}
		all += most
	}
	for _, b := range w.of.budgetsOn(a) {
		if b.Tokens > 0 && all > b.Tokens {
			l.note(a.at("name"), CodeStop, "the branches of %q wait for each other: their first answers need %d "+
				"tokens in all, but the budget of %s has %d", a.Name, all, b.of, b.Tokens).
				Hint = "give the agents in it max_tokens"
		}
	}
}

// roomOf is a budget, what it is of, and where it is said.
type roomOf struct {
	Tokens int64
	Cost   *float64
	of     string
	at     source.Span
}

// budgetsOn are the budgets that an agent's requests have to fit into: those of the
// loops around it, and that of the run.
func (w *worst) budgetsOn(a *Agent) (all []roomOf) {
	for p := a; p != nil; p = p.parent {
		if p.Type != TypeLoop || p.Loop == nil || p.Loop.Budget == nil {
			continue
		}
		b := p.Loop.Budget
		all = append(all, roomOf{b.Tokens, b.Cost, quoteText(p.Name), p.at("budget")})
	}
	if g := w.given.Budget; g != nil {
		all = append(all, roomOf{g.Tokens, g.Cost, "the run", a.at("name")})
	}
	return all
}
