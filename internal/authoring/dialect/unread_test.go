// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// surrogates are escapes that only JSON has.
var surrogates = regexp.MustCompile(`(\\u[dD][89a-fA-F][0-9a-fA-F]{2})+`)

// mapsOf lists the maps of a YAML or JSON text.
func mapsOf(n *yaml.Node, list []*yaml.Node) []*yaml.Node {
	if n.Kind == yaml.MappingNode {
		list = append(list, n)
	}
	for _, c := range n.Content {
		list = mapsOf(c, list)
	}
	return list
}

// A field that nobody knows is nowhere passed over in silence: it is put into
// every map of every file of testdata, and is told of or refused each time.
// Maps of names that anybody chooses are copied, and then it is in the definition.
func TestNoFieldIsPassedOver(t *testing.T) {
	const odd = "zzqxunheard"
	for _, d := range dialect.All() {
		tried := 0
		each(t, d, func(t *testing.T, folder, main string) {
			if filepath.Ext(main) == ".ts" {
				return
			}
			files := fstest.MapFS{}
			for _, f := range slices.Concat(glob(t, folder, "*.yaml"), glob(t, folder, "*.json")) {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				files[filepath.Base(f)] = &fstest.MapFile{Data: data}
			}
			opts := dialect.Options{Dialect: d, FS: files, Path: filepath.Base(main)}
			if name, err := os.ReadFile(filepath.Join(folder, "args")); err == nil {
				opts.Agent = strings.TrimSpace(string(name))
			}
			plain, err := dialect.Import(filepath.Base(main), files[filepath.Base(main)].Data, opts)
			if err != nil {
				t.Fatal(err)
			}
			if plain.YAML == nil {
				return // it is refused anyway
			}
			for name, file := range files {
				if name == "script.yaml" || name == "run.yaml" {
					continue
				}
				whole := file.Data
				var doc yaml.Node
				if err := yaml.Unmarshal(surrogates.ReplaceAll(whole, []byte("x")), &doc); err != nil {
					t.Fatal(err)
				}
				for i, m := range mapsOf(&doc, nil) {
					if i%longtest.N(3, 1) > 0 {
						continue
					}
					m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: odd}, &yaml.Node{Kind: yaml.ScalarNode, Value: "there"})
					data, err := yaml.Marshal(&doc)
					m.Content = m.Content[:len(m.Content)-2]
					if err != nil {
						t.Fatal(err)
					}
					files[name] = &fstest.MapFile{Data: data}
					res, err := dialect.Import(filepath.Base(main), files[filepath.Base(main)].Data, opts)
					if err != nil {
						t.Fatal(err)
					}
					tried++
					var text strings.Builder
					if err := res.Report.Format(&text); err != nil {
						t.Fatal(err)
					}
					if res.YAML != nil && !strings.Contains(text.String(), odd) && !strings.Contains(string(res.YAML), odd) && !covered(res.Report, data, odd) {
						t.Errorf("%s: a field in the map at %d:%d is passed over:\n%s", name, m.Line, m.Column, data)
					}
				}
				files[name] = &fstest.MapFile{Data: whole}
			}
		})
		if tried < 20 {
			t.Errorf("%s: only %d maps", d, tried)
		}
	}
}

// covered reports whether the report tells that something around the field is left
// out as a whole.
func covered(r *dialect.Report, data []byte, odd string) bool {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil {
		return false
	}
	var around func(n *yaml.Node) []*yaml.Node
	around = func(n *yaml.Node) []*yaml.Node {
		if n.Value == odd {
			return []*yaml.Node{n}
		}
		for k, c := range n.Content {
			if inner := around(c); inner != nil {
				if n.Kind == yaml.MappingNode && k%2 == 1 {
					inner = append(inner, n.Content[k-1])
				}
				return append(inner, c)
			}
		}
		return nil
	}
	return slices.ContainsFunc(around(&doc), func(n *yaml.Node) bool {
		return slices.ContainsFunc(r.Items, func(it dialect.Item) bool {
			return it.Kind == dialect.Dropped && it.Line == n.Line && it.Column == n.Column
		})
	})
}

