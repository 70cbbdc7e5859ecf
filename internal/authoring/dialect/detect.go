// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// Detect returns the dialect of a text. It returns "" for an unknown text and for a definition. name is the name of
// the file, because ADK's root file is called root_agent.yaml.
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
	case looksADK(v) || filepath.Base(name) == "root_agent.yaml" && v.isMap() && v.get("instructions").isNull() &&
		v.get("type").isNull():
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
	inline := false
	for _, sub := range v.get("sub_agents").items() {
		if !sub.get("config_path").isNull() || !sub.get("code").isNull() {
			return true
		}
		inline = inline || !sub.get("name").isNull()
	}
	// Evo AI also has instruction, with a type in the same map. A definition has instructions, and its agents inline, unlike ADK.
	return !inline && !v.get("instruction").isNull() && v.get("type").isNull() && v.get("id").isNull() && v.get("config").isNull()
}

// looksRobomotion reports whether a text has nodes of Robomotion. Their port is called "sub-agents", and Evo AI's
// form has a different spelling.
func looksRobomotion(v value) bool {
	return slices.ContainsFunc(nodesOf(v), func(n value) bool {
		if kindOfNode(nodeType(n)) != "" && (strings.Contains(nodeType(n), ".") || !n.get("inputs").isNull() ||
			!n.get("options").isNull()) {
			return true
		}
		return slices.ContainsFunc(n.pairs(), func(p pair) bool {
			return p.key == "sub-agents" || p.key == "Custom Sub-Agents Order" || p.key == "optMaxIterations" ||
				p.key == "Max Iterations" && evoField(n, "sub_agents").isNull()
		})
	})
}

var (
	// evoRecords lists fields of Evo AI's database and documents, which identify it even without a type.
	evoRecords = []string{"task_definition", "workflow_type", "agent_card_url", "card_url", "api_key_id", "client_id", "folder_id"}
	// evoMarks lists other fields that only Evo AI has, in the spelling of [evoLabel].
	evoMarks = []string{
		"can_use_exit_loop", "pode_usar_exit_loop", "enable_exit_loop", "agents_exit_loop", "total_timeout", "total_loop_timeout",
		"sub_agent_timeout",
	}
)

// looksEvo reports whether a text has agents of Evo AI.
func looksEvo(v value) bool {
	agents, listed := evoAgents(v)
	return slices.ContainsFunc(agents, func(a value) bool {
		return evoAgent(a) && !onlyOurs(a) || listed && a.Node != v.Node && evoTypes[strings.ToLower(a.get("type").text())] ||
			slices.ContainsFunc(evoRecords, func(key string) bool { return !a.get(key).isNull() })
	})
}

// evoAgent reports whether an agent, or one in its sub_agents, is written in Evo AI's way. The agent needs a type,
// because a definition without a type that has a field of Evo AI contains a mistake.
func evoAgent(a value) bool {
	config := a.get("config")
	if config.get("sub_agents").isList() || slices.ContainsFunc(a.get("sub_agents").items(), value.isText) {
		return true
	}
	given := strings.ToLower(a.get("type").text())
	kind := definition.TypeOf(given)
	switch {
	case !evoTypes[evoType(a)]:
		return false
	case config.isMap(), kind == definition.TypeLLM && !a.get("instruction").isNull():
		return true
	case kind == "" && (given == "" || evoTypes[given] || strings.Contains(given, " ")): // excludes ADK's LoopAgent
		return true
	}
	return slices.ContainsFunc(a.pairs(), func(p pair) bool { return slices.Contains(evoMarks, evoLabel(p.key)) }) ||
		slices.ContainsFunc(evoField(a, "sub_agents").items(), evoAgent)
}

// onlyOurs reports whether an agent, or one in its sub_agents, has a field that exists in definitions but not in Evo AI.
func onlyOurs(a value) bool {
	return slices.ContainsFunc(a.pairs(), func(p pair) bool {
		key := evoKey(p.key)
		_, told := evoGone[key]
		return !told && !slices.Contains(evoKnown, key) && !slices.Contains(evoSilent, key) &&
			slices.ContainsFunc(definition.Fields(), func(f definition.Field) bool { return f.Name == p.key })
	}) || slices.ContainsFunc(evoField(a, "sub_agents").items(), onlyOurs)
}
