// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/loop"
)

// score reads the name of a state key, or a map.
func (r *reader) score(a *Agent, n *yaml.Node) *loop.Score {
	s := &loop.Score{}
	if plainText(n) {
		a.nodes["score.key"] = n
		s.Key = n.Value
		return s
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "score", "a state key, or a map")
		return nil
	}
	ps, ok := r.pairs(n, "score")
	if !ok {
		return nil
	}
	for _, p := range ps {
		a.nodes["score."+p.key] = p.value
		if r.scoreField(a, s, p, "score."+p.key) {
			continue
		}
		hint := didYouMean(p.key, within("score"), "%q", "there are "+strings.Join(within("score"), ", "))
		if p.key == "higher_is_better" {
			hint = "higher is better unless lower_is_better is true"
		}
		r.report(r.src.of(p.at), CodeField, "unknown field %q of score", p.key).Hint = hint
	}
	return s
}

// scoreField reads one field of a score and reports whether there is one of
// that name.
func (r *reader) scoreField(a *Agent, s *loop.Score, p pair, field string) bool {
	switch p.key {
	case "key":
		s.Key, _ = r.text(p.value, field)
	case "label":
		s.Label, _ = r.text(p.value, field)
	case "field":
		s.Field, _ = r.text(p.value, field)
	case "expr":
		s.Expr, _ = r.words(p.value, field)
	case "judge":
		s.Judge = r.judge(a, p.value, field)
	case "dimensions":
		s.Dimensions = r.list(p.value, field, r.text)
		for i, item := range p.value.Content {
			a.nodes[index(field, i)] = deref(item)
		}
		if p.value.Kind == yaml.SequenceNode && len(s.Dimensions) == 0 {
			r.report(r.src.of(p.value), CodeValue, "%s is an empty list", field).Hint = "leave it out to count whatever the answer has"
		}
	case "dimension_target":
		s.DimensionTarget = r.numberPointer(p.value, field)
	case "target":
		s.Target = r.numberPointer(p.value, field)
	case "min_delta":
		s.MinDelta = r.numberPointer(p.value, field)
	case "min_delta_percent":
		s.MinDeltaPercent = r.numberPointer(p.value, field)
	case "patience":
		s.Patience, _ = r.count(p.value, field)
	case "lower_is_better":
		s.LowerIsBetter, _ = r.boolean(p.value, field)
	default:
		return false
	}
	return true
}

// judge reads the name of a step, or a map; nil if it cannot be read.
func (r *reader) judge(a *Agent, n *yaml.Node, field string) *loop.Judge {
	j := &loop.Judge{}
	if plainText(n) {
		a.nodes[field+".step"] = n
		j.Step = n.Value
		return j
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "the name of a step, or a map with step and samples")
		return nil
	}
	ok := r.settings(a, n, field, within("score", "judge"), func(key, f string, n *yaml.Node) {
		switch key {
		case "step":
			j.Step, _ = r.text(n, f)
		case "samples":
			j.Samples, _ = r.positive(n, f)
		}
	})
	if !ok {
		return nil
	}
	return j
}

func (r *reader) numberPointer(n *yaml.Node, field string) *float64 {
	if v, ok := r.number(n, field); ok {
		return &v
	}
	return nil
}