func glob(t *testing.T, folder, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// reported imports a text and returns its report for people.
func reported(t *testing.T, name, text string, d dialect.Dialect) (string, *dialect.Result) {
	t.Helper()
	res, err := dialect.Import(name, []byte(text), dialect.Options{Dialect: d})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := res.Report.Format(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), res
}

// What the products know and a definition has not, and what stands beside a field
// that makes it void, is told of by its name.
func TestFieldsThatHaveNoPlace(t *testing.T) {
	adk := func(params string) string {
		return "name: a\ninstruction: x\ntools:\n  - name: McpToolset\n    args:\n      " + params + "\n"
	}
	evo := func(fields string) string {
		return `{"type": "loop", "name": "l", "max_iterations": 2, "sub_agents": [{"type": "llm", "name": "b", "instruction": "x"}], ` + fields + `}`
	}
	llm := func(config string) string {
		return `{"type": "llm", "name": "b", "instruction": "x", "config": {` + config + `}}`
	}
	task := func(fields string) string { return `{"type": "task", "name": "b", ` + fields + `}` }
	for _, tt := range []struct {
		text string
		d    dialect.Dialect
		want []string
	}{
		{adk("stdio_connection_params: {server_params: {command: x, cwd: /y, encoding: latin1, odd: 1}, timeout: 5, odder: 2}"), dialect.ADK, []string{"cwd", "encoding", "odd", "timeout", "odder"}},
		{adk("streamable_http_connection_params: {url: https://h.example, timeout: 5, sse_read_timeout: 6, terminate_on_close: true, odd: 1}"), dialect.ADK, []string{"timeout", "sse_read_timeout", "terminate_on_close", "odd"}},
		{adk("sse_connection_params: {url: https://h.example, sse_read_timeout: 6}"), dialect.ADK, []string{"sse_read_timeout"}},
		{adk("stdio_connection_params: {server_params: {comand: x}}"), dialect.ADK, []string{"needs stdio_connection_params with a command"}},
		{adk("stdio_connection_params: {server_params: {command: x, argz: [y]}}"), dialect.ADK, []string{`"args"`, "argz"}},
		{adk("stdio_connection_params: {server_params: {command: x}}\n      tool_filtr: [a]"), dialect.ADK, []string{`did you mean "tool_filter"?`}},
		{evo(`"role": "judge"`), dialect.Evo, []string{"role"}},
		{evo(`"card_url": "https://h.example/x"`), dialect.Evo, []string{"card_url"}},
		{evo(`"config": {"custom_mcp_servers": [{"url": "https://h.example"}], "output_schema": {"type": "object"}}`), dialect.Evo, []string{"config.custom_mcp_servers", "config.output_schema"}},
		{llm(`"custom_mcp_servers": [{"url": "https://h.example", "timeout": 4, "odd": 1}]`), dialect.Evo, []string{"left out: b: config.custom_mcp_servers.timeout: ", "custom_mcp_servers.odd"}},
		{task(`"config": {"tasks": [{"description": "d", "odd": 1}]}`), dialect.Evo, []string{"config.tasks.odd"}},
		{task(`"task_definition": "d", "config": {"tasks": [{"description": "e"}]}`), dialect.Evo, []string{"config.tasks"}},
		{task(`"task_definition": {"description": "d", "expected_output": "short", "enabled_tools": ["t"], "odd": 1}`), dialect.Evo, []string{"enabled_tools", "task_definition.odd"}},
		{`{"type": "llm", "name": "b", "instruction": "x", "instruction": "y"}`, dialect.Evo, []string{`the field "instruction" is given twice`}},
		{`{"type": "llm", "name": "b", "instruction": "x", "instructions": "y"}`, dialect.Evo, []string{"instructions: "}},
		{`{"type": "a2a", "name": "b", "endpoint": "https://h.example/a", "agent_card_url": "https://h.example/.well-known/agent.json"}`, dialect.Evo, []string{"agent_card_url"}},
		{`{"type": "a2a", "name": "b", "endpoint": "https://h.example/a", "headers": "X: y"}`, dialect.Evo, []string{"headers must be a map"}},
	} {
		name := map[dialect.Dialect]string{dialect.ADK: "root_agent.yaml", dialect.Evo: "agents.json"}[tt.d]
		text, _ := reported(t, name, tt.text, tt.d)
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s\nnothing is said of %s:\n%s", tt.text, want, text)
			}
		}
	}
	_, res := reported(t, "agents.json", task(`"task_definition": {"description": "write it", "expected_output": "short"}`), dialect.Evo)
	if !strings.Contains(string(res.YAML), "Task: write it") || !strings.Contains(string(res.YAML), "Expected output: short") {
		t.Errorf("the task is not in the definition:\n%s", res.YAML)
	}
	if err := fmt.Sprint(res.Err()); err != "<nil>" {
		t.Error(err)
	}
}
