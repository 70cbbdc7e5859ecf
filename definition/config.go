// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"
)

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
				r.report(r.src.Of(q.at), CodeConflict, "%q is given in config and beside it, in line %d", q.key, line).Hint = "give it once"
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

// foreign are fields of other products, and what to write here.
var foreign = map[string]string{
	"agent_card_url":  "write it as the endpoint",
	"agents":          `did you mean "sub_agents"?`,
	"card_url":        "write it as the endpoint",
	"iterations":      `did you mean "max_iterations"?`,
	"prompt":          `did you mean "instructions"?`,
	"steps":           `did you mean "sub_agents"?`,
	"system_prompt":   `did you mean "instructions"?`,
	"task_definition": "what a program does is a command, expression, http or template agent; what a model does, the instructions of an llm agent",
	"workflow":        "write it as the type: loop, sequential or parallel",
	"workflow_type":   "write it as the type: loop, sequential or parallel",

	"score.higher_is_better": "higher is better unless lower_is_better is true",
}

// typeHint is what may be meant by a type that there is not.
func typeHint(typed string) string {
	switch typed {
	case "task":
		return "a task is a command, expression, http or template agent, or an llm agent that a model does it for"
	case "workflow":
		return "the types of workflow agents are loop, sequential and parallel"
	}
	if meant := otherTypes[typed]; meant != "" {
		return "did you mean \"" + meant + "\"?"
	}
	return didYouMean(typed, types, "%q", "the types are "+strings.Join(types, ", "))
}

// otherTypes are what other products and languages call the types.
var otherTypes = map[string]string{
	"seq": "sequential", "chain": "sequential", "pipeline": "sequential", "concurrent": "parallel", "fanout": "parallel",
	"shell": "command", "bash": "command", "exec": "command", "script": "command", "program": "command", "cli": "command",
	"agent": "llm", "model": "llm", "prompt": "llm", "chat": "llm", "llm_agent": "llm", "LlmAgent": "llm", "LoopAgent": "loop",
	"request": "http", "webhook": "http", "api": "http", "cel": "expression", "set": "expression", "text": "template",
	"approval": "human", "person": "human", "ask": "human", "remote": "a2a", "function": "func", "go": "func",
}
