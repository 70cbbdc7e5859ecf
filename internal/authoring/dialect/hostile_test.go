// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// refuses imports a text, whose report has to say what is wrong.
func refuses(t *testing.T, what, name, text string, opts dialect.Options, want string) {
	t.Helper()
	res, err := dialect.Import(name, []byte(text), opts)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	checkReport(t, res)
	if res.YAML != nil || !slices.ContainsFunc(res.Report.Items, func(it dialect.Item) bool {
		return it.Kind == dialect.Failed && strings.Contains(it.Message, want)
	}) {
		t.Errorf("%s: want %q, got %v", what, want, res.Report.Summary())
	}
}

// Whoever wrote a file, reading it comes to an end soon and says what is wrong.
func TestHostileFiles(t *testing.T) {
	evo, adk := dialect.Options{Dialect: dialect.Evo}, dialect.Options{Dialect: dialect.ADK}
	robomotion := dialect.Options{Dialect: dialect.Robomotion}
	repeat := strings.Repeat
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x]\n")
	for n := range 40 {
		fmt.Fprintf(&bomb, "a%d: &a%d [*a%d, *a%d]\n", n+1, n+1, n, n)
	}
	var merges strings.Builder
	merges.WriteString("a0: &a0 {x: 1}\n")
	for n := range 40 {
		fmt.Fprintf(&merges, "a%d: &a%d {<<: [*a%d, *a%d], b%d: 1}\n", n+1, n+1, n, n, n)
	}
	var agents, refs, nodes, edges strings.Builder
	for n := range 3000 {
		fmt.Fprintf(&agents, `{"name": "a%d", "type": "llm"},`, n)
		fmt.Fprintf(&refs, `"some-agent-that-is-nowhere-%d",`, n)
	}
	for n := range 600 {
		fmt.Fprintf(&nodes, `{"id": "n%d", "type": "message-node", "data": {"message": "x"}},`, n)
		fmt.Fprintf(&edges, `{"source": "n%d", "target": "n%d"},{"source": "n%d", "target": "n%d"},`, n, (n+1)%600, n, (n+7)%600)
	}
	workflow := func(nodes, edges string) string {
		return `{"name": "w", "type": "workflow", "config": {"workflow": {"nodes": [` + strings.TrimSuffix(nodes, ",") + `], "edges": [` +
			strings.TrimSuffix(edges, ",") + `]}}}`
	}
	for _, tt := range []struct {
		what, name, text string
		opts             dialect.Options
		want             string
	}{
		{"a large text", "a.json", `{"name": "` + repeat("x", 1<<20) + `"}`, evo, "larger than 1 MiB"},
		{"aliases of aliases", "a.yaml", bomb.String(), adk, "more than 20000 values"},
		{"merges of merges", "a.yaml", merges.String(), adk, "more than 20000 values"},
		{"lists in lists", "a.json", repeat("[", 5000) + repeat("]", 5000), evo, "nested deeper than 64"},
		{"maps in maps", "a.yaml", repeat("{a: ", 5000) + repeat("}", 5000), robomotion, ""},
		{"SDK values in values", "main.ts", "flow.create(f.node('a', 'b', " + repeat("[", 5000), robomotion, "nested too deep"},
		{"an alias of itself", "a.yaml", "name: &x [*x]", adk, ""},
		{"many agents", "a.json", "[" + strings.TrimSuffix(agents.String(), ",") + "]", evo, "more than 500 agents"},
		{"many that are not there", "a.json", `{"name": "l", "type": "loop", "sub_agents": [` + strings.TrimSuffix(refs.String(), ",") + `]}`, evo, "not found"},
		{"a large graph", "a.json", workflow(nodes.String(), edges.String()), evo, "more than 300 nodes"},
		{"a dense graph", "a.json", workflow(dense(45)), evo, "a second path back"},
		{"a circle of agents", "a.json", `[{"name": "a", "type": "loop", "sub_agents": ["b"]}, {"name": "b", "type": "loop", "sub_agents": ["a"]}]`, evo, "contains itself"},
		{"a circle of nodes", "a.yaml", "nodes: [{id: a, type: Loop Agent, sub-agents: [b]}, {id: b, type: Loop Agent, sub-agents: [a]}]", robomotion, "circle"},
		{"many placeholders", "a.json", `{"name": "a", "type": "llm", "instruction": "` + manyKeys(longtest.N(500, 3000)) + `"}`, evo, "at most 200"},
		{"not text", "a.yaml", "\x00\xff\xfe\x01", adk, "control character U+0000"},
		{"nothing", "a.yaml", "# nothing\n", adk, "empty"},
	} {
		t.Run(tt.what, func(t *testing.T) { refuses(t, tt.what, tt.name, tt.text, tt.opts, tt.want) })
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, "{{key%d}} ", k)
	}
	return b.String()
}

