// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
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
	for _, f := range cel.Functions() {
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
			folder := t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "hidden_tests"), 0o700); err != nil { // an overlay
				t.Fatal(err)
			}
			root, err := def.Build(t.Context(), definition.BuildConfig{
				Root: folder, Model: noModel, DefaultModel: "scripted/x", Getenv: func(string) string { return hookSecret },
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

// The two loops of doc/models.md ask the large model only if the small one gets no further, and then for the best version.
func TestSmallModelFirst(t *testing.T) {
	blocks := yamlBlocks(readFile(t, "../doc/models.md"))
	at := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, "name: ladder\n") })
	if at < 0 {
		t.Fatal("doc/models.md has no ladder")
	}
	answers := func(writer, critic string, marks ...string) (all []scripted.Answer) {
		for i, mark := range marks {
			all = append(all, scripted.Answer{Agent: writer, Text: fmt.Sprint(writer, i+1)}, scripted.Answer{Agent: critic, Text: mark})
		}
		return all
	}
	better := answers("large_writer", "large_critic", "9")
	better[0].MatchRequest = `So far: writer2\b` // the best of the small model
	for _, tt := range []struct {
		name         string
		small, large []scripted.Answer
		want         string
	}{
		{"it is good enough", answers("writer", "critic", "5", "9"), nil, "writer2"},
		{"it gets no further", answers("writer", "critic", "5", "7", "4", "6"), better, "large_writer1"},
	} {
		def, err := definition.Parse("ladder.yaml", []byte(blocks[at]), definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		root, err := def.Build(t.Context(), definition.BuildConfig{Model: func(_ context.Context, name string) (model.LLM, error) {
			return scripted.New(scripted.Script{Answers: map[string][]scripted.Answer{"openai/gpt-5-mini": tt.small, "openai/gpt-5": tt.large}[name]})
		}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.NewInMemory("ladder", root)
		if err != nil {
			t.Fatal(err)
		}
		var draft any
		for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), def.RunConfig(definition.Limits{})) {
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if d, ok := ev.Actions.StateDelta["draft"]; ok {
				draft = d
			}
		}
		if draft != tt.want {
			t.Errorf("%s: the draft is %v, not %s", tt.name, draft, tt.want)
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
