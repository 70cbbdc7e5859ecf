// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// evoKnown lists the fields that are read, and those that do not change what an agent does.
var (
	evoKnown = []string{
		"name", "type", "description", "config", "goal", "role", "instruction", "model", "output_key", "enable_exit_loop", "sub_agents",
		"max_iterations", "agents_exit_loop", "condition", "iteration_timeout", "total_timeout", "sub_agent_timeout", "timeout", "timeouts", "task", "tasks",
		"workflow_type", "workflow", "card_url", "endpoint", "payload", "method", "headers", "output_schema", "agent_tools", "custom_mcp_servers",
		"temperature", "max_tokens", "continue_on_error",
	}
	evoSilent = []string{
		"id", "client_id", "folder_id", "created_at", "updated_at", "avatar_url", "provider", "publish_state", "tags",
		"is_active", "status", "version",
	}
	evoGone = map[string]string{
		"convergence": scoreAdvice, "convergence_threshold": scoreAdvice, "convergence_metrics": scoreAdvice, "min_improvement": scoreAdvice,
		"improvement_threshold": scoreAdvice, "quality_threshold": scoreAdvice, "stop_condition": stopAdvice, "stop_conditions": stopAdvice,
		"stopping_criteria": stopAdvice, "early_termination": stopAdvice, "cache": "give the step cache: true", "circuit_breaker": "give the step circuit: {failures, cooldown}",
		"memory_limit": "give the loop state_limit", "quality_gate": "give the loop score and quality_gate", "retry": "give the step retry: {attempts, backoff}",
		"api_key": "set the provider's variable in the environment: doc/models.md", "api_key_id": "set the provider's variable in the environment: doc/models.md",
		"tools": "give MCP servers or commands in tools", "custom_tools": "give an MCP server, or http agents as tools: {agent: {…}}",
		"custom_tool_ids": "give MCP servers or commands in tools", "mcp_servers": "write the server in tools: {mcp: {command: […]}}",
		"custom_mcp_server_ids": "write the server in tools: {mcp: {url: …}}", "load_memory": "keep the facts in the state",
		"preload_memory": "keep the facts in the state", "load_knowledge": "give an MCP server that searches",
		"knowledge_tags": "give an MCP server that searches", "planner": "describe the steps in the instructions",
	}
)

// The advice for criteria, which Evo AI leaves to the models.
const (
	scoreAdvice = "write score: {key: KEY, label: Score, target: 8.0, min_delta: 0.1} in the loop, with the " +
		"output_key of the agent that judges"
	stopAdvice = "write it as an expression in stop_when, such as state.score >= 8.0"
)

// leftOver reports a field that nothing has read. A mistyped field is an error.
func (r *evoReader) leftOver(a *agent, p pair, full, kind string) {
	key := evoKey(p.key)
	advice, gone := evoGone[key]
	switch on, isBool := p.value.boolean(); {
	case isBool && !on && gone:
		r.add(Mapped, p.at, a.was, full, "", "it is off")
	case slices.Contains(evoKnown, key):
		r.dropped(p.at, a.was, full, "", "an agent of type %s with these fields does not read it",
			cmp.Or(kind, "llm"))
	case gone:
		why := "it is stored in Evo AI's database, or works only there"
		switch {
		case strings.HasPrefix(key, "api_key"):
			why = "keys are not copied"
		case advice == scoreAdvice || advice == stopAdvice:
			why = "Evo AI documents no such field; there, the instructions of an agent say when to stop"
		}
		r.dropped(p.at, a.was, full, advice, "%s", why)
	case suggest.Nearest(key, evoKnown) != "":
		r.fail(p.at, a.was, full, "unknown field %q; Evo AI ignores it", p.key).Advice = meant(key, evoKnown)
	default:
		r.dropped(p.at, a.was, full, "", "a definition has no such field")
	}
}

// llm reads an agent that asks a model.
func (r *evoReader) llm(a *agent, v value) {
	a.typ = definition.TypeLLM
	a.set("context", "full")
	r.given(a, v, "instruction", r.carryText)
	r.given(a, v, "goal", func(a *agent, p pair) { r.before(a, p, "Goal: ") })
	r.given(a, v, "role", func(a *agent, p pair) { r.before(a, p, "Role: ") }) // comes first in the result
	r.given(a, v, "model", r.carryModel)
	r.asksUser(a, "instruction")
	r.given(a, v, "output_schema", r.schema)
	r.given(a, v, "temperature", r.carrySame)
	r.given(a, v, "max_tokens", r.carrySame)
	r.mcp(a, v)
	for _, ref := range v.get("config").get("agent_tools").items() {
		if sub := r.ref(a, ref); sub != nil {
			a.tools = append(a.tools, tool{agent: sub, from: ref})
			r.mapped(ref.at(), a.was, "agent_tools", "tools agent")
		}
	}
	if subs := evoField(v, "sub_agents"); !subs.empty() {
		r.subAgents(a, subs)
		r.asTools(a, subs.at(), "sub_agents", "Evo AI")
	}
}

