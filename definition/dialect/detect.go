// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
)

// Detect says which dialect a text is in; empty if it is in none, or in a
// definition's own format. The name is that of the file: root_agent.yaml is what
// ADK calls its own.
func Detect(name string, data []byte) Dialect {
	if isSDK(data) {
		return Robomotion
	}
	i := &importer{report: &Report{}}
	v, ok := i.parse(name, data)
	if !ok {
		return ""
	}
	switch {
	case looksADK(v) || filepath.Base(name) == "root_agent.yaml" && v.isMap() && v.get("instructions").isNull() && v.get("type").isNull():
		return ADK
	case looksRobomotion(v):
		return Robomotion
	case looksEvo(v):
		return Evo
	}
	return ""
}

// isSDK reports whether a text is a flow of Robomotion's SDK.
func isSDK(data []byte) bool {
	return bytes.Contains(data, []byte("flow.create(")) || bytes.Contains(data, []byte("@robomotion/sdk"))
}

func looksADK(v value) bool {
	if !v.get("agent_class").isNull() {
		return true
	}
	for _, sub := range v.get("sub_agents").items() {
		if !sub.get("config_path").isNull() || !sub.get("code").isNull() {
			return true
		}
	}
	// Evo AI says instruction too, with a type beside it.
	return !v.get("instruction").isNull() && v.get("type").isNull() && v.get("id").isNull() && v.get("config").isNull()
}

func looksRobomotion(v value) bool {
	nodes := v.get("nodes").items()
	if v.isList() {
		nodes = v.items()
	}
	if v.isMap() && len(nodes) == 0 {
		nodes = []value{v}
	}
	return slices.ContainsFunc(nodes, func(n value) bool {
		if kindOfNode(nodeType(n)) != "" && (strings.Contains(nodeType(n), ".") || !n.get("inputs").isNull() || !n.get("options").isNull()) {
			return true
		}
		return slices.ContainsFunc(n.pairs(), func(p pair) bool {
			return p.key == "sub-agents" || p.key == "Max Iterations" || p.key == "Custom Sub-Agents Order" || p.key == "optMaxIterations"
		})
	})
}

func looksEvo(v value) bool {
	agents := v.items()
	if data := v.get("data"); v.isMap() && (data.isMap() || data.isList()) && v.get("type").isNull() {
		return looksEvo(data)
	}
	if list := v.get("agents"); list.isList() {
		agents = list.items()
	}
	if v.isMap() && len(agents) == 0 {
		agents = []value{v}
	}
	return slices.ContainsFunc(agents, func(a value) bool {
		for _, key := range []string{"task_definition", "workflow_type", "agent_card_url", "card_url", "api_key_id", "client_id", "folder_id"} {
			if !a.get(key).isNull() {
				return true
			}
		}
		labels := slices.ContainsFunc(a.pairs(), func(p pair) bool { // as the form has them: Output Key
			return p.key != evoKey(p.key) && (evoKey(p.key) == "output_key" || evoKey(p.key) == "instruction")
		})
		kind := strings.ToLower(a.get("type").text())
		if labels && evoTypes[evoType(a)] && !strings.Contains(kind, ".") && kind == "" {
			return true
		}
		if slices.Contains([]string{"task", "workflow", "external"}, kind) || kind == "llm" && !a.get("instruction").isNull() {
			return true
		}
		if a.get("config").isMap() && !a.get("type").isNull() { // ADK and Robomotion have none, and a definition needs none
			return true
		}
		if a.get("config").get("sub_agents").isList() || slices.ContainsFunc(a.get("sub_agents").items(), value.isText) {
			return true
		}
		return v.get("agents").isList() && evoTypes[kind]
	})
}
