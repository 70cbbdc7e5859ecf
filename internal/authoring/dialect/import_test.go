// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// echo is an agent elsewhere, which says what it was sent.
type echo struct{ sent chan string }

func (e echo) Execute(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		data, err := json.Marshal(x.Message.Parts[0].Data())
		if err != nil {
			yield(nil, err)
			return
		}
		e.sent <- string(data)
		said := string(data)
		if said == "null" { // a text
			said = x.Message.Parts[0].Text()
		}
		yield(a2a.NewMessageForTask(a2a.MessageRoleAgent, x, a2a.NewTextPart("analisado: "+said)), nil)
	}
}

func (echo) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

// A24, A26, D4, C29: a task that a model does, and an agent elsewhere that is
// asked for real.
func TestTaskAndEndpoint(t *testing.T) {
	there := echo{sent: make(chan string, 9)}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.Handle("/analyze", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(there, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))))
	card := a2asrv.NewStaticAgentCardHandler(&a2a.AgentCard{
		Name: "remote", Version: "1",
		SupportedInterfaces: []*a2a.AgentInterface{{URL: server.URL + "/analyze", ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2a.Version}},
	})
	mux.Handle(a2asrv.WellKnownAgentCardPath, card)
	mux.Handle("/.well-known/agent.json", card) // where Evo AI has it
	for _, tt := range []struct{ folder, script, answer, sent string }{
		{"optimize", "script.yaml", "a=1 basta", `{"data":"4.2%"}`},
		{"optimize-export", "run.yaml", "a=1 basta", "null"},
		{"code-export", "run.yaml", "O código: return 2", "null"},
	} {
		folder := filepath.Join("testdata", "evo", tt.folder)
		unpack(t, folder)
		data, err := os.ReadFile(filepath.Join(folder, "agents.json"))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "https://api.externa.com/analyze", server.URL)
		text = strings.ReplaceAll(text, "https://api.externa.com/.well-known", server.URL+"/.well-known")
		res, err := dialect.Import("agents.json", []byte(text), dialect.Options{})
		if err != nil || res.Err() != nil {
			t.Fatalf("%s: %v, %v", tt.folder, err, res.Err())
		}
		answer, stop := run(t, res.Definition, filepath.Join(folder, tt.script))
		if answer != tt.answer || stop != "exit_loop" {
			t.Errorf("%s: answer %q, stop %q", tt.folder, answer, stop)
		}
		if got := <-there.sent; got != tt.sent {
			t.Errorf("%s: sent %s, want %s", tt.folder, got, tt.sent)
		}
	}
}

// Neither keys nor what looks like one gets into a definition or a report.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	for _, tt := range []struct {
		d    dialect.Dialect
		file string
	}{
		{dialect.ADK, "testdata/adk/mcp/root_agent.yaml"},
		{dialect.Evo, "testdata/evo/secrets/agents.json"},
		{dialect.Evo, "testdata/evo/export/agents.json"},
	} {
		res := load(t, tt.d, filepath.Dir(tt.file), tt.file)
		report, err := json.Marshal(res.Report)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"Bearer", "very-secret", "sk-"} {
			for what, text := range map[string]string{"definition": string(res.YAML), "report": string(report)} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: the %s has %q in it", tt.file, what, secret)
				}
			}
		}
	}
}