// dense is a graph in which each node leads to all.
func dense(n int) (nodes, edges string) {
	for a := range n {
		nodes += fmt.Sprintf(`{"id": "n%d", "type": "condition-node", "data": {"conditions": []}},`, a)
		for b := range n {
			edges += fmt.Sprintf(`{"source": "n%d", "target": "n%d", "sourceHandle": "h%d"},`, a, b, b)
		}
	}
	return nodes, edges
}

// A file of 100 MB is not read; the disk has to hold nothing for it.
func TestLargeFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"root_agent.yaml", "agents.json", "part.yaml"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(100 << 20); err != nil {
			t.Skip(err)
		}
		f.Close()
	}
	for _, name := range []string{"root_agent.yaml", "agents.json"} {
		if _, err := dialect.Load(filepath.Join(dir, name), dialect.Options{}); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
			t.Errorf("%s: %v", name, err)
		}
	}
	small := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(small, []byte("agent_class: LoopAgent\nname: a\nmax_iterations: 1\nsub_agents: [{config_path: part.yaml}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := dialect.Load(small, dialect.Options{})
	if err != nil || res.Err() == nil || !strings.Contains(res.Err().Error(), `small.yaml:4:28: error: a: config_path "part.yaml" cannot be read: the file is larger than 1 MiB`) {
		t.Errorf("%v, %v", err, res.Err())
	}
}

// Many files that are each small enough come to an end as well.
func TestManyLargeFilesComeToAnEnd(t *testing.T) {
	part := &fstest.MapFile{Data: []byte("name: part\ninstruction: x\n# " + strings.Repeat("x", 900_000) + "\n")}
	files, list := fstest.MapFS{}, ""
	for n := range 20 {
		name := fmt.Sprintf("p%d.yaml", n)
		files[name], list = part, list+"{config_path: "+name+"},"
	}
	refuses(t, "files", "root_agent.yaml", "agent_class: SequentialAgent\nname: a\nsub_agents: ["+list+"]", dialect.Options{FS: files}, "larger than 8 MiB")
}

// Keys and passwords are nowhere but in the file: not in the definition, not in
// the report, and not in the line of the file that a problem shows.
func TestSecretsAreShownNowhere(t *testing.T) {
	const key = "sk-proj-0123456789abcdef"
	for _, tt := range []struct {
		what, name, text string
		d                dialect.Dialect
	}{
		{"a line with a problem and a key", "agents.json", `{"type": "llm", "name": "a", "api_key": "KEY", "config": {"api_key": "KEY", "client_secret": "hunter22"}, "instruction": "{{#x}}", "temperature": 9}`, dialect.Evo},
		{"a key in the wrong place", "agents.json", `{"type": "loop", "name": "a", "max_iterations": "KEY", "condition": "KEY", "timeout": "KEY", "sub_agents": [{"type": "llm", "name": "b", "instruction": "x", "temperature": "KEY"}]}`, dialect.Evo},
		{"addresses", "agents.json", `{"type": "loop", "name": "a", "config": {"max_iterations": 1}, "sub_agents": [
			{"type": "a2a", "name": "r", "endpoint": "https://me:hunter22@h.example/x?api_key=KEY", "payload": {"token": "hunter22", "q": ["{{user_input}}", "KEY"]}, "headers": {"X-Api-Key": "hunter22"}},
			{"type": "llm", "name": "b", "instruction": "x", "config": {"custom_mcp_servers": [{"url": "https://h.example/mcp?key=hunter22", "headers": {"Cookie": "hunter22"}}]}}]}`, dialect.Evo},
		{"ADK", "root_agent.yaml", "name: a\ninstruction: '{{#x}}'\nmodel_code: {name: LiteLlm, args: [{name: model, value: openai/x}, {name: api_key, value: KEY}]}\ntools:\n" +
			"  - {name: McpToolset, args: {stdio_connection_params: {server_params: {command: npx, args: [x, --api-key, hunter22, --token=hunter22, KEY], env: {A_TOKEN: hunter22}}}}}\n", dialect.ADK},
		{"Robomotion", "flow.yaml", "type: LLM Agent\nName: a\nInstructions: '{{#x}}'\nApi Key: KEY\ncredentials: {vault: hunter22}\n", dialect.Robomotion},
		{"the SDK", "main.ts", "flow.create(f.node('a', 'Robomotion.Agents.LLMAgent', 'A', { inName: Custom('w'), func: '{{#x}}', optApiKey: 'KEY', password: 'hunter22' }))", dialect.Robomotion},
	} {
		res, err := dialect.Import(tt.name, []byte(strings.ReplaceAll(tt.text, "KEY", key)), dialect.Options{Dialect: tt.d})
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		data, err := json.Marshal(res.Report)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := res.Report.Format(&b); err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"definition": string(res.YAML), "report": string(data), "text": b.String(), "error": fmt.Sprint(res.Err())} {
			if strings.Contains(text, "sk-proj") || strings.Contains(text, "hunter22") {
				t.Errorf("%s: the %s has a secret in it:\n%s", tt.what, what, text)
			}
		}
	}
}
