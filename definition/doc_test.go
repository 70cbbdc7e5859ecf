// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/runner"
)

// The table of fields in the manual is the one that the parser goes by.
func TestManualListsEveryField(t *testing.T) {
	var table strings.Builder
	table.WriteString("| field | of | what it is |\n|---|---|---|\n")
	for _, f := range definition.Fields() {
		of := "every agent"
		if f.Root {
			of = "the root"
		}
		if f.Types != nil {
			of = strings.Join(strings.Fields(strings.Trim(fmt.Sprint(f.Types), "[]")), ", ")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", f.Name, of, strings.ReplaceAll(f.Doc, "|", `\|`))
	}
	manualHas(t, "fields", table.String())
}

// The table of functions in the manual is that of package expr.
func TestManualListsEveryFunction(t *testing.T) {
	var table strings.Builder
	table.WriteString("| function | what it gives | example, which is true |\n|---|---|---|\n")
	code := func(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }
	for _, f := range expr.Functions() {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", strings.ReplaceAll(code(f.Form), "), ", ")`, `"), f.Doc, code(f.Example))
	}
	manualHas(t, "functions", table.String())
}

// manualHas compares, or writes, a table between its comments in the manual.
func manualHas(t *testing.T, what, table string) {
	t.Helper()
	const manual = "../doc/fields.md"
	begin, end := "<!-- "+what+": written by go test ./definition -update -->\n", "<!-- end of "+what+" -->"
	text := readFile(t, manual)
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no table of %s between its comments", manual, what)
	}
	want := head + begin + table + end + tail
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("%s is out of date; run go test ./definition -update (-want +got):\n%s", manual, diff)
	}
}

// The definitions in the documents are valid, and build.
func TestDefinitionsInDocumentsAreValid(t *testing.T) {
	for _, name := range []string{"../README.md", "../doc/definition.md", "../doc/scoring.md", "../doc/coding.md", "../doc/models.md"} {
		blocks := yamlBlocks(readFile(t, name))
		if len(blocks) == 0 {
			t.Errorf("%s has no definition in it", name)
		}
		for _, b := range blocks {
			def, err := definition.Parse(name, []byte(b), definition.Options{})
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, b)
				continue
			}
			root, err := def.Build(t.Context(), definition.BuildConfig{
				Root: t.TempDir(), Model: noModel, DefaultModel: "scripted/x", Getenv: func(string) string { return hookSecret },
			})
			if err != nil {
				t.Errorf("%s: build %s: %v", name, def.Name, err)
				continue
			}
			if _, err := runner.NewInMemory("docs", root); err != nil {
				t.Errorf("%s: %s: %v", name, def.Name, err)
			}
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// yamlBlocks returns the YAML code in a Markdown text.
func yamlBlocks(text string) []string {
	var blocks []string
	for _, part := range strings.Split(text, "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}