// A link in the agent's folder must not lead out of it.
func TestFilesStayInTheFolder(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside.yaml")
	agent := filepath.Join(dir, "agent")
	for name, text := range map[string]string{
		outside:                                 "name: outside\ninstruction: x",
		filepath.Join(agent, "root_agent.yaml"): "agent_class: SequentialAgent\nname: a\nsub_agents: [{config_path: link.yaml}, {config_path: pipe}]",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(agent, "link.yaml")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(agent, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	res, err := dialect.Load(filepath.Join(agent, "root_agent.yaml"), dialect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Report.Count(dialect.Failed); got != 2 || res.YAML != nil {
		t.Errorf("%d errors, want 2; YAML %s", got, res.YAML)
	}
}

// Files that name each other over and over come to an end.
func TestManyFilesComeToAnEnd(t *testing.T) {
	files := fstest.MapFS{"leaf.yaml": {Data: []byte("name: leaf\ninstruction: x")}}
	below := "leaf.yaml"
	for n := range 12 {
		name := string(rune('a'+n)) + ".yaml"
		files[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(
			"agent_class: SequentialAgent\nname: "+name[:1]+"\nsub_agents: [{config_path: X}, {config_path: X}, {config_path: X}]", "X", below))}
		below = name
	}
	res, err := dialect.Import(below, files[below].Data, dialect.Options{FS: files})
	if err != nil {
		t.Fatal(err)
	}
	tooMany := func(it dialect.Item) bool { return strings.Contains(it.Message, "more than 500 agents") }
	if res.Err() == nil || !slices.ContainsFunc(res.Report.Items, tooMany) {
		t.Errorf("%v", res.Report.Summary())
	}
}

func TestDetect(t *testing.T) {
	for _, d := range dialect.All() {
		each(t, d, func(t *testing.T, _, file string) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := dialect.Detect(file, data); got != d && !strings.Contains(file, "broken") && !strings.Contains(file, "none") {
				t.Errorf("Detect(%s) = %q", file, got)
			}
		})
	}
	files, _ := filepath.Glob("../../../examples/*/*.yaml")
	good, _ := filepath.Glob("../../../definition/testdata/good/*.yaml")
	if len(files) < 5 || len(good) < 3 {
		t.Fatalf("%d and %d files", len(files), len(good))
	}
	for _, file := range append(files, good...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := dialect.Detect(file, data); got != "" {
			t.Errorf("Detect(%s) = %q: it is a definition, or none at all", file, got)
		}
	}
}

// A list of sub-agents that are no agents is a mistake of a definition. The words of
// Evo AI's form are its own.
func TestDetectByShape(t *testing.T) {
	for text, want := range map[string]dialect.Dialect{
		"name: a\ntype: loop\nsub_agents: [~, 3]\n":                                                    "",
		`{"type": "llm", "instructions": "hi", "config": {"output_key": "a"}}`:                         dialect.Evo,
		`{"data": {"agents": [{"type": "task", "name": "a", "task_definition": "x"}]}}`:                dialect.Evo,
		`{"data": [{"type": "loop", "name": "a", "config": {"sub_agents": ["1"]}}]}`:                   dialect.Evo,
		`{"Name": "a", "Type": "LLM Agent", "Instructions": "hi", "Output Key": "b"}`:                  dialect.Evo,
		`{"type": "loop", "name": "a", "agents": [{"type": "llm", "name": "b", "instructions": "x"}]}`: dialect.Evo,
		// A27: the exits and the time limits that Evo AI documents, and its form in both languages
		`{"type": "loop", "name": "a", "total_timeout": 900, "sub_agents": [{"type": "llm", "name": "b", "instructions": "x"}]}`:      dialect.Evo,
		`{"type": "loop", "name": "a", "sub_agents": [{"type": "llm", "name": "b", "can_use_exit_loop": true, "instructions": "x"}]}`: dialect.Evo,
		`{"type": "Loop Agent", "name": "a", "sub_agents": [{"type": "LLM Agent", "name": "b", "instructions": "x"}]}`:                dialect.Evo,
		`{"Type": "Loop Agent", "Name": "a", "Max Iterations": 3, "Sub-Agents": [{"Name": "b", "Instructions": "x"}]}`:                dialect.Evo,
		"Type: Loop Agent\nName: a\nSub-Agents:\n  - {Name: b, Pode usar exit_loop: Habilitado, Instructions: x}\n":                   dialect.Evo,
		"type: loop\nname: a\nsub_agents:\n  - {type: llm, name: b, ✅ Can use exit_loop: true, instructions: x}\n":                    dialect.Evo,
		"Type: Loop Agent\nName: a\nMax Iterations: 3\nsub-agents: [{Type: LLM Agent, Name: b, Instructions: x}]\n":                   dialect.Robomotion,
		// a definition with a mistake stays one: what only it has is not left out
		"name: a\ntotal_timeout: 30m\nsub_agents: [{name: b, instructions: x}]\n":                                                       "",
		"name: a\ntype: loop\ntotal_timeout: 30m\nstop_when: iteration > 2\nsub_agents: [{type: llm, name: b, instructions: x}]\n":      "",
		"name: a\ntype: loop\nsub_agents: [{type: llm, name: b, can_use_exit_loop: true, instructions: x}, {name: c, command: [ls]}]\n": "",
		"name: a\ntype: loop\nworkflow: loop\nsteps: [{name: b, type: command, command: [ls]}]\n":                                       "",
		"name: a\ntype: loop\nagents: [{name: b, type: command, command: [ls]}]\n":                                                      "",
		`{"name": "a", "type": "LoopAgent", "maxIterations": 3, "subAgents": [{"name": "b", "instructions": "x"}]}`:                     "",
		"name: a\ninstruction: hi\nsub_agents: [{name: b, instructions: x}]\n":                                                          "",
		"name: a\ntype: llm\nprompt: hi\n": "",
	} {
		if got := dialect.Detect("file", []byte(text)); got != want {
			t.Errorf("Detect(%s) = %q, want %q", text, got, want)
		}
	}
}

// The report is JSON that other programs read: the names of its fields stay.
func TestReportAsJSON(t *testing.T) {
	res := load(t, dialect.ADK, "testdata/adk/endless", "testdata/adk/endless/root_agent.yaml")
	data, err := json.MarshalIndent(res.Report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.json", string(data)+"\n")
}

// The error for people counts what is wrong; the report has it.
func TestErrCounts(t *testing.T) {
	res := load(t, dialect.ADK, "testdata/adk/graph", "testdata/adk/graph/root_agent.yaml")
	if err := res.Err(); err == nil || !strings.Contains(err.Error(), "1 error") {
		t.Errorf("Err() = %v", err)
	}
	if _, err := dialect.Parse("evo-ai"); err == nil {
		t.Error("there is no dialect evo-ai")
	}
	if _, err := dialect.Import("x.yaml", []byte("name: x"), dialect.Options{}); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("Import = %v", err)
	}
}
