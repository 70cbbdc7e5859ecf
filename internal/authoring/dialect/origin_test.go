// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// problemsOf imports a text and says where the problems of its definition are,
// each with what stands there.
func problemsOf(t *testing.T, name, text string, opts dialect.Options) []string {
	t.Helper()
	res, err := dialect.Import(name, []byte(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	if res.YAML == nil {
		t.Fatalf("no definition: %v", res.Err())
	}
	var got []string
	for _, p := range res.Report.Problems {
		line := []rune(p.Excerpt)
		from := min(p.Column-1, len(line))
		got = append(got, fmt.Sprintf("%s:%d:%d %s %s", p.File, p.Line, p.Column, p.Code, string(line[from:min(from+p.Length, len(line))])))
	}
	return got
}

// T10, T11: people edit the file that they have, so a problem is where its cause
// stands there, whatever the text was made into.
func TestProblemsAreAtTheirPlaceInTheFile(t *testing.T) {
	adk := dialect.Options{Dialect: dialect.ADK, FS: fstest.MapFS{
		"folded.yaml": {Data: []byte("name: folded\ninstruction: >-\n  Write\n  about it,\n\n  then {{#more}} of it\n")},
		"static.yaml": {Data: []byte("name: second\nstatic_instruction: Be brief.\ninstruction: |\n  See {{^a}} x\n")},
		"escape.yaml": {Data: []byte("name: third\ninstruction: \"a\\tb\\u00e9 {{#a}} {{#z}}\"\n")},
		"warm.yaml":   {Data: []byte("name: warm\ninstruction: Say.\ngenerate_content_config:\n  temperature: 7\n")},
	}}
	loop := func(file string) string {
		return "agent_class: LoopAgent\nname: loop\nmax_iterations: 2\nsub_agents: [{config_path: " + file + "}]\n"
	}
	for _, tt := range []struct {
		what, name, text string
		opts             dialect.Options
		want             []string
	}{
		{
			"a loop without an end", "root_agent.yaml", "agent_class: LoopAgent\nname: endless\nsub_agents: [{config_path: warm.yaml}]\n", adk,
			[]string{"root_agent.yaml:2:7 LOOP013 endless", "warm.yaml:4:16 LOOP004 7"},
		},
		{"a field of another file", "a/root_agent.yaml", loop("warm.yaml"), adk, []string{"a/warm.yaml:4:16 LOOP004 7"}},
		{"a folded text", "root_agent.yaml", loop("folded.yaml"), adk, []string{"folded.yaml:6:11 LOOP031 more"}},
		{"a text after another", "root_agent.yaml", loop("static.yaml"), adk, []string{"static.yaml:4:10 LOOP031 a"}},
		{"a text with escapes", "root_agent.yaml", loop("escape.yaml"), adk, []string{"escape.yaml:2:29 LOOP031 a", "escape.yaml:2:36 LOOP031 z"}},
		{
			"Evo AI, with a role before the instruction", "agents.json",
			"{\"type\": \"llm\", \"name\": \"a\", \"role\": \"See {{#a}} this\",\n \"instruction\": \"and {{#z}} that\",\n\t\"temperature\": 9}",
			dialect.Options{Dialect: dialect.Evo},
			[]string{"agents.json:1:46 LOOP031 a", "agents.json:2:25 LOOP031 z", "agents.json:3:17 LOOP004 9"},
		},
		{
			"JSON with characters of two escapes", "agents.json",
			`{"type": "llm", "name": "a", "description": "\ud83d\ude00", "instruction": "\ud83d\ude80 {{#z}} that", "temperature": 9}`,
			dialect.Options{Dialect: dialect.Evo},
			[]string{"agents.json:1:93 LOOP031 z", "agents.json:1:119 LOOP004 9"},
		},
		{
			"a schema", "agents.json",
			`{"type": "llm", "name": "a", "instruction": "x", "output_schema": {"mark": {"type": "numbr"}}}`,
			dialect.Options{Dialect: dialect.Evo},
			[]string{"agents.json:1:67 LOOP004 {"},
		},
		{
			"the SDK", "main.ts",
			"flow.create('f', (f) => {\n  f.node('a', 'Robomotion.Agents.LLMAgent', 'A', {\n    inName: Custom('w'), func: 'Do ' +\n      'it {{#z}} now' });\n})\n",
			dialect.Options{Dialect: dialect.Robomotion},
			[]string{"main.ts:4:14 LOOP031 z"},
		},
		{
			"a node in a node", "flow.yaml",
			"type: Loop Agent\nName: l\nTimeout: 10\nsub-agents:\n  - type: LLM Agent\n    Name: w\n    Instructions: |\n      Do it {{#z}}\n    temperature: 5\n",
			dialect.Options{Dialect: dialect.Robomotion},
			[]string{"flow.yaml:2:7 LOOP018 l", "flow.yaml:8:16 LOOP031 z", "flow.yaml:9:18 LOOP004 5"},
		},
	} {
		if diff := cmp.Diff(tt.want, problemsOf(t, tt.name, tt.text, tt.opts)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.what, diff)
		}
	}
}

// An agent's place in the file is known as well, and a hint does not ask for a
// field that the file cannot have.
func TestOriginOfAnAgent(t *testing.T) {
	res := load(t, dialect.ADK, "testdata/adk/nested", "testdata/adk/nested/root_agent.yaml")
	want := map[string]string{
		"outer": "root_agent.yaml:2:7", "inner": "inner.yaml:2:7", "writer": "writer.yaml:1:7",
		"views": "views.yaml:2:7", "view_a": "view_a.yaml:1:7", "view_b": "view_b.yaml:1:7", "judge": "judge.yaml:1:7",
	}
	got := make(map[string]string)
	for a := range res.Definition.Root.All {
		got[a.Name] = strings.TrimPrefix(res.Origin(a.Position()).String(), "testdata/adk/nested/")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	elsewhere := definition.Position{File: "other.yaml", Line: 3, Column: 1}
	if got := res.Origin(elsewhere); got != elsewhere {
		t.Errorf("Origin(%v) = %v", elsewhere, got)
	}
	for _, p := range load(t, dialect.ADK, "testdata/adk/endless", "testdata/adk/endless/root_agent.yaml").Report.Problems {
		if !strings.Contains(p.Hint, "exit_loop") || strings.Contains(p.Hint, "can_exit_loop") {
			t.Errorf("hint %q", p.Hint)
		}
	}
}
