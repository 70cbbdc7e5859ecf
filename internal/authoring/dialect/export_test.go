// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// exported is the files of an export as one text.
func exported(files []dialect.File) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString("-- " + f.Name + " --\n" + string(f.Data))
	}
	return b.String()
}

// TestExport writes each file of testdata/export in ADK's form.
// A12, A13, A17, C4, C9, T9, T10
func TestExport(t *testing.T) {
	files, err := filepath.Glob("testdata/export/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			def, err := definition.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			out, report := dialect.Export(file, def)
			var b strings.Builder
			if err := report.Format(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", exported(out)+"-- report --\n"+b.String())
			if (out == nil) != (report.Count(dialect.Failed) > 0) {
				t.Errorf("%d files and %d errors", len(out), report.Count(dialect.Failed))
			}
		})
	}
}

// TestRoundTrip: what ADK can say comes back from it as it was.
// A12, A13, A14, A17, T10, C9
func TestRoundTrip(t *testing.T) {
	again := 0
	each(t, dialect.ADK, func(t *testing.T, folder, file string) {
		first := load(t, dialect.ADK, folder, file)
		if first.Definition == nil {
			return
		}
		again++
		second := throughADK(t, first.Definition)
		if diff := cmp.Diff(outlined(first.Definition.Root, ""), outlined(second.Definition.Root, "")); diff != "" {
			t.Errorf("-first +second\n%s", diff)
		}
	})
	if again < 5 {
		t.Errorf("only %d definitions went there and back", again)
	}
}

// throughADK writes a definition for ADK and imports it.
func throughADK(t *testing.T, def *definition.Definition) *dialect.Result {
	t.Helper()
	files, report := dialect.Export("there.yaml", def)
	if n := report.Count(dialect.Failed); n > 0 {
		t.Fatalf("%d errors: %+v", n, report.Items)
	}
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	back, err := dialect.Load(filepath.Join(dir, "root_agent.yaml"), dialect.Options{})
	if err != nil || back.Err() != nil {
		t.Fatalf("%v, %+v", err, back.Report.Items)
	}
	return back
}

// outline is what ADK can say of an agent.
type outline struct {
	Name, Description, Model, Instructions, OutputKey string

	Type       definition.Type
	Iterations uint
	Context    llmagent.ContextConfig
	Exit       bool
	Generation []any
	Tools      []string
	Subs       []outline
}

// outlined is the outline of an agent, with the model of whoever is around it.
func outlined(a *definition.Agent, model string) outline {
	if a.Model != "" {
		model = a.Model
	}
	o := outline{Name: strings.ReplaceAll(a.Name, "-", "_"), Description: a.Description, Type: a.Type, OutputKey: a.OutputKey, Exit: a.CanExitLoop}
	if a.Loop != nil {
		o.Iterations = a.Loop.MaxIterations
	}
	if l := a.LLM; l != nil {
		o.Model, o.Instructions, o.Context = model, l.Instructions, l.Context
		o.Generation = []any{l.Temperature, l.MaxTokens, l.Thinking}
		for _, t := range l.Tools {
			o.Tools = append(o.Tools, t.Func)
			if t.MCP != nil {
				o.Tools = append(o.Tools, fmt.Sprint(t.MCP.Command, t.MCP.URL, t.MCP.Headers, t.MCP.Only, t.MCP.Prefix))
			}
			if t.Agent != nil {
				o.Subs = append(o.Subs, outlined(t.Agent, model))
			}
		}
	}
	for _, sub := range a.SubAgents {
		o.Subs = append(o.Subs, outlined(sub, model))
	}
	return o
}

// D10, D13: ADK has no finalizer; the loop and what comes after it are a
// sequence, which runs the same.
func TestFinalizerBecomesASequence(t *testing.T) {
	unpack(t, "testdata/evo/refine")
	res, err := dialect.Load("testdata/evo/refine/agents.json", dialect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	back := throughADK(t, res.Definition)
	answer, stop := run(t, back.Definition, "testdata/evo/refine/script.yaml")
	if answer != "Pronto." || stop != "exit_loop" {
		t.Errorf("answer %q, stop %q\n%s", answer, stop, back.YAML)
	}
}
