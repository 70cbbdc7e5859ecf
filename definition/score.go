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
	field("key", "the state key of the score: a number, JSON, or text with a number in it", aText, func(s *loop.Score) *string { return &s.Key }),
	field("label", "what stands before the number in a text", aText, func(s *loop.Score) *string { return &s.Label }),
	field("field", "the field of the JSON", aText, func(s *loop.Score) *string { return &s.Field }),
	field("expr", "an expression of the score, instead of key", aWords, func(s *loop.Score) *string { return &s.Expr }),
	field("judge", "the step that scores; or with samples, how often it is asked about the same", judgeParts.value(), func(s *loop.Score) **loop.Judge { return &s.Judge }),
	field("dimensions", "the parts of the score, fields of the JSON", each(aText, listing{empty: "leave it out to count whatever the answer has"}), func(s *loop.Score) *[]string { return &s.Dimensions }),
	field("dimension_target", "what every part has to reach", maybe(aNumber), func(s *loop.Score) **float64 { return &s.DimensionTarget }),
	field("target", "the score that ends the loop", maybe(aNumber), func(s *loop.Score) **float64 { return &s.Target }),
	field("min_delta", "an improvement below it ends the loop", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDelta }),
	field("min_delta_percent", "the same, in per cent of the score before", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDeltaPercent }),
	field("patience", "how often running the improvement has to be too small", wholeFrom[uint](0, ""), func(s *loop.Score) *uint { return &s.Patience }).shown(1),
	field("lower_is_better", "true if a lower score is the better one", aBool, func(s *loop.Score) *bool { return &s.LowerIsBetter }),
}, or: "key", form: "a state key, or a map", keep: true}

var judgeParts = parts[loop.Judge]{rows: []row[loop.Judge]{
	field("step", "the step that scores", aText, func(j *loop.Judge) *string { return &j.Step }),
	field("samples", "how often it is asked about the same, at most 32", wholeFrom[uint](1, ""), func(j *loop.Judge) *uint { return &j.Samples }).shown(1),
}, or: "step", form: "the name of a step, or a map with step and samples"}