// before adds a text before the instructions.
func (r *evoReader) before(a *agent, p pair, label string) {
	a.tell(label+p.value.text(), p.value, true)
	r.mapped(p.at, a.was, p.key, "instructions")
}

// schema reads a JSON Schema or only its properties.
func (r *evoReader) schema(a *agent, p pair) {
	v := p.value
	if !v.get("properties").isNull() || !v.get("type").isMap() && !v.get("type").isNull() {
		r.carrySame(a, p)
		return
	}
	var required []any
	for _, p := range v.pairs() {
		required = append(required, p.key)
	}
	a.set("output_schema", object{{key: "type", value: "object"}, {key: "properties", value: copyOf(v)},
		{key: "required", value: required}}, v)
	r.changed(v.at(), a.was, "output_schema", "output_schema",
		"its fields are the properties of a JSON Schema, all of them required")
}

func (r *evoReader) mcp(a *agent, v value) {
	for _, server := range v.get("config").get("custom_mcp_servers").items() {
		r.carryMCP(a, server, "custom_mcp_servers", r.remoteMCP(a, "custom_mcp_servers", server))
	}
}

// ref reads the agent that an ID or a name refers to, or an inline agent.
func (r *evoReader) ref(a *agent, ref value) *agent {
	name := evoRef(ref)
	if ref.isMap() && name == "" {
		return r.agent(ref, a)
	}
	if v, ok := r.by[name]; ok {
		sub := r.agent(v, a)
		if sub != nil && ref.isMap() {
			r.entry(sub, ref, a)
		}
		return sub
	}
	names := slices.Sorted(maps.Keys(r.by))
	r.fail(ref.at(), a.was, "sub_agents", "Agent with ID %s not found", name).Advice =
		cmp.Or(r.near(name, names), "export the agents together: another agent lists it")
	ref.all()
	return nil
}

// entry reads the fields in the same map as a reference, such as {agent_id: …, timeout: 30}, as fields of the step.
func (r *evoReader) entry(sub *agent, ref value, around *agent) {
	for _, key := range []string{"agent_id", "id", "name"} {
		ref.ask(key)
	}
	for _, key := range []string{"timeout", "sub_agent_timeout"} {
		if t := evoField(ref, key); !t.empty() {
			r.timeout(sub, t)
		}
	}
	r.given(sub, ref, "output_key", r.carryKey)
	r.mayExit(sub, ref, around)
	for _, p := range ref.pairs() {
		if !ref.asked(p.key) && !p.value.blank() {
			p.value.all()
			r.dropped(p.at, sub.was, p.key, "", "a definition has no such field of a step")
		}
	}
}

func (r *evoReader) subAgents(a *agent, v value) {
	if !v.isList() {
		r.fail(v.at(), a.was, "sub_agents", "sub_agents must be a list")
		return
	}
	for _, ref := range v.items() {
		if sub := r.ref(a, ref); sub != nil {
			a.subs = append(a.subs, sub)
		}
	}
	r.mapped(v.at(), a.was, "sub_agents", "")
}

// composite reads a loop, a sequence or a parallel agent.
func (r *evoReader) composite(a *agent, v value, t definition.Type) {
	a.typ = t
	subs := evoField(v, "sub_agents")
	switch {
	case subs.isNull():
		r.fail(v.at(), a.was, "sub_agents", "Agent %s must have sub_agents", t)
		return
	case subs.isList() && len(subs.items()) == 0:
		r.fail(subs.at(), a.was, "sub_agents", "Agent %s must have at least one sub-agent", t)
		return
	}
	r.subAgents(a, subs)
	if t == definition.TypeLoop {
		r.loop(a, v)
		return
	}
	for _, key := range []string{"goal", "role", "instruction"} {
		if f := evoField(v, key); !f.empty() {
			r.dropped(f.at(), a.was, key, "write it in the instructions of the agents in it",
				"Evo AI does not use it either")
		}
	}
}

