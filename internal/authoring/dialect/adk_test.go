// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// adkKeys are the keys of AgentConfig.json with a value for each: those of every
// class, of LlmAgent, and of LoopAgent.
var (
	adkBase = map[string]string{
		"agent_class": "", "name": "", "description": "What it does.", "sub_agents": "[{config_path: part.yaml}]",
		"before_agent_callbacks": "[{name: lib.check}]", "after_agent_callbacks": "[{name: lib.check, args: [{name: a, value: 1}]}]",
	}
	adkLLM = map[string]string{
		"model": "gemini-2.5-flash", "model_code": "{name: LiteLlm, args: [{name: model, value: openai/gpt-4.1-mini}]}", "instruction": "Write.",
		"static_instruction": "Be kind.", "disallow_transfer_to_parent": "true", "disallow_transfer_to_peers": "true",
		"input_schema": "{name: lib.In}", "output_schema": "{name: lib.Out}", "output_key": "draft", "accumulate_output_key": "true",
		"include_contents": "none", "tools": "[{name: exit_loop}]", "before_model_callbacks": "[{name: lib.a}]", "after_model_callbacks": "[{name: lib.a}]",
		"before_tool_callbacks": "[{name: lib.a}]", "after_tool_callbacks": "[{name: lib.a}]", "generate_content_config": "{temperature: 0.2, topP: 0.5}",
	}
	adkLoop = map[string]string{"max_iterations": "3"}
)

// X1, C1: every key of each class is read, or is in the report with the reason;
// one of another class, or a mistyped one, is refused with what may be meant.
func TestEveryKeyOfAgentConfig(t *testing.T) {
	files := fstest.MapFS{"part.yaml": {Data: []byte("name: part\ninstruction: x\ntools: [{name: exit_loop}]\n")}}
	all := map[string]string{}
	for _, m := range []map[string]string{adkBase, adkLLM, adkLoop} {
		maps.Copy(all, m)
	}
	for class, own := range map[string]map[string]string{"LlmAgent": adkLLM, "LoopAgent": adkLoop, "SequentialAgent": {}, "ParallelAgent": {}} {
		for key, value := range all {
			_, belongs := own[key]
			_, base := adkBase[key]
			given := map[string]string{"agent_class": class, "name": "a"}
			if class == "LlmAgent" {
				given["instruction"] = "Write."
			} else {
				given["sub_agents"] = "[{config_path: part.yaml}]"
			}
			if value != "" {
				given[key] = value
			}
			res := importMap(t, given, files)
			about := slices.IndexFunc(res.Report.Items, func(it dialect.Item) bool {
				return it.Agent == "a" && strings.HasPrefix(it.Field, key)
			})
			switch {
			case (belongs || base) && (res.YAML == nil || about < 0):
				t.Errorf("%s of %s: nothing is said of it, or it is refused: %v", key, class, res.Err())
			case !belongs && !base && (res.YAML != nil || about < 0 || res.Report.Items[about].Kind != dialect.Failed || res.Report.Items[about].Advice == ""):
				t.Errorf("%s of %s is taken, or refused without advice: %v", key, class, res.Err())
			}
			if !belongs && !base || key == "name" || key == "agent_class" {
				continue
			}
			delete(given, key)
			typo := key[:len(key)-1]
			given[typo] = cmpValue(value)
			res = importMap(t, given, files)
			if res.YAML != nil || !slices.ContainsFunc(res.Report.Items, func(it dialect.Item) bool {
				return it.Kind == dialect.Failed && it.Message == fmt.Sprintf("unknown field %q", typo) && it.Advice == fmt.Sprintf("did you mean %q?", key)
			}) {
				t.Errorf("%s of %s: %v", typo, class, res.Err())
			}
		}
	}
}

func cmpValue(s string) string {
	if s == "" {
		return "x"
	}
	return s
}

