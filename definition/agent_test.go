// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
)

// A21, U11: how an agent is shown is kept, and nothing of a run depends on it.
func TestDisplayNameAndColor(t *testing.T) {
	d := parse(t, "name: a\ndisplay_name: Der Loop ↻\ncolor: \"#3366CC\"\nsub_agents: [{name: b, text: b, color: orange}]")
	root, sub := d.Root, d.Root.SubAgents[0]
	if root.DisplayName != "Der Loop ↻" || root.Shown() != root.DisplayName || root.Color != "#3366CC" || sub.Shown() != "b" || sub.Color != "orange" {
		t.Errorf("shown as %q %q and %q %q", root.Shown(), root.Color, sub.Shown(), sub.Color)
	}
	for _, color := range definition.Colors() {
		parse(t, "name: a\ntext: a\ncolor: "+color)
	}
}

// C29, A23: the form of the fields in JSON, with a config.
func TestConfigStandsForTheFieldsInIt(t *testing.T) {
	d := parse(t, `{"name": "a", "type": "llm", "model": "gemini/gemini-2.0-flash", "instructions": "Hi {{user_input}}", "config": {"output_key": "feedback"}}`)
	if d.Root.OutputKey != "feedback" || d.Root.LLM.Instructions != "Hi {{user_input}}" {
		t.Errorf("%+v", d.Root)
	}
	for text, want := range map[string]string{
		`{"name": "a", "text": "x", "output_key": "k", "config": {"output_key": "l"}}`:    `"output_key" is given twice, in config and in line 1 [LOOP007]`,
		`{"name": "a", "text": "x", "config": {"output_kye": "l"}}`:                       `x.yaml:1:39: error: unknown field "output_kye" [LOOP003]`,
		`{"name": "a", "text": "x", "config": 3}`:                                         `config must be a map, got 3`,
		`{"type": "task", "task_definition": "x", "config": {"output_key": "k"}}`:         `leave the type out: instructions asks a model`,
		`{"type": "workflow", "workflow_type": "sequential", "sub_agents": ["a1", "a2"]}`: `write it as the type: loop, sequential or parallel`,
		`{"type": "a2a", "agent_card_url": "https://x", "config": {"output_key": "k"}}`:   `did you mean "endpoint"?`,
	} {
		if got := problems(t, text); !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant %s", text, got, want)
		}
	}
}

func TestFieldsNameTheirTypes(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range definition.Fields() {
		if seen[f.Name] || f.Doc == "" || strings.Contains(f.Doc, "\n") {
			t.Errorf("field %+v", f)
		}
		seen[f.Name] = true
	}
}
