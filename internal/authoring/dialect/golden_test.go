// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

var update = flag.Bool("update", false, "write the golden files")

// mains are what the file to import is called in a folder.
var mains = []string{"root_agent.yaml", "agents.json", "flow.json", "flow.yaml", "main.ts"}

// home is the folder of the package; a test that uses a folder of testdata runs in another one.
var home, _ = os.Getwd()

// unpack writes a folder of testdata, which is an archive, below a temporary folder, where the test goes on.
func unpack(t *testing.T, folder string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(home, folder+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := txtar.FS(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS(folder, files); err != nil {
		t.Fatal(err)
	}
}

// each calls a test for every folder of a dialect, with the file in it.
func each(t *testing.T, d dialect.Dialect, test func(t *testing.T, folder, file string)) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join("testdata", string(d), "*.txtar"))
	if err != nil || len(archives) < 10 {
		t.Fatalf("%d definitions of %s, %v", len(archives), d, err)
	}
	for _, archive := range archives {
		folder := strings.TrimSuffix(archive, ".txtar")
		t.Run(filepath.Base(folder), func(t *testing.T) {
			unpack(t, folder)
			for _, main := range mains {
				if file := filepath.Join(folder, main); exists(file) {
					test(t, folder, file)
					return
				}
			}
			t.Fatal("nothing to import")
		})
	}
}

func load(t *testing.T, d dialect.Dialect, folder, file string) *dialect.Result {
	t.Helper()
	if !exists(folder) {
		unpack(t, folder)
	}
	opts := dialect.Options{Dialect: d}
	if name, err := os.ReadFile(filepath.Join(folder, "args")); err == nil {
		opts.Agent = strings.TrimSpace(string(name))
	}
	res, err := dialect.Load(file, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// golden compares a text with a file of testdata, which is unpacked if it is in an archive.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path, archive := filepath.Join(home, file), filepath.Join(home, filepath.Dir(file)+".txtar")
	packed := exists(archive)
	if packed {
		path = file
	}
	if *update {
		data := []byte(got)
		if packed {
			a, err := txtar.ParseFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
			a.Files = append(a.Files, txtar.File{Name: name, Data: data})
			path, data = archive, txtar.Format(a)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", file, diff)
	}
}

// TestADK imports testdata/adk: what a definition is made of each, what is said
// about it, and, with a script for the model, that it runs to its end.
// A12, A13, A14, A17, D5, T10, X1, C1, C4, C9
func TestADK(t *testing.T) { imports(t, dialect.ADK) }

// A14, A23, A24, A25, A26, A27, A28, C5, C6, C7, C11, C12, C29, D1, D2, D3, D4, D6, D10, D11, D12, D13, D14, D17, F2, F3, T9, T11
func TestEvo(t *testing.T) { imports(t, dialect.Evo) }

// A15, A16, A17, A18, A19, A21, A22, C11, C14, C16, F1, F7, G1, U8, U9, U11
func TestRobomotion(t *testing.T) { imports(t, dialect.Robomotion) }

func imports(t *testing.T, d dialect.Dialect) {
	runs := 0
	each(t, d, func(t *testing.T, folder, file string) {
		res := load(t, d, folder, file)
		var b strings.Builder
		if err := res.Report.Format(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join(folder, "report.golden"), b.String())
		if got, want := strings.Count(b.String(), ": left out: "), res.Report.Count(dialect.Dropped); got != want {
			t.Errorf("%d lines say what is left out, and the summary counts %d", got, want)
		}
		if res.YAML == nil {
			if res.Err() == nil {
				t.Error("neither a definition nor an error")
			}
			return
		}
		golden(t, filepath.Join(folder, "definition.golden"), string(res.YAML))
		checkLoads(t, res)
		if script := filepath.Join(folder, "script.yaml"); exists(script) && res.Definition != nil && folder != "testdata/evo/optimize" {
			runs++
			answer, stop := run(t, res.Definition, script)
			golden(t, filepath.Join(folder, "answer.golden"), answer+"\n"+stop+"\n")
		}
	})
	if runs < 5 {
		t.Errorf("only %d of the definitions were run", runs)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// checkLoads holds what was imported against definition.Load.
func checkLoads(t *testing.T, res *dialect.Result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "loop.yaml")
	if err := os.WriteFile(file, res.YAML, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := definition.Load(file)
	if (err == nil) != (res.Err() == nil) || (err == nil) != (res.Definition != nil) {
		t.Errorf("definition.Load says %v, and the report %v", err, res.Err())
	}
}

// run runs a definition with the scripted model and returns its answer and why
// its loops stopped.
func run(t *testing.T, def *definition.Definition, script string) (answer, stop string) {
	t.Helper()
	fold, _ := play(t, def, script)
	var stops []string
	for _, rec := range fold.Stops() {
		stops = append(stops, string(rec.Reason))
	}
	return fold.Answer(), strings.Join(stops, " ")
}

// play is run, and returns what was said, each with who said it.
func play(t *testing.T, def *definition.Definition, script string) (fold *progress.Fold, said []string) {
	t.Helper()
	llm, err := scripted.Load(script)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	for _, in := range def.Inputs {
		if in.Required {
			values[in.Name] = "cats"
		}
	}
	state, err := def.InitialState(values)
	if err != nil {
		t.Fatal(err)
	}
	cfg := definition.BuildConfig{
		Model:        func(context.Context, string) (model.LLM, error) { return llm, nil },
		DefaultModel: "scripted/script.yaml",
	}
	for a := range def.Root.All {
		if a.LLM != nil {
			for _, f := range a.LLM.Tools {
				if f.Func != "" {
					cfg.Tools = append(cfg.Tools, function(t, f.Func))
				}
			}
		}
	}
	root, err := def.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{
		AppName: "test", Agent: root, Durable: true, AutoCreateSession: true, SessionService: session.InMemoryService(),
		ArtifactService: artifact.InMemoryService(), MemoryService: memory.InMemoryService(),
	})
	if err != nil {
		t.Fatal(err)
	}
	fold = new(progress.Fold)
	msg := genai.NewContentFromText("go", genai.RoleUser)
	for ev, err := range r.Run(t.Context(), "u", "s", msg, agent.RunConfig{}, runner.WithStateDelta(state)) {
		if err != nil {
			t.Fatal(err)
		}
		fold.Add(ev)
		if ev.Author != "user" && ev.Content != nil && len(ev.Content.Parts) == 1 && ev.Content.Parts[0].Text != "" {
			said = append(said, ev.Author+": "+ev.Content.Parts[0].Text)
		}
	}
	return fold, said
}

func function(t *testing.T, name string) tool.Tool {
	t.Helper()
	f, err := functiontool.New(functiontool.Config{Name: name, Description: "a function of the test"},
		func(tool.Context, struct{}) (map[string]any, error) { return map[string]any{"answer": "higher"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return f
}
