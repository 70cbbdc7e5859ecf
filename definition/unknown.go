// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
	"github.com/refrain-dev/refrain/internal/source"
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
	if p.key == "budget" && a.Type == TypeCLI {
		problem.Hint = "max_cost limits what one call of the program may cost; budget is for the loop around it"
	}
	if alsoMeant(p.key) {
		problem.Hint, _ = otherWord(a, p)
	}
}

// alsoMeant reports whether people write the name of a field for a field of other agents too, so that it does not tell
// the type of its agent.
func alsoMeant(field string) bool { return otherNames[field] != nil }

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

// didYouMean returns the hint for a mistyped name; otherwise if none is near.
func didYouMean(typed string, names []string, otherwise string) string {
	if len(names) > maxNames {
		return otherwise
	}
	if near := near(typed, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
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
	sort.SliceStable(all, func(i, k int) bool { return last(all[i]) < last(all[k]) }) // smaller than slices
	return all
}

func last(p pair) int {
	if p.key == "stop_when" {
		return 1
	}
	return 0
}

// otherNames are what people write first for a field, often as another product calls it. An agent
// that has not the first of the fields means the second.
var otherNames = map[string][]string{
	"until": stopping, "stop_if": stopping, "stop_condition": stopping, "exit_condition": stopping, "exit_if": stopping, "break_when": stopping,
	"end_when": stopping, "termination_condition": stopping,
	"iterations": {"max_iterations"}, "max_loops": {"max_iterations"}, "max_rounds": {"max_iterations"}, "max_turns": {"max_iterations"},
	"loops": {"max_iterations"}, "rounds": {"max_iterations"}, "repeat": {"max_iterations"},
	"agents": {"sub_agents"}, "steps": {"sub_agents"},
	"prompt": {"instructions", "question"}, "message": {"instructions", "question"}, "system": {"instructions"},
	"system_prompt": {"instructions"}, "system_message": {"instructions"},
	"total_timeout": {"timeout"}, "total_loop_timeout": {"timeout"}, "time_limit": {"timeout"}, "max_time": {"timeout"},
	"can_use_exit_loop": {"can_exit_loop"}, "agent_card_url": {"endpoint"}, "card_url": {"endpoint"}, "vars": {"state"}, "variables": {"state"},
	"retries": {"retry"}, "on_failure": {"on_error"}, "kind": {"type"}, "output": {"output_key"},
}

var stopping = []string{"stop_when", "exit_when"}

// adviceOn says what to write in place of names that stand for no one field.
var adviceOn = map[string]string{
	"condition":       noCondition,
	"depends_on":      inOrderGiven,
	"if":              noCondition,
	"min_score":       scoreTarget,
	"needs":           inOrderGiven,
	"target_score":    scoreTarget,
	"task":            taskField,
	"task_definition": taskField,
	"threshold":       scoreTarget,
	"when":            noCondition,
	"while":           "write the opposite as stop_when: it ends the loop when it is true",
	"workflow":        "write it as the type: loop, sequential or parallel",
	"workflow_type":   "write it as the type: loop, sequential or parallel",

	"an input.required":      "an input without a default is required",
	"score.higher_is_better": "higher is better unless lower_is_better is true",
}

const (
	noCondition  = "a step has no condition; end the loop with stop_when, or with exit_when in a step that asks no model"
	inOrderGiven = "steps run in the order in which they are listed: put the step after those that it needs"
	scoreTarget  = "write it in score: {key: …, target: …}"
	taskField    = "write it as instructions if a model does it, and else as command, url, set, value or text"
)

// otherTypes are what other products and languages call the types.
var otherTypes = map[string]string{
	"seq": "sequential", "sequence": "sequential", "chain": "sequential", "pipeline": "sequential", "concurrent": "parallel", "fanout": "parallel",
	"shell": "command", "bash": "command", "sh": "command", "exec": "command", "run": "command", "cmd": "command", "script": "command",
	"program": "command", "claude": "cli", "codex": "cli", "coding_agent": "cli", "acp": "cli",
	"agent": "llm", "model": "llm", "prompt": "llm", "chat": "llm", "llm_agent": "llm", "LlmAgent": "llm", "LoopAgent": "loop",
	"request": "http", "webhook": "http", "api": "http", "cel": "expression", "set": "expression", "text": "template",
	"approval": "human", "person": "human", "ask": "human", "remote": "a2a", "function": "func", "go": "func",
}

// typeHint suggests a known type for an unknown one.
func typeHint(typed string) string {
	switch typed {
	case "task":
		return "leave the type out: instructions asks a model, command runs a program, url sends a request, set or value " +
			"computes, text writes"
	case "workflow":
		return "the types of workflow agents are loop, sequential and parallel"
	}
	if meant := otherTypes[typed]; meant != "" {
		return "did you mean \"" + meant + "\"?"
	}
	return didYouMean(typed, typeNames(), "the types are "+strings.Join(typeNames(), ", "))
}

// otherWord returns the hint for an unknown field that is a known mistake: another name of a field, a
// type in place of a field, or a field that belongs into another one. tells says that the word tells
// the type of the agent; the hint is empty for any other field.
func otherWord(a *Agent, p pair) (hint string, tells bool) {
	if hint := adviceOn[p.key]; hint != "" {
		return hint, hint == taskField
	}
	names := otherNames[p.key]
	for _, name := range names {
		if f := fieldNamed(name); a.Type == "" || f.has(a.Type) {
			return fmt.Sprintf("did you mean %q?", f.Name), f.Types != nil
		}
	}
	if names != nil {
		return fieldOf(fieldNamed(names[0]), a), false
	}
	t := Type(p.key)
	if !Type(p.key).known() {
		t = Type(otherTypes[p.key])
	}
	switch {
	case t == TypeCommand:
		return "write the step as {name: …, " + commandLine(p.value.Value) + "}", true
	case t != "" && a.parent == nil:
		return fmt.Sprintf("write type: %s, and its fields at the top of the file", t), true
	case t.Workflow():
		return fmt.Sprintf("write such a step as {name: …, type: %s, sub_agents: […]}", t), true
	case t != "":
		return fmt.Sprintf("write such a step as {name: …, type: %s, …}, with its fields beside the type", t), true
	}
	return insideOf(a, p.key), false
}

// fieldOf says which agents have a field that this one has not.
func fieldOf(f Field, a *Agent) string {
	return fmt.Sprintf("%q is a field of %s agents; this is %s agent", f.Name, join(f.Types, "and"), article(a.Type))
}

// insideOf is the hint for a name that stands in one other field of the agent, as target in score.
func insideOf(a *Agent, name string) string {
	found := ""
	for _, f := range fields {
		if a.Type == "" || !f.has(a.Type) || !slices.ContainsFunc(f.Parts(), func(p Part) bool { return p.Name == name }) {
			continue
		}
		if found != "" {
			return ""
		}
		found = f.Name
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf("write it in %s: {%s: …}", found, name)
}

// plainLine is a command line in which a shell would see words alone, and so would YAML.
var plainLine = lazyregexp.New(`^[A-Za-z0-9_./]+(?: +-{0,2}[A-Za-z0-9_./][A-Za-z0-9_./=@%+-]*)*$`)

// commandLine writes a line for a shell as the field of a step: as the list of its words, or for a
// shell if only one can read it.
func commandLine(line string) string {
	switch {
	case plainLine().MatchString(line):
		return "command: [" + strings.Join(strings.Fields(line), ", ") + "]"
	case line != "" && len(line) < 60 && !strings.ContainsAny(line, "{}\n"):
		return "command: [sh, -c, '" + strings.ReplaceAll(line, "'", "''") + "']"
	}
	return "command: [program, argument]"
}

// asList is the hint for a command that is a text.
func asList(line string) string { return "write " + commandLine(line) }
