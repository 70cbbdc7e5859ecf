// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

var exitRows = []row[Agent]{field("can_exit_loop", "true lets the agent, and agents inside it, end the loop; true is "+
	"the default with exit_when or the tool exit_loop, false otherwise. It gives an llm agent that tool, and lets a "+
	"person who approves end the loop", aBool, func(a *Agent) *bool { return &a.CanExitLoop })}

// exit checks which agents may end a loop.
func (c *checker) exit(a *Agent) {
	permission, given := a.nodes["can_exit_loop"]
	given = given && !source.IsNull(permission)
	leaves := exits(a)
	fin := a
	for fin != nil && fin.OutputKey != LoopOutput {
		fin = inLoop(fin)
	}
	around := a.loopAround()
	field, what := a.asks()
	switch {
	case a.inTool() && (field != "" || given && a.CanExitLoop):
		c.report(a.at(cmp.Or(field, "can_exit_loop")), CodeNoLoop, "%q is a tool of another agent, so it cannot end that agent's loop", a.Name).
			Hint = "give can_exit_loop to the agent that has the tool"
	case around == nil && field != "":
		c.report(a.at(field), CodeNoLoop, "%s ends a loop, but %q is not in a loop", what, a.Name)
	case around == nil && given:
		c.report(a.at("can_exit_loop"), CodeNoLoop, "can_exit_loop is for agents in a loop, but %q is not in a loop",
			a.Name)
	case fin != nil && (field != "" || given && a.CanExitLoop):
		why := "%q runs after the loop has stopped, so it cannot end the loop"
		if around != nil && around.Loop.FinalizeEach {
			why = "%q is the finalizer: it cannot end the loop"
		}
		c.report(a.at(cmp.Or(field, "can_exit_loop")), CodeFinalizer, why, a.Name).Hint = "remove it, and let an earlier step end the loop"
	case given && !a.CanExitLoop && field != "":
		c.report(a.at(field), CodeCannot, "%s of %q would be refused: can_exit_loop is false", what, a.Name).Hint = "remove one of the two"
	case given && a.CanExitLoop && !leaves && a.Type != "":
		problem := c.warn(a.at("can_exit_loop"), CodeCannot, "%q never asks to end the loop", a.Name)
		problem.Hint = cmp.Or(a.Type.kind().yields, "give it exit_when, the condition that ends the loop")
	}
}

// asks returns the field by which an agent asks to end the loop, and a description of it.
func (a *Agent) asks() (field, what string) {
	if a.ExitWhen != "" {
		return "exit_when", "exit_when"
	}
	if t := a.exitTool(); t != nil {
		return t.field, "the tool " + t.Exit
	}
	return "", ""
}

// inLoop returns the enclosing agent of a within the same loop; nil if that agent is the loop.
func inLoop(a *Agent) *Agent {
	if a.parent == nil || a.parent.Type == TypeLoop {
		return nil
	}
	return a.parent
}

// inTool reports whether the agent is a tool, or inside a tool, within the same loop.
func (a *Agent) inTool() bool {
	for ; a != nil; a = inLoop(a) {
		if a.tool {
			return true
		}
	}
	return false
}

// mayExit reports whether an agent may end the enclosing loop, by its own permission or an enclosing agent's. With
// the permission, an agent that asks a model has the exit tool.
func (a *Agent) mayExit() bool {
	if a.loopAround() == nil || a.inTool() {
		return false
	}
	if _, given := a.nodes["can_exit_loop"]; given {
		return a.CanExitLoop
	}
	for ; a != nil; a = inLoop(a) {
		if a.CanExitLoop {
			return true
		}
	}
	return false
}

// exitWords describes when the agent ends the enclosing loop; empty if it never does.
func (a *Agent) exitWords() string {
	if a.ExitWhen != "" {
		return "when " + a.ExitWhen
	}
	if exits := a.Type.kind().exits; exits != nil {
		return exits(a)
	}
	return ""
}

