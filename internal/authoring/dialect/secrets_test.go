// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

var leaked = regexp.MustCompile(`SECRET\d+`)

// leaks are the secrets of a text; those that stand in place of one are none.
func leaks(text string) []string { return leaked.FindAllString(text, -1) }

// Passwords and keys in arguments, addresses, variables and payloads are not copied,
// and each is told of. The lines that problems show have none either.
func TestSecretsInArgumentsAndAddresses(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		d          dialect.Dialect
		changed    int // at least
	}{
		{"root_agent.yaml", `name: a
instruction: '{{#x}}'
tools:
  - name: McpToolset
    args: {stdio_connection_params: {server_params: {command: npx, args: [--token=SECRET2, --api-key, SECRET3, "https://u:SECRET4@h/x?key=SECRET5", "postgresql://u:SECRET7@h/db", "--db=postgres://SECRET8@h/db"], env: {DATABASE_URL: "postgres://u:SECRET9@h/db", GITHUB_PAT: SECRET10, DB_PASS: SECRET11}}}}
  - name: McpToolset
    args: {sse_connection_params: {url: "https://u:SECRET12@h/sse?access_token=SECRET13&q={{x}}", headers: {X-Where: "https://SECRET14@h"}}}
`, dialect.ADK, 9},
		{"agents.json", `[{"type": "loop", "name": "l", "max_iterations": 1, "sub_agents": ["r", "b", "{{SECRET}}"]},
{"type": "llm", "name": "b", "instruction": "x", "config": {"custom_mcp_servers": [{"url": "https://u:SECRET1@h.example/mcp?token=SECRET2"}]}},
{"type": "a2a", "name": "{{SECRET}}", "endpoint": "https://u:SECRET3@h.example/{{x}}", "payload": {"token": "SECRET4", "to": "https://u:SECRET5@h/{{x}}"}},
{"type": "a2a", "name": "r", "endpoint": "https://u:SECRET6@h.example:99999999/", "payload": {"pin": ["a", "https://h.example/?sig=SECRET7"]}}]`, dialect.Evo, 6},
		// A problem with the address is shown with its line.
		{"agents.json", `{"type": "a2a", "name": "r", "temperatur": 3, "endpoint": "https://u:SECRET6@{{#x}}/?api_key=SECRET7"}`, dialect.Evo, 1},
	} {
		text, res := reported(t, tt.name, tt.text, tt.d)
		data, err := json.Marshal(res.Report)
		if err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]string{"definition": string(res.YAML), "report": text, "JSON": string(data), "excerpts": res.Report.Problems.Error()} {
			if found := leaks(got); found != nil {
				t.Errorf("%s: %q in the %s:\n%s", tt.name, found, what, got)
			}
		}
		told := 0
		for _, it := range res.Report.Items {
			if strings.Contains(it.Message, "secret") {
				told++
			}
		}
		if told < tt.changed {
			t.Errorf("%s: %d secrets are told of, want %d:\n%s", tt.name, told, tt.changed, text)
		}
	}
}

// The line that a problem shows has stars where there was a secret.
func TestExcerptsAreMasked(t *testing.T) {
	text := `{"type": "llm", "name": "a", "instruction": "{{#x}}", "description": "see https://u:SECRET1@h/?sig=SECRET2", "config": {"custom_mcp_servers": [{"url": "https://u:SECRET3@h/mcp"}]}}`
	report, res := reported(t, "agents.json", text, dialect.Evo)
	shown := 0
	for _, p := range res.Report.Problems {
		shown += strings.Count(p.Excerpt, "***@h")
		if found := leaks(p.Excerpt); found != nil {
			t.Errorf("%q in %s", found, p.Excerpt)
		}
	}
	if shown == 0 || leaks(report) != nil {
		t.Errorf("%d addresses are shown in\n%s", shown, report)
	}
}

// An export copies no secrets either, and says of each that it is left out.
func TestExportCopiesNoSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(`name: a
type: llm
instructions: x
tools:
  - mcp: {url: "https://u:SECRET1@h.example/mcp?key=SECRET2", headers: {Authorization: Bearer SECRET3, X-Team: a}, effect: pure}
  - mcp: {command: [npx, --token, SECRET4, --dsn=SECRET5, plain], env: {API_KEY: SECRET6, LANGUAGE: en}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	def, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	files, report := dialect.Export("a.yaml", def)
	var b strings.Builder
	if err := report.Format(&b); err != nil {
		t.Fatal(err)
	}
	all := exported(files) + b.String()
	if found := leaks(all); found != nil {
		t.Errorf("%q in\n%s", found, all)
	}
	for _, want := range []string{
		"X-Team: a", "LANGUAGE: en", "plain", "url: https://h.example/mcp?key=YOUR_SECRET", "tools mcp headers Authorization", "tools mcp env API_KEY",
		"tools mcp effect", "tools mcp url", "tools mcp command",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no %s in\n%s", want, all)
		}
	}
}

// A terminal obeys nothing that stands in a name, in whatever line it is told.
func TestReportIsPrintable(t *testing.T) {
	text, _ := reported(t, "agents.json", `{"type": "llm", "name": "a\u001b[31m", "instruction": "x", "description": "d"}`, dialect.Evo)
	if !strings.Contains(text, "carried over: a�[31m: ") || strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("%q", text)
	}
}

// What is told of a value is short, and its end is marked.
func TestLongValuesAreCut(t *testing.T) {
	text, _ := reported(t, "agents.json", `{"type": "loop", "name": "a", "max_iterations": "`+strings.Repeat("é", 61)+
		`", "sub_agents": [{"type": "llm", "name": "b", "instruction": "x"}]}`, dialect.Evo)
	if want := `got "` + strings.Repeat("é", 60) + `…"`; !strings.Contains(text, want) {
		t.Errorf("want %s in\n%s", want, text)
	}
	text, _ = reported(t, "agents.json", `{"type": "loop", "name": "a", "max_iterations": "`+strings.Repeat("é", 60)+
		`", "sub_agents": [{"type": "llm", "name": "b", "instruction": "x"}]}`, dialect.Evo)
	if want := `got "` + strings.Repeat("é", 60) + `"`; !strings.Contains(text, want) {
		t.Errorf("want %s in\n%s", want, text)
	}
}

// Some editors write a mark before the first character of a file.
func TestByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{
		"agents.json":     `{"type": "llm", "name": "a", "instruction": "{{#x}}", "task_definition": ""}`,
		"root_agent.yaml": "instruction: '{{#x}}'\nname: a\n",
	} {
		d := dialect.Detect(name, []byte("\ufeff"+text))
		plain, res := reported(t, name, text, d)
		marked, _ := reported(t, name, "\ufeff"+text, d)
		if d == "" || plain != marked || len(res.Report.Problems) == 0 {
			t.Errorf("%s (%s):\n%s\nand with a mark\n%s", name, d, plain, marked)
		}
	}
}
