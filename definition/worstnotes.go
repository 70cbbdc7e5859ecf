// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strings"
)

// Notes say why something has no bound: who may ask without end, whose time
// nothing bounds, which price is not known. Each has its place in the file.
func (w *WorstCase) Notes() Problems {
	l := newLoader()
	for i := range w.Agents {
		a := w.Agents[i].Agent
		around := w.of.loopOf(a)
		switch {
		case a.Type == TypeLoop && w.Agents[i].Seconds.Unbounded() && around.MaxIterations == 0 && around.Timeout == 0:
			l.note(a.at("max_iterations"), CodeNoBound, "nothing bounds how often %q runs its steps but what they come to", a.Name).
				Hint = "give timeout, or max_iterations"
		case a.Type == TypeHuman && a.Human.Deadline == 0:
			l.note(a.at("question"), CodeNoBound, "nothing bounds how long %q waits for a person", a.Name).Hint = "give deadline, such as 24h, and default: the answer then"
		case a.Type == TypeFunc:
			l.note(a.at("func"), CodeNoBound, "%q is Go, and may ask models: nobody knows how often", a.Name)
			w.timeNote(l, &w.Agents[i])
		case a.Type == TypeLLM || a.Type == TypeCommand:
			w.timeNote(l, &w.Agents[i])
		}
		if a.Type == TypeLLM {
			w.callNotes(l, &w.Agents[i])
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
		hint = fmt.Sprintf("give %q a timeout, or the loop around", step.Name)
	case u.Agent.Type == TypeLLM:
		hint = "a loop around it with max_iterations: 1 and a timeout would"
	}
	l.note(u.Agent.at("name"), CodeNoBound, "nothing bounds how long %q takes", u.Agent.Name).Hint = hint
}

func (w *WorstCase) callNotes(l *loader, u *AgentWorst) {
	a := u.Agent
	for _, t := range a.LLM.Tools {
		if t.Exit == "" {
			p := l.note(a.at(t.field), CodeNoBound, "%q may call tools as often as it likes, and is asked again after each", a.Name)
			p.Hint = "a budget of calls on a loop around it bounds that"
			if n := w.Total.Calls; !n.Unbounded() {
				p.Hint = fmt.Sprintf("here %.0f requests end the run, or a loop of it", float64(n))
			}
			break
		}
	}
	// Where the file names no model, whoever runs it says which it is.
	if w.of.given.EveryModel != "" {
		return
	}
	if by := a.naming(); by != nil && u.Unpriced && u.Cost.Unbounded() && !strings.HasPrefix(by.Model, scriptedProvider+"/") {
		l.note(by.at("model"), CodePrice, "the price of %q is not known", by.Model).
			Hint = "add it to the root: prices: {" + by.Model + ": {input: …, output: …}}, for a million tokens; 0 is free"
	}
}
