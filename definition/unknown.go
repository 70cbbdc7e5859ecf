// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/expr"
)

// names are the fields that an agent can have.
func (r *reader) names(a *Agent) []string {
	var names []string
	for _, f := range fields {
		if (a.Type == "" || f.has(a.Type)) && (!f.Root || a.parent == nil) {
			names = append(names, f.Name)
		}
	}
	if a.parent != nil {
		names = append(names, "ref")
	}
	return names
}

func (r *reader) unknown(a *Agent, p pair) {
	problem := r.report(r.src.Of(p.at), CodeField, "unknown field %q", p.key)
	if hint, _ := otherWord(a, p); hint != "" {
		problem.Hint = hint
		return
	}
	if p.key == "stop" && a.Type == TypeLoop {
		problem.Hint = `did you mean "stop_when"? not_worth, no_progress and the limits are fields of their own`
		return
	}
	if near := nearField(p, r.names(a)); near != "" {
		problem.Hint = fmt.Sprintf("did you mean %q?", near)
		return
	}
	var others []string
	for _, f := range fields {
		others = append(others, f.Name)
	}
	if near := fieldNamed(expr.Nearest(p.key, others)); near.Name != "" && a.Type != "" {
		problem.Hint = fieldOf(near, a)
	}
}

// nearField is the field that was probably meant; of timeout and timeouts the one
// that the value fits.
func nearField(p pair, names []string) string {
	found := near(p.key, names)
	if found != "timeout" && found != "timeouts" || p.value.Kind != source.Scalar ||
		!slices.Contains(names, "timeouts") {
		return found
	}
	if _, ok := spanOf(p.value); ok {
		return "timeout"
	}
	return "timeouts"
}

// near is the name that was probably meant: one with a few letters changed, or
// else the only one that begins likewise.
func near(typed string, names []string) string {
	if found := expr.Nearest(typed, names); found != "" {
		return found
	}
	found := ""
	for _, name := range names {
		n := 0
		for n < min(len(typed), len(name)) && typed[n] == name[n] {
			n++
		}
		if n < 5 || 3*n < 2*len(typed) || name == typed {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// misplaced reports a field of another type of agent.
func (r *reader) misplaced(a *Agent, p pair, f Field) {
	problem := r.report(r.src.Of(p.at), CodeField, "%q is a field of %s agents; this is %s agent", p.key,
		join(f.Types, "and"), article(a.Type))
	if _, given := a.nodes["type"]; !given && a.Type == TypeLoop && f.Types[0].Workflow() {
		problem.Hint = fmt.Sprintf("sub_agents without a type make a loop; give type: %s", join(f.Types, "or"))
	}
	if p.key == "timeout" && a.Type == TypeHuman {
		problem.Hint = "deadline says how long the person may take"
	}
}

func join(ts []Type, word string) string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = string(t)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " " + word + " " + names[n-1]
	}
	return strings.Join(names, "")
}

// didYouMean is the hint for a mistyped name. The form is that of the name, and
// otherwise the hint if none is near.
func didYouMean(typed string, names []string, form, otherwise string) string {
	if len(names) > maxNames {
		return otherwise
	}
	if near := near(typed, names); near != "" {
		return "did you mean " + fmt.Sprintf(form, near) + "?"
	}
	return otherwise
}

// configured puts the fields in an agent's config, as other products write
// them, beside the others. stop_when comes last, as it may name sub-agents.
func (r *reader) configured(ps []pair) []pair {
	var all []pair
	beside := make(map[string]int)
	for _, p := range ps {
		beside[p.key] = p.at.Line
	}
	for _, p := range ps {
		if p.key != "config" {
			all = append(all, p)
			continue
		}
		inner, _ := r.pairs(p.value, "config")
		for _, q := range inner {
			line, both := beside[q.key]
			switch {
			case q.key == "ref" || q.key == "config":
				r.report(r.src.Of(q.at), CodeField, "unknown field %q of config", q.key).Hint = "config has fields of the agent that it is in"
			case both:
				r.report(r.src.Of(q.at), CodeConflict, "%q is given twice, in config and in line %d", q.key, line).Hint = "give it once"
			default:
				all = append(all, q)
			}
		}
	}
	slices.SortStableFunc(all, func(p, q pair) int { return last(p) - last(q) })
	return all
}

func last(p pair) int {
	if p.key == "stop_when" {
		return 1
	}
	return 0
}
