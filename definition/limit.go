// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/loop"
)

// limitField reads what bounds a loop, and what it makes of an iteration's
// result.
func (r *reader) limitField(a *Agent, p pair) {
	l := loopOf(a)
	switch p.key {
	case "timeouts":
		r.timeouts(l, p.value)
	case "iteration_timeout":
		l.IterationTimeout = r.loopTime(p.value, p.key)
	case "budget":
		l.Budget = r.budget(a, p.value)
	case "finalizer":
		r.finalizer(l, p.value)
	case "finalizer_reserve":
		l.Reserve = r.share(p.value, p.key)
	case "iteration_delay":
		l.IterationDelay = r.delay(p.value, p.key)
	case "state_limit":
		l.StateLimit = r.stateLimit(p.value)
	case "quality_gate":
		l.QualityGate = r.numberPointer(p.value, p.key)
	case "result":
		if l.Result, _ = r.text(p.value, p.key); l.Result == "best" {
			l.Result, l.BestOnExit = "", true
		}
	case "on_regression":
		l.OnRegression = loop.Regression(r.choice(p.value, p.key, regressions))
	case "no_progress":
		l.NoProgress = r.noProgress(a, p.value)
	case "not_worth":
		l.NotWorth = r.notWorth(a, p.value)
	}
}

