// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/form"
)

// U4: a model that is missing here is told before a run, at the field that names it, or at that of the root.
func TestModels(t *testing.T) {
	const text = `name: story
sub_agents:
  - {name: writer, instructions: Write}
  - name: panel
    model: anthropic/x
    sub_agents:
      - {name: critic, instructions: Judge}
`
	for _, tt := range []struct{ env, paths string }{
		{"", "model sub_agents[1].model"},
		{"ANTHROPIC_API_KEY", "model"},
		{"REFRAIN_MODEL ANTHROPIC_API_KEY", ""}, // the environment's model is ollama's, which needs no key
	} {
		o := form.Read("story.yaml", []byte(text), definition.Options{})
		o.Models(func(name string) string {
			switch {
			case !strings.Contains(tt.env, name):
				return ""
			case name == "REFRAIN_MODEL":
				return "ollama/qwen3"
			}
			return "secret"
		})
		var paths []string
		for _, p := range o.Problems {
			if p.Code == definition.CodeModel {
				paths = append(paths, p.Path)
			}
		}
		slices.Sort(paths)
		if got := strings.Join(paths, " "); got != tt.paths || !o.Valid || o.Runs != (tt.paths == "") {
			t.Errorf("with %q: problems at %q, valid %v, runs %v", tt.env, got, o.Valid, o.Runs)
		}
	}
}

// What a server does not take stands at the field, which has its line.
func TestRefuse(t *testing.T) {
	o := form.Read("x.yaml", []byte("name: x\nsub_agents:\n  - name: hello\n    command: [echo, hello]\n"), definition.Options{})
	o.Refuse("hello", "command", "not here")
	p := o.Problems[len(o.Problems)-1]
	if p.Path != "sub_agents[0].command" || p.Line != 4 || o.Valid || o.Runs {
		t.Errorf("it stands at %q in line %d; valid %v, runs %v", p.Path, p.Line, o.Valid, o.Runs)
	}
}

// U6: a step may end its loop by the field, by exit_when, or by its tool, unless the field says no.
func TestCanExit(t *testing.T) {
	for fields, want := range map[string]bool{
		"can_exit_loop: true": true, "tools: [exit_loop]": true, "tools: [lookup, exitLoop]": true, "exit_when: 'true'": true,
		"tools: [exit_loop], can_exit_loop: false": false, "tools: [lookup]": false, "output_key: a": false,
	} {
		o := form.Read("x.yaml", []byte("name: x\nsub_agents:\n  - {name: a, "+fields+"}\n"), definition.Options{})
		if got := o.Agents[0].Steps[0].CanExit; got != want {
			t.Errorf("with %s: %v", fields, got)
		}
	}
}

// U4: a field is explained for the agent that has it, and not for all that may have it.
func TestDocsOfATypeOfAgent(t *testing.T) {
	for _, f := range form.Fields() {
		for _, kinds := range []string{"loop: ", "llm: ", "on a loop ", "on a workflow agent ", "on sequential, "} {
			if (strings.HasPrefix(f.Doc, kinds) || strings.Contains(f.Doc, "; "+kinds)) && f.Docs == nil {
				t.Errorf("%s has one explanation for all: %s", f.Name, f.Doc)
			}
		}
		for kind, doc := range f.Docs {
			if doc == "" || f.Types != nil && !slices.Contains(f.Types, kind) {
				t.Errorf("%s is explained for %s: %q", f.Name, kind, doc)
			}
		}
	}
}
