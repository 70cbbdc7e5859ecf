// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/loop"
)

func (r *reader) numberPointer(n *yaml.Node, field string) *float64 {
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
