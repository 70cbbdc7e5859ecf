// SPDX-License-Identifier: Apache-2.0

package definition

import "slices"

// Field is one thing that a definition can say about an agent.
type Field struct {
	Name string
	// Types are the types of agents that have it; nil is all.
	Types []Type
	// Root says that only the root agent has it.
	Root bool
	// Doc says what it is, on one line.
	Doc string
}

// Fields lists every field, in the order in which people write them.
func Fields() []Field { return slices.Clone(fields) }

var (
	workflows = []Type{TypeLoop, TypeSequential, TypeParallel}
	tasks     = []Type{TypeCommand, TypeExpression, TypeHTTP, TypeTemplate}
)

var fields = []Field{
	{"name", nil, false, "unique in the definition: a letter, then letters, digits, _ and -"},
	{"type", nil, false, "loop, sequential, parallel, llm, command, expression, http, template, a2a, human or func; may be left out where a field tells"},
	{"description", nil, false, "what the agent is for"},
	{"display_name", nil, false, "what people are shown in place of the name"},
	{"color", nil, false, "the color in which it is shown: red, orange and the like, or \"#rrggbb\""},
	{"inputs", nil, true, "what a run is given: name: {type, default, description}, or name: default"},
	{"state", nil, true, "the state that a run begins with"},
	{"query", nil, true, "what the user asks, if a run is given nothing: {{user_input}}"},
	{"session", nil, true, "the ID of the session of its runs, if a run is given none: a fixed one makes them one conversation"},
	{"prices", nil, true, "what models charge for a million tokens: provider/name: {input, output, cached_input}"},
	{"max_model_calls", nil, true, "how often the agents of a run may ask a model in all, 500 if left out; none for no limit. A budget of more calls at the root raises it"},
	{"init_timeout", nil, true, "how long the opening of a model, or of a server of tools, may take; 30s if left out"},
	{"goal", []Type{TypeLoop}, false, "what the loop is to reach"},
	{"instructions", []Type{TypeLoop, TypeLLM}, false, "how a loop is to go about it; what an llm agent is told, with placeholders"},
	{"max_iterations", []Type{TypeLoop}, false, "the most iterations there are, 5 if left out; 0 for no limit, if something else stops the loop"},
	{"order", []Type{TypeLoop}, false, "another order of the sub-agents, by name, every one once"},
	{"stop_when", []Type{TypeLoop}, false, "an expression that ends the loop when it is true; or any, all, not of several; or when with for: k iterations running; or {text, of}: a step says a phrase"},
	{"stop_check", []Type{TypeLoop}, false, "when stop_when is looked at: after every iteration (the default) or every step"},
	{"score", []Type{TypeLoop}, false, "the state key of an iteration's score; or key or expr with label, field, judge, dimensions, dimension_target, target, min_delta, min_delta_percent, patience, lower_is_better"},
	{"quality_gate", []Type{TypeLoop}, false, "the score that an iteration needs to be accepted"},
	{"result", []Type{TypeLoop}, false, "the state key that holds what the loop hands back, if that is not what was said last; or best: the best iteration, after an exit too"},
	{"on_regression", []Type{TypeLoop}, false, "what follows an iteration that is worse than the best: keep_best (the default) or rollback, which undoes it"},
	{"no_progress", []Type{TypeLoop}, false, "true ends a loop that goes round in circles; or repeats, swings, keys"},
	{"not_worth", []Type{TypeLoop}, false, "ends a loop whose next iteration promises too little: {gain, per: iteration, minute, ktokens or cost}"},
	{"timeouts", []Type{TypeLoop}, false, "fast, standard, long or none: how long an iteration and the loop may take; standard if left out, none for a loop in a loop"},
	{"timeout", []Type{TypeLoop, TypeSequential, TypeParallel, TypeLLM, TypeCommand, TypeHTTP, TypeA2A, TypeFunc}, false, "how long it may take, as 30s or 5m; a plain number is seconds. A sequence, a parallel agent and agents that ask a model, one elsewhere or a Go program have it as steps of a loop"},
	{"iteration_timeout", []Type{TypeLoop}, false, "how long one iteration may take; the rest of it is then skipped"},
	{"iteration_delay", []Type{TypeLoop}, false, "how long to wait between two iterations"},
	{"budget", []Type{TypeLoop}, false, "what model calls in the loop may use: {calls, tokens, cost}"},
	{"finalizer", []Type{TypeLoop}, false, "when the finalizer runs: after the loop (the default: after) or each_iteration"},
	{"finalizer_reserve", []Type{TypeLoop}, false, "the share of time and budget that is kept for the finalizer; 10% if left out"},
	{"state_limit", []Type{TypeLoop}, false, "the largest state at the end of an iteration, as 10MB; none is no limit"},
	{"max_consecutive_failures", []Type{TypeLoop}, false, "so many steps failing one after another end the loop"},
	{"max_concurrency", []Type{TypeParallel}, false, "how many sub-agents run at once; all if left out"},
	{"on_error", nil, false, "what a failed step does: stop (the default), skip_step or next_iteration; on a loop for its steps, on a step for itself"},
	{"retry", nil, false, "of a loop's step: how often it runs in all when it fails, or {attempts, backoff, max_backoff}"},
	{"circuit", nil, false, "of a loop's step: {failures, cooldown}: after so many failures running it is not run until the time is over; steps with the same endpoint share it"},
	{"adaptive_timeout", nil, false, "of a loop's step: a timeout made from how long it has taken so far: {min, max, factor, after}"},
	{"delay_before", nil, false, "of a loop's step, or of the loop at the root: how long to wait before it"},
	{"delay_after", nil, false, "of a loop's step, or of the loop at the root: how long to wait after it"},
	{"cache", nil, false, "of a loop's step: true if it says the same whenever it reads the same; or how long that holds; or {ttl, key}"},
	{"continue_on_error", nil, false, "true is on_error: next_iteration"},
	{"sub_agents", workflows, false, "the agents in it, in order; {ref: file.yaml} reads one from a file"},
	{"model", []Type{TypeLLM, TypeLoop, TypeSequential, TypeParallel}, false, "the model, as provider/name; on a workflow agent for all in it; the run's own if left out"},
	{"context", []Type{TypeLLM}, false, "what the model sees of what was said: iteration (the default), full, digest, none or {last: n} iterations; with digest: true those before in a few lines, and best_chars of the best one"},
	{"tools", []Type{TypeLLM}, false, "what the model can call: exit_loop, the name of a Go function, {agent: {…}}, {command, name, description, parameters}, {mcp: {command, env}} or {mcp: {url, headers}}"},
	{"output_schema", []Type{TypeLLM}, false, "the JSON Schema of the answer, which then is JSON"},
	{"temperature", []Type{TypeLLM}, false, "from 0 to 2; the model's own if left out"},
	{"max_tokens", []Type{TypeLLM}, false, "the most tokens of an answer; the model's own limit if left out"},
	{"request_retry", []Type{TypeLLM}, false, "how often a request is sent in all when the provider is busy or does not answer, 3 if left out; or {attempts, backoff, max_backoff, max_retry_after}"},
	{"command", []Type{TypeCommand}, false, "the program and its arguments; no shell reads them"},
	{"stdin", []Type{TypeCommand}, false, "what the command reads"},
	{"env", []Type{TypeCommand}, false, "further environment variables"},
	{"clean_env", []Type{TypeCommand}, false, "true leaves out the environment but for PATH, HOME and the like"},
	{"dir", []Type{TypeCommand}, false, "the working directory, inside the run's root"},
	{"output_limit", []Type{TypeCommand}, false, "the most output, as 1MB"},
	{"ok_exit_codes", []Type{TypeCommand}, false, "exit codes that are no failure; [0] if left out"},
	{"unsafe", []Type{TypeCommand}, false, "true allows placeholders where a value could be run as code: in the script of a shell, among the arguments of a program that starts others, in part of an argument"},
	{"url", []Type{TypeHTTP}, false, "where the request goes; its host is fixed"},
	{"method", []Type{TypeHTTP}, false, "GET if left out"},
	{"headers", []Type{TypeHTTP, TypeA2A}, false, "request headers"},
	{"body", []Type{TypeHTTP}, false, "what is sent: text, or a map or a list as JSON"},
	{"size_limit", []Type{TypeHTTP, TypeA2A}, false, "the longest answer, as 1MB"},
	{"redirect_hosts", []Type{TypeHTTP}, false, "other servers to which a redirect may lead, as host or host:port; they get no headers and no body. None if left out"},
	{"ok_status", []Type{TypeHTTP}, false, "statuses that are no failure; 200 to 299 if left out"},
	{"json", []Type{TypeCommand, TypeHTTP}, false, "true if the output is JSON and to be kept as such"},
	{"set", []Type{TypeExpression}, false, "state keys and the expressions of their new values"},
	{"value", []Type{TypeExpression}, false, "the expression whose value output_key gets"},
	{"text", []Type{TypeTemplate}, false, "what the agent says"},
	{"endpoint", []Type{TypeA2A}, false, "where the agent is, or its card: an address of http or https; its host is fixed"},
	{"payload", []Type{TypeA2A}, false, "what the agent is sent: text, or a map or a list as data; the user's message if left out"},
	{"new_context", []Type{TypeA2A}, false, "true begins a new conversation each time; else the agent knows what the session has asked it before"},
	{"question", []Type{TypeHuman}, false, "what a person is asked, with placeholders"},
	{"ask", []Type{TypeHuman}, false, "what for: approve (the default), answer in words, or edit of the state"},
	{"options", []Type{TypeHuman}, false, "the answers to choose from; any if left out"},
	{"keys", []Type{TypeHuman}, false, "the state keys that are shown and can be edited"},
	{"deadline", []Type{TypeHuman}, false, "how long the person may take, as 24h; as long as it takes if left out"},
	{"default", []Type{TypeHuman}, false, "the answer when the deadline is over: true or false, a text, or a map of keys; without one the step fails"},
	{"func", []Type{TypeFunc}, false, "the name of a Go agent, which the program that runs the definition gives"},
	{"effect", []Type{TypeCommand, TypeHTTP, TypeExpression, TypeTemplate}, false, "what it does to the world outside, and with it what follows when it is cut off: idempotent (the default of commands and requests), pure, at_most_once or transactional; or {at_most_once: true, reconcile: {command} or {url}}, which finds out by itself whether it was done"},
	{"callbacks", nil, false, "who is told, and may veto: before_run, after_run, before_agent, after_agent, before_iteration, after_iteration, before_model, after_model, before_tool, after_tool, each a list of {webhook, secret_env}, {command} or {func}, with timeout, veto, on_error"},
	{"output_key", nil, false, "the state key of the result; loop_output makes a step of a loop its finalizer"},
	{"result_key", tasks, false, "the state key of all there is to know about the result, such as exit_code"},
	{"exit_when", tasks, false, "an expression over state and result that ends the nearest loop when it is true"},
	{"exit_reason", tasks, false, "why, in words"},
	{"can_exit_loop", nil, false, "whether the agent, with all in it, may end the loop; the default is true with exit_when or the tool exit_loop, else false; true gives an llm agent that tool, and lets a person who approves end the loop"},
}

// fieldNamed finds a field; its name is empty if there is none.
func fieldNamed(name string) Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return Field{}
}

func (f Field) has(t Type) bool {
	return f.Types == nil || slices.Contains(f.Types, t)
}

// typed are the fields that tell an agent's type, the clearest first.
var typed = []struct {
	field string
	is    Type
}{
	{"sub_agents", TypeLoop},
	{"command", TypeCommand},
	{"url", TypeHTTP},
	{"set", TypeExpression},
	{"value", TypeExpression},
	{"text", TypeTemplate},
	{"endpoint", TypeA2A},
	{"question", TypeHuman},
	{"func", TypeFunc},
}

// asking are the fields that agents of other types have too.
var asking = []string{"instructions", "model"}

var types = []string{
	string(TypeLoop), string(TypeSequential), string(TypeParallel), string(TypeLLM),
	string(TypeCommand), string(TypeExpression), string(TypeHTTP), string(TypeTemplate), string(TypeA2A),
	string(TypeHuman), string(TypeFunc),
}
