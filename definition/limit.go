// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// settings reads a map of known fields and hands on each. It reports whether
// nothing was wrong.
func (r *reader) settings(a *Agent, n *yaml.Node, field string, known []string, read func(key, field string, n *yaml.Node)) bool {
	before := len(r.problems)
	ps, ok := r.pairs(n, field)
	for _, p := range ps {
		if !slices.Contains(known, p.key) {
			r.report(r.src.Of(p.at), CodeField, "unknown field %q of %s", p.key, field).
				Hint = cmp.Or(foreign[field+"."+p.key], didYouMean(p.key, known, "%q", "there are "+strings.Join(known, ", ")))
			ok = false
			continue
		}
		f := field + "." + p.key
		a.nodes[f] = p.value
		read(p.key, f, p.value)
	}
	return ok && len(r.problems) == before
}

// choice reads one of several words; empty if it is none.
func (r *reader) choice(n *yaml.Node, what string, words []string) string {
	text, ok := r.text(n, what)
	if !ok || slices.Contains(words, text) {
		return text
	}
	last := len(words) - 1
	r.report(r.src.Of(n), CodeValue, "%s must be %s or %s, got %q", what, strings.Join(words[:last], ", "), words[last], text).
		Hint = didYouMean(text, words, "%q", "")
	return ""
}

func (r *reader) timeouts(n *yaml.Node, field string) (Timeouts, bool) {
	word := r.choice(n, field, timeouts)
	if _, ok := spanOf(n); ok {
		r.problems[len(r.problems)-1].Hint = "timeouts names a preset; the time itself is timeout or iteration_timeout"
	}
	return Timeouts(word), word != ""
}

// loopTime reads a time of a loop.
func (r *reader) loopTime(n *yaml.Node, what string) (time.Duration, bool) {
	if d, ok := spanOf(n); ok && d == 0 {
		r.report(r.src.Of(n), CodeValue, "%s must be more than nothing, got %s", what, n.Value).
			Hint = "timeouts: none lets a loop take as long as it needs"
		return 0, false
	}
	return r.duration(n, what)
}

// delay reads how long to wait, which may be not at all.
func (r *reader) delay(n *yaml.Node, what string) (time.Duration, bool) {
	d, ok := spanOf(n)
	switch {
	case ok && d < 0:
		r.report(r.src.Of(n), CodeValue, "%s must not be negative, got %s", what, n.Value)
		return 0, false
	case ok && d == 0:
		return 0, true
	}
	return r.duration(n, what)
}

func (r *reader) finalizer(n *yaml.Node, field string) (bool, bool) {
	word := r.choice(n, field, []string{"after", finalizeEach})
	return word == finalizeEach, word != ""
}

// share reads a share of a whole, as 10% or 0.1.
func (r *reader) share(n *yaml.Node, what string) (float64, bool) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(n.Value), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		v = math.Round(v*1e7) / 1e9
	}
	switch {
	case n.Kind != yaml.ScalarNode || source.IsNull(n) || err != nil:
		r.wrong(n, what, "a share such as 10% or 0.1")
		return 0, false
	case !(v > 0 && v < 1):
		r.report(r.src.Of(n), CodeValue, "%s must be more than nothing and less than all, got %s", what, n.Value).Hint = "a tenth is 10% or 0.1"
		return 0, false
	}
	return v, true
}
