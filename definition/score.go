// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

func (r *reader) numberPointer(n *source.Node, field string) *float64 {
	if v, ok := r.number(n, field); ok {
		return &v
	}
	return nil
}

var scoreParts = parts[loop.Score]{rows: []row[loop.Score]{
	field("key", "state key of the score: a number, JSON, or text with a number in it", aText, func(s *loop.Score) *string { return &s.Key }),
	field("label", "word before the number in a text, such as Score", aText, func(s *loop.Score) *string { return &s.Label }),
	field("field", "field of the score, if the value is JSON", aText, func(s *loop.Score) *string { return &s.Field }),
	field("expr", "expression that computes the score, in place of key", aWords, func(s *loop.Score) *string { return &s.Expr }),
	field("judge", "step that gives the score; or {step, samples} to ask it several times", judgeParts.value(), func(s *loop.Score) **loop.Judge { return &s.Judge }),
	field("dimensions", "parts of the score: fields of the JSON", each(aText, listing{empty: "leave it out to count whatever the answer has"}), func(s *loop.Score) *[]string { return &s.Dimensions }),
	field("dimension_target", "target that every part must reach too", maybe(aNumber), func(s *loop.Score) **float64 { return &s.DimensionTarget }),
	field("target", "end the loop when the score reaches this", maybe(aNumber), func(s *loop.Score) **float64 { return &s.Target }),
	field("min_delta", "end the loop when the score improves by less than this", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDelta }),
	field("min_delta_percent", "min_delta in percent of the previous score", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDeltaPercent }),
	field("patience", "iterations in a row whose improvement must be too small", wholeFrom[uint](0, ""), func(s *loop.Score) *uint { return &s.Patience }).shown(1),
	field("lower_is_better", "true if lower scores are better", aBool, func(s *loop.Score) *bool { return &s.LowerIsBetter }),
}, or: "key", form: "a state key, or a map", keep: true}

var judgeParts = parts[loop.Judge]{rows: []row[loop.Judge]{
	field("step", "step that gives the score", aText, func(j *loop.Judge) *string { return &j.Step }),
	field("samples", "how often to ask it about the same work, at most 32", wholeFrom[uint](1, ""), func(j *loop.Judge) *uint { return &j.Samples }).shown(1),
}, or: "step", form: "the name of a step, or a map with step and samples"}

// wordsAsNumbers warns of numbers that are to be found in what a model says in words:
// a score that nothing pins down, and a comparison that can never hold.
func (c *checker) wordsAsNumbers(a *Agent) {
	if s := a.Loop.Score; s != nil {
		pinned := s.Label != "" || s.Field != "" || len(s.Dimensions) > 0
		if w := c.wordsIn(s.Key, a); w != nil && !pinned {
			c.warn(a.at("score.key"), CodeWords, "%s is a text that %q writes, in which the score must be found", s.Key,
				w.Name).
				Hint = "give " + quoted(w.Name) + " an output_schema, or the score a label: the word before the number"
		}
		c.dimensionTarget(a, s)
	}
	if a.Loop.StopWhen != nil {
		c.wordsCompared(a, "stop_when", a.Loop.StopWhen)
	}
}

// wordsIn is the model agent of a loop that writes a key in words; nil if there is
// none, or if another agent may write it too.
func (c *checker) wordsIn(key string, a *Agent) *Agent {
	ws := c.writers[key]
	if key == "" || len(ws) != 1 || !ws[0].in(a) || !saysWords(ws[0]) {
		return nil
	}
	return ws[0]
}

func saysWords(a *Agent) bool {
	return a.Type == TypeLLM && (a.LLM == nil || a.LLM.OutputSchema == nil)
}

// dimensionTarget looks at a target for the dimensions of a score that names none: it
// refuses one that can never be met, since whoever writes the score gives a number
// alone, and warns where only some do.
func (c *checker) dimensionTarget(a *Agent, s *loop.Score) {
	if s.DimensionTarget == nil || len(s.Dimensions) > 0 || s.Key == "" {
		return
	}
	ws := c.writers[s.Key]
	without := 0
	for _, w := range ws {
		if numberAlone(w, s.Key) {
			without++
		}
	}
	const hint = "list them in score.dimensions, or have the judge answer with an object \"dimensions\""
	at := a.at("score.dimension_target")
	switch {
	case len(ws) > 0 && without == len(ws):
		c.report(at, CodeStop, "dimension_target can never be met: %s is written by %q, which gives no dimensions", s.Key, ws[0].Name).Hint = hint
	case without > 0 || slices.ContainsFunc(ws, func(w *Agent) bool {
		return w.Type == TypeExpression || w.Type == TypeTemplate
	}):
		c.warn(at, CodeStop, "dimension_target is met only if the score has dimensions, and none are named").Hint = hint
	}
}

// numberAlone reports whether what an agent writes to a key has no dimensions for sure.
func numberAlone(w *Agent, key string) bool {
	switch {
	case w.Type == TypeLLM:
		return w.LLM != nil && w.LLM.OutputSchema != nil && w.LLM.OutputSchema.Properties["dimensions"] == nil
	case w.Type != TypeExpression || w.Expression == nil:
		return false
	}
	src, ok := w.Expression.Set[key]
	if !ok {
		src = w.Expression.Value
	}
	p, err := expr.Compile(src, vocabulary.TaskVariables...)
	return err == nil && (p.Type() == expr.Int || p.Type() == expr.Double)
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
		case s.Judge != nil && s.Judge.Step == sub.Name, s.Judge == nil && sub.OutputKey != "" &&
			slices.Contains(rated, sub.OutputKey):
			judge = sub
		default:
			makers++
		}
	}
	if judge != nil && judge.Type == TypeLLM && makers == 0 {
		c.note(judge.at("name"), CodeJudge, "%q judges itself: no other step of the loop %q makes anything", judge.Name,
			a.Name).
			Hint = "let one agent write, and another one judge"
	}
}