func importMap(t *testing.T, given map[string]string, files fstest.MapFS) *dialect.Result {
	t.Helper()
	var b strings.Builder
	for key, value := range given {
		fmt.Fprintf(&b, "%s: %s\n", key, value)
	}
	res, err := dialect.Import("root_agent.yaml", []byte(b.String()), dialect.Options{Dialect: dialect.ADK, FS: files})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A path of config_path stays in the folder of the agent, and does not lead in a
// circle; one file can be two agents.
func TestConfigPaths(t *testing.T) {
	leaf := "name: leaf\ninstruction: x\n"
	sequence := func(name string, paths ...string) string {
		return "agent_class: SequentialAgent\nname: " + name + "\nsub_agents: [{config_path: " + strings.Join(paths, "}, {config_path: ") + "}]\n"
	}
	files := fstest.MapFS{
		"leaf.yaml": {Data: []byte(leaf)}, "sub/leaf.yaml": {Data: []byte(leaf)}, "sub/up.yaml": {Data: []byte(sequence("up", "../leaf.yaml"))},
		"self.yaml": {Data: []byte(sequence("self", "self.yaml"))}, "a.yaml": {Data: []byte(sequence("a", "b.yaml"))}, "b.yaml": {Data: []byte(sequence("b", "./sub/../a.yaml"))},
		"back.yaml": {Data: []byte(sequence("back", "root_agent.yaml"))}, "text.yaml": {Data: []byte("just text\n")}, "dir/x.yaml": {Data: []byte(leaf)},
	}
	for _, tt := range []struct{ paths, want string }{
		{"leaf.yaml", ""},
		{"./sub/../sub/leaf.yaml", ""},
		{"sub/up.yaml", ""},
		{"leaf.yaml, leaf.yaml", ""},
		{"../leaf.yaml", `config_path "../leaf.yaml" leads out of the agent's folder`},
		{"sub/../../leaf.yaml", `leads out of the agent's folder`},
		{"/etc/passwd", `config_path must be a path with slashes, relative to this file, got "/etc/passwd"`},
		{`'sub\leaf.yaml'`, "config_path must be a path with slashes, relative to this file"},
		{"self.yaml", `config_path "self.yaml" leads in a circle`},
		{"a.yaml", `config_path "./sub/../a.yaml" leads in a circle`},
		{"back.yaml", `config_path "root_agent.yaml" leads in a circle`},
		{"leef.yaml", "file does not exist"},
		{"dir", "not a regular file"},
		{"text.yaml", "an agent is a map of fields, got"},
	} {
		text := sequence("root", strings.Split(tt.paths, ", ")...)
		res, err := dialect.Import("root_agent.yaml", []byte(text), dialect.Options{Dialect: dialect.ADK, FS: files})
		if err != nil {
			t.Fatal(err)
		}
		switch err := res.Err(); {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.paths, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.paths, err, tt.want)
		case tt.paths == "leef.yaml" && !strings.Contains(err.Error(), `did you mean "leaf.yaml"?`):
			t.Errorf("%v", err)
		case tt.paths == "leaf.yaml, leaf.yaml":
			if subs := res.Definition.Root.SubAgents; len(subs) != 2 || subs[0].Name != "leaf" || subs[1].Name != "leaf_2" {
				t.Errorf("%s", res.YAML)
			}
		}
	}
}

// Code is named in the report, with what to write in its place, and never read.
func TestCodeReferences(t *testing.T) {
	const text = `agent_class: SequentialAgent
name: root
sub_agents:
  - code: my_lib.agents.writer
  - config_path: own.yaml
  - config_path: leaf.yaml
  - {code: a.b, config_path: leaf.yaml}
`
	files := fstest.MapFS{"leaf.yaml": {Data: []byte("name: leaf\ninstruction: x\n")},
		"own.yaml": {Data: []byte("agent_class: my_lib.MyAgent\nname: own\nspeed: 3\n")}}
	res, err := dialect.Import("root_agent.yaml", []byte(strings.Replace(text, "  - {code: a.b, config_path: leaf.yaml}\n", "", 1)), dialect.Options{FS: files})
	if err != nil || res.Err() != nil || len(res.Definition.Root.SubAgents) != 1 {
		t.Fatalf("%v, %v", err, res.Err())
	}
	for _, want := range []string{"my_lib.agents.writer is an agent in your code", "my_lib.MyAgent is a class in your code"} {
		if !slices.ContainsFunc(res.Report.Items, func(it dialect.Item) bool {
			return it.Kind == dialect.Dropped && strings.Contains(it.Message, want) && it.Advice != ""
		}) {
			t.Errorf("%q is not in %+v", want, res.Report.Items)
		}
	}
	refuses(t, "both", "root_agent.yaml", text, dialect.Options{FS: files}, "a sub-agent is {config_path: file.yaml} or {code: package.object}")
}