// wordsIf returns the text if the condition holds, else "".
func wordsIf(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

// exits reports whether the agent, or an agent inside it, asks to end the enclosing loop.
func exits(a *Agent) bool {
	if a.exitWords() != "" && !a.anyone {
		return true
	}
	if a.Type == TypeLoop {
		return false // an exit in there ends that loop
	}
	return slices.ContainsFunc(a.SubAgents, exits)
}

// steps yields the agents in a loop that could end it. It leaves out the finalizer, and agents of inner loops.
func steps(a *Agent) []*Agent {
	var all []*Agent
	for _, sub := range a.SubAgents {
		if sub.OutputKey == LoopOutput && a.Type == TypeLoop {
			continue
		}
		all = append(all, sub)
		if sub.Type != TypeLoop {
			all = append(all, steps(sub)...)
		}
	}
	return all
}

// canExit returns the names of the agents that may end a loop, including the agents inside them.
func canExit(a *Agent) []string {
	names := []string{}
	for _, step := range steps(a) {
		if step.CanExitLoop {
			names = step.names(names)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// names appends the agent's name, and those of the agents that it runs.
func (a *Agent) names(all []string) []string {
	all = append(all, a.Name)
	for _, sub := range a.SubAgents {
		all = sub.names(all)
	}
	return all
}

// Permitted reports whether a file permits the agent to end its loop. It is false for an agent that may end the loop
// only because no file names an agent that may.
func (a *Agent) Permitted() bool { return a.CanExitLoop && !a.anyone }

// anyone lets every agent that asks a model end a loop that otherwise only its limit would end, if no agent has
// can_exit_loop.
func (c *checker) anyone(a *Agent) {
	if a.Loop.MaxIterations == 0 || a.Loop.StopWhen != nil || stops(a.Loop.Score) || a.incomplete() {
		return
	}
	all := steps(a)
	if slices.ContainsFunc(all, func(s *Agent) bool { return s.CanExitLoop || s.ExitWhen != "" }) {
		return
	}
	var names []string
	for _, s := range all {
		if s.Type == TypeLLM && !s.refused() && !s.copied() {
			s.CanExitLoop, s.anyone = true, true
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		c.warn(a.at("name"), CodeAnyone, "no agent in the loop %q has can_exit_loop, so every agent that asks a "+
			"model may end it: %s", a.Name, strings.Join(names, ", ")).
			Hint = "give can_exit_loop: true to the one that decides, or false to those that do not"
	}
}

// refused reports whether the file forbids the agent, or an enclosing agent of the same loop, to end the loop.
func (a *Agent) refused() bool {
	for ; a != nil; a = inLoop(a) {
		if _, given := a.nodes["can_exit_loop"]; given && !a.CanExitLoop {
			return true
		}
	}
	return false
}

// exitTool returns the exit tool among the agent's tools; nil if it has none.
func (a *Agent) exitTool() *Tool {
	if a.LLM == nil {
		return nil
	}
	for i := range a.LLM.Tools {
		if t := &a.LLM.Tools[i]; t.Exit != "" {
			return t
		}
	}
	return nil
}

// afterExit notes keys that are read after a loop and written by an agent that ends the loop, because the turn with
// the exit does not write its key.
func (c *checker) afterExit() {
	for i := range c.reads {
		rd := &c.reads[i]
		kind, key := rd.split()
		if kind != "key" || rd.any {
			continue
		}
		for _, w := range c.writers[key] {
			around := w.loopAround()
			if w.Type != TypeLLM || w.OutputKey != key || around == nil || !w.mayExit() || !outlives(rd.agent, around) {
				continue
			}
			p := c.note(rd.place(), CodeExitKey, "when %q ends the loop, %s keeps its old value: the turn that ends "+
				"a loop writes no key", w.Name, rd)
			if p.Hint = "if you do not want that, let another agent write the key, or end the loop"; len(c.writers[key]) == 1 {
				p.Hint = "the key is empty if that was the first turn: let another agent write it; the reason of the " +
					"exit is in the stop record"
			}
		}
	}
}

// outlives reports whether an agent runs after a loop, as its finalizer or outside it.
func outlives(a, around *Agent) bool {
	if !a.in(around) {
		return true
	}
	fin := around.finalizer()
	return fin != nil && a.in(fin) && !around.Loop.FinalizeEach
}

// StopWay is one way in which a loop can end.
type StopWay struct {
	Reason loop.StopReason `json:"reason"`
	// By is the step that asks to leave the loop; empty for all other ways.
	By string `json:"by,omitzero"`
	// Text describes it, as in "after 5 iterations"; it names By.
	Text string `json:"text"`
}

// Stops returns the ways in which a loop can end, besides an error and a cancellation; nil for an
// agent that is not a loop.
func (a *Agent) Stops() []StopWay {
	if a.Type != TypeLoop {
		return nil
	}
	var ways []StopWay
	l := a.Loop
	add := func(r loop.StopReason, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if r == loop.ReasonConverged && len(l.OnPlateau) > 0 {
			text += ", and again after each entry of on_plateau"
		}
		ways = append(ways, StopWay{Reason: r, Text: text})
	}
	for _, step := range steps(a) {
		if how := step.exitWords(); how != "" {
			ways = append(ways, StopWay{loop.ReasonExit, step.Name, step.Name + ": " + how})
		}
	}
	if l.StopWhen != nil {
		add(loop.ReasonCondition, "when %s", conditionWords(l.StopWhen))
	}
	if s := l.Score; s != nil {
		scoreStops(s, add)
	}
	if l.NoProgress != nil {
		add(loop.ReasonNoProgress, "when it goes round in circles")
	}
	if l.NotWorth != nil {
		add(loop.ReasonConverged, "when the next %s is expected to gain less than %s",
			perWords[cmp.Or(l.NotWorth.Per, loop.PerIteration)], decimal(l.NotWorth.Gain))
	}
	if p := a.parent; p != nil && p.races() {
		p.Parallel.Race.stops(p.Name, add)
	}
	if l.MaxIterations > 0 {
		add(loop.ReasonMaxIterations, "after %s", brief.Count(l.MaxIterations, "iteration"))
	}
	if l.Timeout > 0 {
		add(loop.ReasonTimeout, "after %s", clock(l.Timeout))
	}
	if b := l.Budget; b != nil {
		add(loop.ReasonBudget, "when %s are used", budgetWords(b))
	}
	return ways
}

var perWords = map[loop.Per]string{
	loop.PerIteration: "iteration", loop.PerMinute: "minute", loop.PerKTokens: "thousand tokens",
	loop.PerCost: "unit of cost",
}

func scoreStops(s *loop.Score, add func(loop.StopReason, string, ...any)) {
	if goals := targets(s, "≥", "≤"); goals != nil {
		add(loop.ReasonTarget, "when %s", strings.Join(goals, " and "))
	}
	var gains []string
	if s.MinDelta != nil {
		gains = append(gains, decimal(*s.MinDelta))
	}
	if s.MinDeltaPercent != nil {
		gains = append(gains, decimal(*s.MinDeltaPercent)+"%")
	}
	if gains != nil {
		often := ""
		if s.Patience > 1 {
			often = fmt.Sprintf(", %d times running", s.Patience)
		}
		add(loop.ReasonConverged, "when the score improves by less than %s%s", strings.Join(gains, " or "), often)
	}
}

// targets describes the targets of a score; least and most say on which side of them the score has to be.
func targets(s *loop.Score, least, most string) (all []string) {
	bound := least
	if s.LowerIsBetter {
		bound = most
	}
	if s.Target != nil {
		all = append(all, fmt.Sprintf("the score is %s %s", bound, decimal(*s.Target)))
	}
	if s.DimensionTarget != nil {
		all = append(all, fmt.Sprintf("every part of it is %s %s", bound, decimal(*s.DimensionTarget)))
	}
	return all
}

func budgetWords(b *loop.Budget) string {
	var parts []string
	if b.Calls > 0 {
		parts = append(parts, brief.Count(b.Calls, "request"))
	}
	if b.Tokens > 0 {
		parts = append(parts, brief.Count(b.Tokens, "token"))
	}
	if b.Cost != nil {
		parts = append(parts, decimal(*b.Cost)+" of cost")
	}
	return strings.Join(parts, " or ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// criteria describes when a loop has reached its goal, as the end of a sentence that begins "Call this function ONLY
// when"; empty if the definition does not say.
func criteria(l *Loop) string {
	var parts []string
	if goal := strings.TrimRight(strings.Join(strings.Fields(l.Goal), " "), "."); goal != "" {
		parts = append(parts, fmt.Sprintf("the goal is reached (%s)", goal))
	}
	if s := l.Score; s != nil {
		parts = append(parts, targets(s, "at least", "at most")...)
	}
	if l.StopWhen != nil {
		parts = append(parts, "this holds: "+conditionWords(l.StopWhen))
	}
	return strings.Join(parts, " and ")
}

// conditionWords writes a condition with its parts joined by words.
func conditionWords(c *loop.Condition) string {
	words := c.Expr
	switch {
	case len(c.Any) > 0:
		words = joinWords(c.Any, " or ")
	case len(c.All) > 0:
		words = joinWords(c.All, " and ")
	case c.Not != nil:
		words = "not (" + conditionWords(c.Not) + ")"
	}
	if c.For > 1 {
		words = fmt.Sprintf("(%s) in %d iterations running", words, c.For)
	}
	return words
}

func joinWords(cs []loop.Condition, by string) string {
	words := make([]string, len(cs))
	for i := range cs {
		words[i] = "(" + conditionWords(&cs[i]) + ")"
	}
	return strings.Join(words, by)
}