// loop reads the fields that only loops have.
func (r *evoReader) loop(a *agent, v value) {
	r.given(a, v, "goal", func(a *agent, p pair) { r.carry(a, p, "goal", p.value.text()) })
	r.given(a, v, "instruction", r.carryText)
	if n := evoPair(v, "max_iterations"); !n.value.isNull() {
		r.carryWhole(a, n, "max_iterations")
	} else {
		r.changed(a.at, a.was, "max_iterations", "5", "it is not given: here the loop then ends after 5 iterations; in Evo AI "+
			"it may never end")
	}
	if c := evoField(v, "condition"); !c.empty() {
		r.dropped(c.at(), a.was, "condition", stopAdvice, "Evo AI stores %s and never reads it", c.what())
	}
	r.times(a, v)
	r.exitList(a, v)
}

// step returns the sub-agent of a loop with an ID or a name, or nil if there is none.
func (r *evoReader) step(a *agent, ref string) *agent {
	if v, ok := r.by[ref]; ok {
		for _, sub := range a.subs {
			if sub.whole.Node == v.Node {
				return sub
			}
		}
		if sub := find(a.subs, evoName(v)); sub != nil {
			return sub
		}
	}
	return find(a.subs, ref)
}

// exitList reads the list of agents that may end a loop. If there is no list and no agent has its own permission,
// every model may end the loop, as in Evo AI.
func (r *evoReader) exitList(a *agent, v value) {
	list := evoField(v, "agents_exit_loop")
	if list.isNull() {
		if !slices.ContainsFunc(a.subs, func(s *agent) bool { return s.exit != nil }) {
			r.changed(a.at, a.was, "exit_loop", "", "no agent is chosen to end the loop, so every agent that asks a "+
				"model may, as in Evo AI").Advice =
				"give can_exit_loop: true to the one that decides"
		}
		return
	}
	for _, ref := range list.items() {
		name := evoRef(ref)
		sub := r.step(a, name)
		known := slices.ContainsFunc(evoRefs(v), func(s value) bool {
			return name != "" && evoRef(s) == name || r.names(evoRef(s), r.by[name])
		})
		switch {
		case sub == nil && known: // the reason was already reported
		case sub == nil:
			r.fail(ref.at(), a.was, "agents_exit_loop", "Agent with ID %s not found among the sub-agents", name)
		case sub.outputKey == definition.LoopOutput:
			r.dropped(ref.at(), sub.was, "agents_exit_loop", "", "it runs after the loop has stopped")
		case !asks(sub):
			r.dropped(ref.at(), sub.was, "agents_exit_loop", elsewhereExit,
				"only an agent that asks a model can call exit_loop")
		default:
			sub.exit = new(true)
			sub.came("can_exit_loop", ref)
			r.mapped(ref.at(), sub.was, "agents_exit_loop", "can_exit_loop")
		}
	}
	r.deny(a)
	if len(list.items()) == 0 {
		r.add(Mapped, list.at(), a.was, "agents_exit_loop", "can_exit_loop: false",
			fmt.Sprintf("none of %s", brief.Count(len(a.subs), "sub-agent")))
	}
}

// task reads a task, which is a text or a list of tasks for agents. An agent that calls a model does the task.
func (r *evoReader) task(a *agent, v value) *agent {
	a.typ = definition.TypeLLM
	text := evoField(v, "task")
	if !text.empty() && text.isScalar() {
		a.tell(text.text(), text, false)
		a.set("context", "full")
		r.changed(text.at(), a.was, "task_definition", "instructions", "an agent that asks a model does the "+
			"task, with this text as its instructions").Advice =
			"if a program does the task, write an agent of type command, expression or http"
		r.given(a, v, "model", r.carryModel)
		return a
	}
	tasks, from := evoField(v, "tasks").items(), evoField(v, "tasks")
	if text.isMap() { // in the form of an entry of tasks
		tasks, from = append([]value{text}, tasks...), text
	}
	if len(tasks) == 0 {
		r.fail(v.at(), a.was, "tasks", "Task missing required field: description")
		return nil
	}
	var steps []*agent
	for _, t := range tasks {
		if step := r.oneTask(a, t); step != nil {
			steps = append(steps, step)
		}
	}
	if len(steps) == 1 {
		step := steps[0]
		step.name, step.was, step.at = a.name, a.was, a.at
		return step
	}
	a.typ, a.subs = definition.TypeSequential, steps
	r.changed(from.at(), a.was, "tasks", "sub_agents", "each task becomes an agent that asks a model; they run one after the other")
	return a
}

