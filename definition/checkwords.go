// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
)

// wordsAsNumbers warns of numbers that are to be found in what a model says in words:
// a score that nothing pins down, and a comparison that can never hold.
func (c *checker) wordsAsNumbers(a *Agent) {
	if s := a.Loop.Score; s != nil {
		pinned := s.Label != "" || s.Field != "" || len(s.Dimensions) > 0
		if w := c.wordsIn(s.Key, a); w != nil && !pinned {
			c.warn(a.at("score.key"), CodeWords, "%s is what %q says in words: a number has to be found in it", s.Key, w.Name).
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
	case without > 0 || slices.ContainsFunc(ws, func(w *Agent) bool { return w.Type == TypeExpression || w.Type == TypeTemplate }):
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
	vars := vocabulary.TaskVariables(false)
	p, err := expr.Compile(src, vars...)
	return err == nil && (p.Type() == expr.Int || p.Type() == expr.Double)
}

// wordsCompared warns of a condition that holds a model's text against a number: what
// a model says is a text, with an output_schema too.
func (c *checker) wordsCompared(a *Agent, field string, cond *loop.Condition) {
	if p, err := expr.Compile(cond.Expr, vocabulary.ConditionVariables...); cond.Expr != "" && err == nil {
		for _, key := range p.Compared("state") {
			ws := c.writers[key]
			if len(ws) != 1 || ws[0].Type != TypeLLM || ws[0].OutputKey != key {
				continue
			}
			c.warn(a.at(field), CodeWords, "state.%s is a text, what %q says: it is no number, and the condition can never hold", key, ws[0].Name).
				Hint = "read the number: number(state." + key + "), or json(state." + key + ").FIELD"
		}
	}
	for i := range cond.Any {
		c.wordsCompared(a, index(field+".any", i), &cond.Any[i])
	}
	for i := range cond.All {
		c.wordsCompared(a, index(field+".all", i), &cond.All[i])
	}
	if cond.Not != nil {
		c.wordsCompared(a, field+".not", cond.Not)
	}
}