// settings reads a map of known fields and hands on each. It reports whether
// nothing was wrong.
func (r *reader) settings(a *Agent, n *yaml.Node, field string, known []string, read func(key, field string, n *yaml.Node)) bool {
	before := len(r.problems)
	ps, ok := r.pairs(n, field)
	for _, p := range ps {
		if !slices.Contains(known, p.key) {
			r.report(r.src.of(p.at), CodeField, "unknown field %q of %s", p.key, field).
				Hint = didYouMean(p.key, known, "%q", "there are "+strings.Join(known, ", "))
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
	r.report(r.src.of(n), CodeValue, "%s must be %s or %s, got %q", what, strings.Join(words[:last], ", "), words[last], text).
		Hint = didYouMean(text, words, "%q", "")
	return ""
}

// complete reports what a map needs and does not have.
func (r *reader) complete(n *yaml.Node, field string, given map[string]bool, needed ...string) bool {
	ok := true
	s := form(shapes[strings.SplitN(field, ".", 2)[0]])
	for _, name := range needed {
		if !given[name] {
			r.report(r.src.of(n), CodeMissing, "%s needs %s: %s", field, name, s.Properties[name].Description)
			ok = false
		}
	}
	return ok
}

// positive reads a whole number of at least 1.
func (r *reader) positive(n *yaml.Node, what string, hint ...string) (uint, bool) {
	v, ok := r.integer(n, what)
	switch {
	case ok && v < 1:
		r.report(r.src.of(deref(n)), CodeValue, "%s must be at least 1, got %d", what, v).Hint = strings.Join(hint, "")
	case ok && v > math.MaxInt32:
		r.report(r.src.of(deref(n)), CodeValue, "%s must be between 1 and %d, got %d", what, math.MaxInt32, v)
	case ok:
		return uint(v), true
	}
	return 0, false
}

func (r *reader) timeouts(l *Loop, n *yaml.Node) {
	l.Timeouts = Timeouts(r.choice(n, "timeouts", timeouts))
	if _, ok := spanOf(n); ok {
		r.problems[len(r.problems)-1].Hint = "timeouts names a preset; the time itself is timeout or iteration_timeout"
	}
}

// loopTime reads a time of a loop; 0 if it cannot be read.
func (r *reader) loopTime(n *yaml.Node, what string) time.Duration {
	if d, ok := spanOf(n); ok && d == 0 {
		r.report(r.src.of(n), CodeValue, "%s must be more than nothing, got %s", what, n.Value).
			Hint = "timeouts: none lets a loop take as long as it needs"
		return 0
	}
	d, _ := r.duration(n, what)
	return d
}

// delay reads how long to wait, which may be not at all.
func (r *reader) delay(n *yaml.Node, what string) time.Duration {
	if d, ok := spanOf(n); ok && d <= 0 {
		if d < 0 {
			r.report(r.src.of(n), CodeValue, "%s must not be negative, got %s", what, n.Value)
		}
		return 0
	}
	d, _ := r.duration(n, what)
	return d
}

// budget reads what model calls may use; nil if it cannot be read.
func (r *reader) budget(a *Agent, n *yaml.Node) *loop.Budget {
	b := &loop.Budget{}
	ok := r.settings(a, n, "budget", within("budget"), func(key, f string, n *yaml.Node) {
		switch key {
		case "calls":
			b.Calls = r.bound(n, f)
		case "tokens":
			b.Tokens = r.bound(n, f)
		case "cost":
			b.Cost = r.numberPointer(n, f)
		}
	})
	switch {
	case !ok:
		return nil
	case *b == loop.Budget{}:
		r.report(r.src.of(n), CodeValue, "budget bounds nothing").Hint = "give calls, tokens or cost"
		return nil
	}
	return b
}

// bound reads a number of calls or tokens.
func (r *reader) bound(n *yaml.Node, what string) int64 {
	v, ok := r.integer(n, what)
	if ok && v < 1 {
		r.report(r.src.of(deref(n)), CodeValue, "%s must be at least 1, got %d", what, v).Hint = "leave it out for no limit"
	}
	return v
}

func (r *reader) finalizer(l *Loop, n *yaml.Node) {
	before := len(r.problems)
	l.FinalizeEach = r.choice(n, "finalizer", []string{"after", finalizeEach}) == finalizeEach
	if len(r.problems) > before {
		r.hint("it says when; output_key: loop_output makes a step the finalizer")
	}
}

// share reads a share of a whole, as 10% or 0.1; 0 if it cannot be read.
func (r *reader) share(n *yaml.Node, what string) float64 {
	digits, percent := strings.CutSuffix(strings.TrimSpace(n.Value), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		v = math.Round(v*1e7) / 1e9
	}
	switch {
	case n.Kind != yaml.ScalarNode || isNull(n) || err != nil:
		r.wrong(n, what, "a share such as 10% or 0.1")
		return 0
	case !(v > 0 && v < 1):
		r.report(r.src.of(n), CodeValue, "%s must be more than nothing and less than all, got %s", what, n.Value).Hint = "a tenth is 10% or 0.1"
		return 0
	}
	return v
}

// noProgress reads true, or a map.
func (r *reader) noProgress(a *Agent, n *yaml.Node) *loop.NoProgress {
	if n.Kind == yaml.ScalarNode {
		if on, _ := r.boolean(n, "no_progress"); !on {
			return nil
		}
		return &loop.NoProgress{}
	}
	out := &loop.NoProgress{}
	ok := r.settings(a, n, "no_progress", within("no_progress"), func(key, f string, n *yaml.Node) {
		switch key {
		case "repeats":
			out.Repeats, _ = r.positive(n, f)
		case "swings":
			out.Swings, _ = r.positive(n, f)
		case "keys":
			out.Keys = r.list(n, f, r.text)
			for i, item := range n.Content {
				a.nodes[index(f, i)] = deref(item)
			}
		}
	})
	if !ok {
		return nil
	}
	return out
}

// notWorth reads {gain, per}.
func (r *reader) notWorth(a *Agent, n *yaml.Node) *loop.NotWorth {
	out, given := &loop.NotWorth{}, false
	ok := r.settings(a, n, "not_worth", within("not_worth"), func(key, f string, n *yaml.Node) {
		switch key {
		case "gain":
			out.Gain, given = r.number(n, f)
		case "per":
			out.Per = loop.Per(r.choice(n, f, measures))
		}
	})
	switch {
	case !ok:
		return nil
	case !given:
		r.report(r.src.of(n), CodeMissing, "not_worth needs gain: how much an iteration has to bring")
		return nil
	}
	return out
}
