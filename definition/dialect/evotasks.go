// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// task reads a task: a text, or tasks for agents. A model does it.
func (r *evoReader) task(a *agent, v value) *agent {
	a.typ = definition.TypeLLM
	if text := evoField(v, "task"); !text.empty() {
		a.instructions = text.text()
		a.set("context", "full")
		r.changed(text.at(), a.was, "task_definition", "instructions", "a task is done by an agent that asks a model, and this is what it is told").Advice =
			"what a program does is an agent of type command, expression or http"
		if m := evoField(v, "model"); !m.empty() {
			r.useModel(a, m.at(), "model", m.text())
		}
		return a
	}
	tasks := evoField(v, "tasks").items()
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
	r.changed(evoField(v, "tasks").at(), a.was, "tasks", "sub_agents", "each is an agent that asks a model, one after the other")
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
	step.instructions = joined(step.instructions, text)
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
		a.typ = definition.TypeSequential
		r.chain(a, graph)
	case !evoField(v, "sub_agents").empty():
		r.composite(a, v, definition.TypeSequential)
		r.changed(v.at(), a.was, "workflow_type", "sequential", "it is not given")
	default:
		r.fail(v.at(), a.was, "sub_agents", "Agent workflow must have sub_agents")
	}
	return a
}

// chain reads a graph of nodes that come one after the other. A graph with
// branches is a program, which a definition does not hold.
func (r *evoReader) chain(a *agent, graph value) {
	nodes := make(map[string]value)
	for _, n := range graph.get("nodes").items() {
		nodes[n.get("id").text()] = n
	}
	next, indegree := make(map[string][]string), make(map[string]int)
	for _, e := range graph.get("edges").items() {
		from, to := e.get("source").text(), e.get("target").text()
		next[from] = append(next[from], to)
		indegree[to]++
	}
	var at string
	for _, n := range graph.get("nodes").items() {
		if id := n.get("id").text(); n.get("type").text() == "start-node" || at == "" && indegree[id] == 0 {
			at = id
		}
	}
	seen := make(map[string]bool)
	for ; at != "" && !seen[at]; at = first(next[at]) {
		seen[at] = true
		if len(next[at]) > 1 || strings.HasPrefix(nodes[at].get("type").text(), "condition") {
			r.fail(nodes[at].at(), a.was, "workflow", "the workflow branches at the node %q: a definition has no graphs", at).Advice =
				"write the way through it that is taken as sub_agents of a sequential agent; a loop is left by stop_when or exit_when"
			return
		}
		r.graphNode(a, nodes[at])
	}
	for _, n := range graph.get("nodes").items() {
		if !seen[n.get("id").text()] {
			r.fail(n.at(), a.was, "workflow", "no way leads to every node of the workflow, or one leads back: a definition has no graphs")
			return
		}
	}
	if len(a.subs) == 0 {
		r.fail(graph.at(), a.was, "workflow", "the workflow has no agents")
		return
	}
	r.changed(graph.at(), a.was, "workflow", "sub_agents", "its nodes follow each other, so it is a sequence")
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func (r *evoReader) graphNode(a *agent, n value) {
	data := n.get("data")
	switch kind := n.get("type").text(); kind {
	case "start-node", "start", "end-node", "end":
	case "agent-node", "agent":
		ref := data.get("agent")
		if ref.isMap() && ref.get("type").isNull() {
			ref = ref.get("id")
		}
		if ref.isNull() {
			ref = data.get("agent_id")
		}
		if sub := r.ref(a, ref); sub != nil {
			a.subs = append(a.subs, sub)
		}
	case "message-node", "message":
		text := cmpText(data.get("message").text(), data.get("message").get("content").text())
		sub := &agent{at: n.at(), typ: definition.TypeTemplate, name: cmpText(data.get("label").text(), a.name+"_message")}
		sub.was = sub.name
		sub.extra = append(sub.extra, field{key: "text", value: text, filled: true})
		a.subs = append(a.subs, sub)
	default:
		r.dropped(n.at(), a.was, "workflow "+kind, "", "a definition has no such node")
	}
}

// remote reads an agent that is asked elsewhere: where it is, or where its card
// is.
func (r *evoReader) remote(a *agent, v value) *agent {
	endpoint, card := evoField(v, "endpoint"), evoField(v, "card_url")
	text := endpoint.text()
	switch {
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		r.mapped(endpoint.at(), a.was, "endpoint", "")
	case !card.empty():
		text = card.text()
		if !strings.HasSuffix(text, "/.well-known/agent.json") && !strings.HasSuffix(text, "/.well-known/agent-card.json") {
			r.fail(card.at(), a.was, "agent_card_url", "agent_card_url must end with /.well-known/agent.json")
			return nil
		}
		r.mapped(card.at(), a.was, "agent_card_url", "endpoint")
	default:
		r.dropped(v.at(), a.was, "type a2a", "write its address as endpoint", "the file does not say where it is: %s", endpoint.what())
		return nil
	}
	a.typ = definition.TypeA2A
	a.set("endpoint", text)
	if p := evoField(v, "payload"); !p.empty() {
		a.extra = append(a.extra, field{key: "payload", value: copied(p), filled: true})
		r.mapped(p.at(), a.was, "payload", "")
	}
	if h := evoField(v, "headers"); h.isMap() && !h.empty() {
		a.set("headers", r.secrets(a, "headers", h, "headers"))
	}
	return a
}
