// SPDX-License-Identifier: Apache-2.0

package meant

// Fields maps names that people use for a field, often from other products, to the fields they mean. If an agent
// cannot have the first field, the second is meant.
var Fields = map[string][]string{
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

// Advice says what to write in place of names that do not correspond to a single field.
var Advice = map[string]string{
	"condition":       noCondition,
	"depends_on":      inOrderGiven,
	"if":              noCondition,
	"min_score":       scoreTarget,
	"needs":           inOrderGiven,
	"target_score":    scoreTarget,
	"task":            TaskField,
	"task_definition": TaskField,
	"threshold":       scoreTarget,
	"when":            noCondition,
	"while":           "write the opposite as stop_when: it ends the loop when it is true",
	"workflow":        "write it as the type: loop, sequential or parallel",
	"workflow_type":   "write it as the type: loop, sequential or parallel",

	"an input.required":      "an input without a default is required",
	"score.higher_is_better": "higher is better unless lower_is_better is true",
}

// TaskField is the advice for fields with which other products describe the work of an agent. Such a field shows that
// the agent is a task.
const TaskField = "write it as instructions if a model does it, and else as command, url, set, value or text"

const (
	noCondition  = "a step has no condition; end the loop with stop_when, or with exit_when in a step that asks no model"
	inOrderGiven = "steps run in the order in which they are listed: put the step after those that it needs"
	scoreTarget  = "write it in score: {key: …, target: …}"
)

// Types maps the names of types in other products and languages to types.
var Types = map[string]string{
	"seq": "sequential", "sequence": "sequential", "chain": "sequential", "pipeline": "sequential", "concurrent": "parallel", "fanout": "parallel",
	"shell": "command", "bash": "command", "sh": "command", "exec": "command", "run": "command", "cmd": "command", "script": "command",
	"program": "command", "claude": "cli", "codex": "cli", "coding_agent": "cli", "acp": "cli",
	"agent": "llm", "model": "llm", "prompt": "llm", "chat": "llm", "llm_agent": "llm", "LlmAgent": "llm", "LoopAgent": "loop",
	"request": "http", "webhook": "http", "api": "http", "cel": "expression", "set": "expression", "text": "template",
	"approval": "human", "person": "human", "ask": "human", "remote": "a2a", "function": "func", "go": "func",
}