// oneTask returns the agent that does a task, with the task in its instructions.
func (r *evoReader) oneTask(a *agent, t value) *agent {
	description := t.get("description")
	if description.empty() {
		r.fail(t.at(), a.was, "tasks", "Task missing required field: description")
		return nil
	}
	var step *agent
	if id := t.get("agent_id"); !id.empty() {
		step = r.ref(a, id)
		if step == nil {
			return nil
		}
	}
	if step == nil || step.typ != definition.TypeLLM {
		if step != nil {
			r.dropped(t.at(), a.was, "tasks agent_id", "", "%s asks no model, so another agent does the "+
				"task", step.was)
		}
		step = &agent{typ: definition.TypeLLM, name: a.name, was: a.was}
		step.set("context", "full")
	}
	step.exit = nil
	step.at = t.at()
	text := "Task: " + description.text()
	if out := t.get("expected_output"); !out.empty() {
		text += "\nExpected output: " + out.text()
	}
	step.tell(text, description, false)
	r.changed(description.at(), a.was, "tasks", "instructions",
		"the task and the expected output are added to the instructions of the agent that does it")
	if tools := t.get("enabled_tools"); !tools.empty() {
		r.dropped(tools.at(), a.was, "tasks enabled_tools", "", "an agent can always use all of its tools")
	}
	return step
}

// workflow reads a workflow, which has a type and sub-agents, or a graph.
func (r *evoReader) workflow(a *agent, v value) *agent {
	kind := strings.ToLower(evoField(v, "workflow_type").text())
	if kind == "" { // Workflow Agent (Sequential)
		_, after, _ := strings.Cut(strings.ToLower(evoField(v, "type").text()), "(")
		kind = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), ")"))
	}
	graph := evoField(v, "workflow")
	switch {
	case kind == "sequential" || kind == "parallel" || kind == "loop":
		r.mapped(v.at(), a.was, "workflow_type "+kind, "type")
		r.composite(a, v, definition.Type(kind))
	case kind != "":
		r.fail(evoField(v, "workflow_type").at(), a.was, "workflow_type", "there is no workflow_type %q", kind).Advice =
			meant(kind, []string{"sequential", "parallel", "loop"})
	case !graph.empty():
		a.came("workflow", graph)
		r.graph(a, graph)
		r.after(a, v)
	case !evoField(v, "sub_agents").empty():
		r.composite(a, v, definition.TypeSequential)
		r.changed(v.at(), a.was, "workflow_type", "sequential", "it is not given")
	default:
		r.fail(v.at(), a.was, "sub_agents", "Agent workflow must have sub_agents")
	}
	return a
}

// remote reads a remote agent, which has its address or the address of its card.
func (r *evoReader) remote(a *agent, v value) *agent {
	endpoint, card := evoField(v, "endpoint"), evoField(v, "card_url")
	text, at := endpoint.text(), endpoint
	usable := strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
	switch {
	case usable:
		if !card.empty() {
			r.dropped(card.at(), a.was, "agent_card_url", "", "endpoint gives the address")
		}
		r.mapped(endpoint.at(), a.was, "endpoint", "")
	case !card.empty():
		if !endpoint.empty() {
			r.dropped(endpoint.at(), a.was, "endpoint", "", "it is not an address; agent_card_url gives the address")
		}
		text, at = card.text(), card
		if !strings.HasSuffix(text, "/.well-known/agent.json") && !strings.HasSuffix(text, "/.well-known/agent-card.json") {
			r.fail(card.at(), a.was, "agent_card_url", "agent_card_url must end with /.well-known/agent.json")
			return nil
		}
		r.mapped(card.at(), a.was, "agent_card_url", "endpoint")
	default:
		v.all()
		at := endpoint.at()
		if endpoint.isNull() {
			at = v.at()
		}
		r.fail(at, a.was, "endpoint", "the endpoint must be an address of http or https, got %s", endpoint.what()).Advice =
			"write the agent's address, such as https://host/agent; what it is sent goes into payload"
		return nil
	}
	a.typ = definition.TypeA2A
	a.set("endpoint", r.address(a, "endpoint", at), at)
	if p := evoField(v, "payload"); !p.empty() {
		a.extra = append(a.extra, field{key: "payload", value: r.payload(a, "payload", p), filled: true})
		a.came("payload", p)
		r.mapped(p.at(), a.was, "payload", "")
	}
	if h := evoField(v, "headers"); !h.empty() && !h.isMap() {
		r.fail(h.at(), a.was, "headers", "headers must be a map, got %s", h.what())
	} else if !h.empty() {
		a.set("headers", r.secrets(a, "headers", h, "headers"), h)
	}
	return a
}
