// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// task reads a task: a text, or tasks for agents. A model does it.
func (r *evoReader) task(a *agent, v value) *agent {
	a.typ = definition.TypeLLM
	text := evoField(v, "task")
	if !text.empty() && text.isScalar() {
		a.tell(text.text(), text, false)
		a.set("context", "full")
		r.changed(text.at(), a.was, "task_definition", "instructions", "a task is done by an agent that asks a model, and this is what it is told").Advice =
			"what a program does is an agent of type command, expression or http"
		if m := evoField(v, "model"); !m.empty() {
			r.useModel(a, m, m.at(), "model", m.text())
		}
		return a
	}
	tasks, from := evoField(v, "tasks").items(), evoField(v, "tasks")
	if text.isMap() { // as an entry of tasks
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
	r.changed(from.at(), a.was, "tasks", "sub_agents", "each is an agent that asks a model, one after the other")
	return a
}

// oneTask is the agent of a task with the task in its instructions.
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
			r.dropped(t.at(), a.was, "tasks agent_id", "", "%s asks no model, so the task is done by an agent of its own", step.was)
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
	r.changed(description.at(), a.was, "tasks", "instructions", "the task and what is expected follow the instructions of the agent that does it")
	if tools := t.get("enabled_tools"); !tools.empty() {
		r.dropped(tools.at(), a.was, "tasks enabled_tools", "", "an agent has all of its tools")
	}
	return step
}

// workflow reads a workflow: a type and sub-agents, or a graph that is a chain.
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

// remote reads an agent that is asked elsewhere: where it is, or where its card
// is.
func (r *evoReader) remote(a *agent, v value) *agent {
	endpoint, card := evoField(v, "endpoint"), evoField(v, "card_url")
	text, at := endpoint.text(), endpoint
	usable := strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
	switch {
	case card.empty() || endpoint.empty():
	case usable:
		r.dropped(card.at(), a.was, "agent_card_url", "", "endpoint says where it is")
	default:
		r.dropped(endpoint.at(), a.was, "endpoint", "", "it is no address, and agent_card_url says where the agent is")
	}
	switch {
	case usable:
		at = endpoint
		r.mapped(endpoint.at(), a.was, "endpoint", "")
	case !card.empty():
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
			"write where the agent is, such as https://host/agent; what it is sent goes into payload"
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
