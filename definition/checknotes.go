// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
)

// worthKnowing notes what is no mistake and may surprise.
func (c *checker) worthKnowing() {
	if c.problems.count(SeverityError) > 0 {
		return
	}
	c.afterExit()
	c.unread()
	c.unheard()
	c.unsafe()
	c.sharedKeys()
	for a := range c.def.Root.All {
		if a.Type == TypeLoop {
			c.presetTimes(a)
			c.selfJudged(a)
			c.wordsAsNumbers(a)
		}
	}
}

// unsafe notes commands in which a value may be run as code.
func (c *checker) unsafe() {
	note := func(a *Agent) {
		if a == nil || a.Type != TypeCommand || !a.Command.Unsafe {
			return
		}
		made, err := newTask(a, BuildConfig{Root: "."}, around{})
		if err != nil {
			return
		}
		if cmd, ok := made.(*taskagent.CommandAgent); ok && cmd.NeedsUnsafe() {
			c.note(a.at("unsafe"), CodeUnsafe, "%q is unsafe: a value of the state may be run as code", a.Name).
				Hint = "whoever writes those values can run programs: let only a person or the definition do it"
			return
		}
		c.note(a.at("unsafe"), CodeUnsafe, "%q has no need to be unsafe", a.Name).Hint = "leave unsafe out, so that a later change is checked"
	}
	for a := range c.def.Root.All {
		note(a)
		note(a.Reconcile)
	}
}

// afterExit notes keys that are read when a loop is over, and that whoever ends
// it would write: the turn with the exit leaves them as they were.
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
			p := c.note(rd.place(), CodeExitKey, "when %q ends the loop, %s stays as it was: the turn that ends a loop writes no key", w.Name, rd)
			if p.Hint = "if that is not meant, let another agent write it, or end the loop"; len(c.writers[key]) == 1 {
				p.Hint = "empty if that is its first turn: let another agent write it; why it has ended the loop is in the stop record"
			}
		}
	}
}

// outlives reports whether an agent runs when a loop is over: its finalizer, or one
// outside.
func outlives(a, around *Agent) bool {
	if !a.in(around) {
		return true
	}
	fin := around.finalizer()
	return fin != nil && a.in(fin) && !around.Loop.FinalizeEach
}

// unread notes results that are kept for nobody. That of the root is the run's.
func (c *checker) unread() {
	seen := make(map[string]bool)
	for i := range c.reads {
		if c.reads[i].any {
			return
		}
		_, key := c.reads[i].split()
		seen[key] = true
	}
	for a := range c.def.Root.All {
		if a.OutputKey != "" && a.OutputKey != LoopOutput && a.parent != nil && !a.tool && !seen[a.OutputKey] {
			c.note(a.at("output_key"), CodeUnread, "nobody reads %q, which %q writes", a.OutputKey, a.Name)
		}
	}
}

// presetTimes notes a loop whose time may be over before its iterations are,
// where the file does not give both times.
func (c *checker) presetTimes(a *Agent) {
	l := a.Loop
	_, total := a.nodes["timeout"]
	_, iteration := a.nodes["iteration_timeout"]
	if total && iteration || l.Timeout == 0 || l.IterationTimeout == 0 || l.MaxIterations == 0 {
		return // said already, or not to be said
	}
	if need := float64(l.MaxIterations) * float64(l.IterationTimeout); need > float64(l.Timeout) {
		p := c.note(a.at("max_iterations"), CodeTimes, "the %s of the loop %q may be over before its %d iterations of up to %s", briefly(l.Timeout), a.Name, l.MaxIterations, briefly(l.IterationTimeout))
		p.Hint = moreTime(need)
	}
}

// moreTime is what to do where iterations need so much time in all.
func moreTime(need float64) string {
	if need < float64(24*time.Hour) {
		return "give timeout: " + briefly(time.Duration(need)) + ", or a shorter iteration_timeout"
	}
	return "give a shorter iteration_timeout"
}

// selfJudged notes a score that is given by the only agent which produces
// anything.
func (c *checker) selfJudged(a *Agent) {
	s := a.Loop.Score
	if s == nil {
		return
	}
	var judge *Agent
	makers := 0
	rated := []string{s.Key}
	if p, err := expr.Compile(s.Expr, vocabulary.ConditionVariables...); err == nil {
		rated, _ = p.Reads("state")
	}
	for _, sub := range a.SubAgents {
		switch {
		case sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach, sub.Type == TypeExpression, sub.Type == TypeTemplate:
			continue
		case s.Judge != nil && s.Judge.Step == sub.Name, s.Judge == nil && sub.OutputKey != "" && slices.Contains(rated, sub.OutputKey):
			judge = sub
		default:
			makers++
		}
	}
	if judge != nil && judge.Type == TypeLLM && makers == 0 {
		c.note(judge.at("name"), CodeJudge, "%q judges itself: no other step of the loop %q makes anything", judge.Name, a.Name).
			Hint = "let one agent write, and another one judge"
	}
}
