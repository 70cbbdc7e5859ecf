// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/authoring/form"
)

const refine = `name: refine
max_iterations: 3
sub_agents:
  - name: writer
    instructions: "Improve {{feedbak}}"
    output_key: draft
  - name: polish
    max_iterations: 2
    sub_agents:
      - {name: trim, text: "{{draft}}", output_key: draft}
  - name: critic
    instructions: "Judge {{draft}}"
    output_key: feedback
    tols: [exit_loop]
`

func Example() {
	o := form.Read("refine.yaml", []byte(refine), definition.Options{})
	for _, a := range o.Agents[0].Steps {
		fmt.Println(a.Path, a.Name, a.Type, a.Fields["output_key"])
	}
	for _, p := range o.Problems {
		if len(p.Fixes) > 0 {
			fmt.Println(p.Path, p.Fixes[0].Title)
		}
	}
	// Output:
	// sub_agents[0] writer llm draft
	// sub_agents[1] polish loop <nil>
	// sub_agents[2] critic llm feedback
	// sub_agents[0].instructions Use {{feedback}}
	// sub_agents[2].tols Use tools
}

// A fix in the place of its problem makes it go away.
func TestFixesMend(t *testing.T) {
	text := refine
	for range 5 {
		o := form.Read("refine.yaml", []byte(text), definition.Options{})
		i := slices.IndexFunc(o.Problems, func(p form.Problem) bool { return len(p.Fixes) > 0 })
		if i < 0 {
			if !o.Valid {
				t.Errorf("without a fix, and not valid: %v", o.Problems)
			}
			return
		}
		p := o.Problems[i]
		lines := strings.Split(text, "\n")
		l := []rune(lines[p.Line-1])
		lines[p.Line-1] = string(l[:p.Column-1]) + p.Fixes[0].Text + string(l[p.Column-1+p.Length:])
		text = strings.Join(lines, "\n")
	}
	t.Errorf("it is never mended:\n%s", text)
}

// Every example can be shown, and each path of an agent names it for an edit too.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	shown := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		o := form.Read(filepath.Base(name), text, definition.Options{FS: os.DirFS(filepath.Dir(name)), Path: filepath.Base(name)})
		if !o.Valid {
			continue // a script for the model, or a file of another product
		}
		shown++
		var visit func(a *form.Agent)
		visit = func(a *form.Agent) {
			if a.Type == "" && a.Ref == "" {
				t.Errorf("%s: %q has no type", name, a.Path)
			}
			if a.Path != "" && a.Name != "" {
				e, err := edit.New(text)
				if err == nil {
					err = e.Set(a.Path+".name", "renamed_here")
				}
				if err != nil || !strings.Contains(string(e.Bytes()), "renamed_here") {
					t.Errorf("%s: %s: %v", name, a.Path, err)
				}
			}
			for _, s := range a.Steps {
				visit(s)
			}
		}
		visit(o.Agents[0])
		if len(o.Worst) == 0 {
			t.Errorf("%s: nothing is said of what it can use", name)
		}
	}
	if shown < 10 {
		t.Errorf("only %d examples are valid", shown)
	}
}

// While a text is typed, each beginning of it can be shown and completed.
func TestEveryBeginning(t *testing.T) {
	for i := range refine {
		text := refine[:i]
		o := form.Read("refine.yaml", []byte(text), definition.Options{})
		if len(o.Agents) == 0 && o.Valid {
			t.Errorf("valid without an agent:\n%s", text)
		}
		lines := strings.Split(text, "\n")
		form.Complete(text, len(lines), len(lines[len(lines)-1])+1)
	}
}

func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		text      string // | is the cursor
		has, not  []string
		insertsOf string
	}{
		{"na|", []string{"name", "inputs", "max_iterations"}, nil, ""},
		{"name: x\nsub_agents:\n  - name: w\n    text: hi\n    outp|", []string{"output_key"}, []string{"inputs", "name", "max_iterations", "url"}, ""},
		{"name: x\non_regression: |", []string{"keep_best", "rollback"}, nil, ""},
		{"name: x\nscore:\n  ta|", []string{"target", "key"}, []string{"name"}, ""},
		{refine + "  - name: z\n    text: \"{{|", []string{"draft", "feedback", "user_input"}, nil, ""},
		{"name: x\nsub_agents:\n  - |", []string{"name", "instructions", "command"}, []string{"inputs"}, ""},
		{"name: \"some te|", nil, []string{"output_key"}, ""},
	} {
		text, _, _ := strings.Cut(tt.text, "|")
		lines := strings.Split(text, "\n")
		var labels []string
		for _, o := range form.Complete(strings.Replace(tt.text, "|", "", 1), len(lines), len(lines[len(lines)-1])+1) {
			labels = append(labels, o.Label)
		}
		for _, w := range tt.has {
			if !slices.Contains(labels, w) {
				t.Errorf("%q: no %s in %v", tt.text, w, labels)
			}
		}
		for _, w := range tt.not {
			if slices.Contains(labels, w) {
				t.Errorf("%q: %s is offered", tt.text, w)
			}
		}
	}
}

// A form can ask for every field: one with words to choose from offers values that the schema
// takes.
func TestFields(t *testing.T) {
	all := form.Fields()
	if len(all) != len(definition.Fields()) {
		t.Errorf("%d fields of %d", len(all), len(definition.Fields()))
	}
	want := map[string][]string{
		"on_regression": {"keep_best", "rollback"}, "thinking": {"minimal", "low", "medium", "high"},
		"on_error": {"stop", "skip_step", "next_iteration"},
	}
	for _, f := range all {
		if w, ok := want[f.Name]; ok && !slices.Equal(f.Choices, w) {
			t.Errorf("%s (%s): %v, want %v", f.Name, f.Value, f.Choices, w)
		}
		if f.Name == "can_exit_loop" && !f.Bool || f.Name == "instructions" && !f.Text {
			t.Errorf("%s is %q", f.Name, f.Value)
		}
		if slices.Contains(f.Choices, "duration") {
			t.Errorf("%s: %v", f.Name, f.Choices)
		}
	}
}

// U6, U12: a step in a file is called, typed and permitted as the file and the fields beside its ref say.
func TestAStepInAFile(t *testing.T) {
	folder := fstest.MapFS{"critic.yaml": {Data: []byte("name: judge\ninstructions: Judge it.\ncan_exit_loop: true\n")}}
	o := form.Read("refine.yaml", []byte(`name: refine
model: scripted/none.yaml
sub_agents:
  - ref: critic.yaml
  - {ref: critic.yaml, name: second, can_exit_loop: false, delay_before: 2s}
`), definition.Options{FS: folder})
	steps := o.Agents[0].Steps
	if !o.Valid || len(steps) != 2 {
		t.Fatalf("the outline is %+v, with problems %v", o, o.Problems)
	}
	if s := steps[0]; s.Name != "judge" || s.Type != definition.TypeLLM || !s.CanExit || len(s.Fields) != 1 {
		t.Errorf("the first step is %+v", s)
	}
	if s := steps[1]; s.Name != "second" || s.Type != definition.TypeLLM || s.CanExit || s.Fields["delay_before"] != "2s" {
		t.Errorf("the second step is %+v", s)
	}
	var beside []string
	for _, f := range form.Fields() {
		if f.Beside {
			beside = append(beside, f.Name)
		}
	}
	if len(beside) != 6 || !slices.Contains(beside, "on_error") {
		t.Errorf("beside a ref can stand %v", beside)
	}
}
