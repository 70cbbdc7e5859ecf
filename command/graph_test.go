// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// Every example can be drawn in every format: all subgraphs are closed, and each
// arrow leads from a node that is there to another one. K7
func TestEveryExampleCanBeDrawn(t *testing.T) {
	files, _ := filepath.Glob("../examples/*/*loop.yaml")
	if len(files) < 8 {
		t.Fatalf("only %q", files)
	}
	node := regexp.MustCompile(`(?m)^\s*(?:subgraph )?(n[0-9]+(?:end)?)(?:\[|\(|\{| \[[a-z]+=)`)
	edge := regexp.MustCompile(`(?m)^\s*(n[0-9]+(?:end)?) -[-.>].*?(n[0-9]+(?:end)?)(?: \[|;|$)`)
	for _, file := range files {
		for _, format := range []string{"ascii", "mermaid"} {
			var out, errs bytes.Buffer
			if code := run(t.Context(), nil, []string{"graph", file, "--format", format}, os.Getenv, strings.NewReader(""), &out, &errs); code != 0 {
				t.Fatalf("%s: exit code %d: %s", file, code, errs.String())
			}
			text := out.String()
			if format == "ascii" {
				checkFrame(t, file, text)
				continue
			}
			if opened, closed := strings.Count(text, "subgraph "), strings.Count(text, "\n  end\n"); opened == 0 || closed != 1 {
				t.Errorf("%s: %d subgraphs opened, the outermost closed %d times", file, opened, closed)
			}
			there := make(map[string]bool)
			for _, m := range node.FindAllStringSubmatch(text, -1) {
				there[m[1]] = true
			}
			edges := edge.FindAllStringSubmatch(text, -1)
			if len(edges) == 0 {
				t.Errorf("%s: no arrow in %s", file, format)
			}
			for _, m := range edges {
				if !there[m[1]] || !there[m[2]] {
					t.Errorf("%s: %s: %q leads from or to nothing", file, format, m[0])
				}
			}
		}
	}
}

// checkFrame looks whether all lines of a box are as long as its first.
func checkFrame(t *testing.T, file, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range lines {
		if n := ansi.StringWidth(l); n != ansi.StringWidth(lines[0]) || n > 80 {
			t.Errorf("%s: a line of another length, or too long: %q", file, l)
		}
	}
}

// Names as long as they are shown, of whatever characters, and all that is said of an
// agent fit on a screen of 80 columns.
func TestLongNamesFitTheScreen(t *testing.T) {
	long := strings.Repeat("very_long_name_", 4)
	text := fmt.Sprintf(`name: %[1]sroot
max_iterations: 9
stop_when: {any: ["state.%[1]sa != '' && size(state.%[1]sa) > 1000 && state.%[1]sa.contains('some words')"]}
sub_agents:
  - name: %[1]sa
    display_name: "日本語の名前日本語の名前日本語の名前日本語の名前日本語の名前日本語の名前"
    instructions: a
    output_key: %[1]sa
    can_exit_loop: true
    tools: [{mcp: {command: [a-program, with, many, arguments, that, are, long, enough, to, fill, a, line]}}]
  - name: %[1]sinner
    type: parallel
    sub_agents:
      - name: %[1]sb
        max_iterations: 2
        sub_agents:
          - {name: %[1]sc, text: c, output_key: %[1]sc}
  - {name: %[1]sd, text: "{{%[1]sa}} {{%[1]sc}}", output_key: loop_output}
`, long)
	file := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, []string{"graph", file}, os.Getenv, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	checkFrame(t, file, out.String())
	for _, want := range []string{"日本語", "with many arguments", "may end the"} {
		if !strings.Contains(strings.Join(strings.Fields(strings.NewReplacer("|", " ", "\n", " ").Replace(out.String())), " "), want) {
			t.Errorf("%q is not in it:\n%s", want, out.String())
		}
	}
}
