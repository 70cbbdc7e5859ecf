// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// The table speaks of this repository: what it calls missing is missing, and every difference is a row of doc/adk.md.
func TestTable(t *testing.T) {
	for _, p := range packages() {
		if _, exported := exports(t, p); !exported {
			t.Errorf("package %s is not here", p)
		}
		if _, is := differences()[p]; is {
			t.Errorf("package %s is both here and missing", p)
		}
	}
	doc, err := os.ReadFile(filepath.Join(root, "doc", "adk.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{ // of doc/adk.md, by the beginning of a text of the table
		"an error of a step":        "An error ends the loop, as it ends a sequence",
		"an error of a before":      "An error of a before-agent callback keeps the agent from running.",
		"an answer that does not":   "If an answer does not fit `OutputSchema`",
		"an answer that was cut":    "An answer that was cut off (`MAX_TOKENS`) or blocked (`SAFETY` and the like) is the error of its agent",
		"without a SessionService":  "Without a `SessionService` the runs are kept in `.refrain`",
		"web a2a refuses":           "`Config.A2AOptions` are refused by `web a2a`.",
		"the content that this":     "The content that `BeforeRunCallback` returns is the answer of the run",
		"the events have no ID":     "`OnEventCallback` gets events without ID and time.",
		"a save that names":         "A save that names a version writes that one.",
		"the structured result":     "The structured result of an MCP tool is the answer itself, without a key `output` around it.",
		"openaimodel speaks":        "`openaimodel` speaks Chat Completions",
		"runs are traced only":      "Runs are traced after `Providers.SetGlobalOtelProviders`",
		"in a run this returns":     "outside a callback, a tool or an event returns `session.ErrNotLogged`",
		"error texts differ":        "Error texts differ from ADK's",
		"a value of the state is J": "`int` and other integers, `float64`, `json.Number` | `float64`",
	}
	seen := map[string]bool{}
	for key, d := range differences() {
		path, name, inside := strings.Cut(key, " ")
		names, here := exports(t, path)
		switch {
		case d.breaks && !inside && here:
			t.Errorf("package %s is here", path)
		case d.breaks && inside && names[name]:
			t.Errorf("%s is here", key)
		case !d.breaks && inside && here && !names[strings.Replace(name, "-", ".", 1)]:
			t.Errorf("%s is not here", key)
		}
		if !d.breaks {
			for begin := range rows {
				if strings.HasPrefix(d.text, begin) {
					seen[d.text] = true
				}
			}
			if !seen[d.text] {
				t.Errorf("%q has no row of doc/adk.md", d.text)
			}
		}
	}
	for begin, row := range rows {
		if !bytes.Contains(doc, []byte(row)) {
			t.Errorf("doc/adk.md has no row %q, of %q", row, begin)
		}
	}
}

// exports lists what a package of this repository exports: Name, and Type.Field of structs.
func exports(t *testing.T, path string) (names map[string]bool, here bool) {
	t.Helper()
	names = map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(path), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		here = true
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, id := range n.Names {
					names[id.Name] = true
				}
			case *ast.TypeSpec:
				names[n.Name.Name] = true
				if st, is := n.Type.(*ast.StructType); is {
					for _, field := range st.Fields.List {
						for _, id := range field.Names {
							names[n.Name.Name+"."+id.Name] = true
						}
					}
				}
			case *ast.BlockStmt:
				return false
			}
			return true
		})
	}
	return names, here
}

const imports = `package p

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"google.golang.org/genai"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/cmd/launcher"
	events "google.golang.org/adk/session"
	"google.golang.org/adk/tool"
)

`

func TestNewEventGetsItsContext(t *testing.T) {
	for _, tt := range []struct{ code, want string }{
		{`func f(c context.Context) { events.NewEvent("x") }`, `c, "x"`},
		{`func f(a, b context.Context, n int) { events.NewEvent("x") }`, `a, "x"`},
		{`func f(n int, tc tool.Context) { events.NewEvent("x") }`, `tc, "x"`},
		{`func f(cc agent.CallbackContext) { events.NewEvent(cc.InvocationID()) }`, `cc, cc.InvocationID()`},
		{`func f(x *T, c context.Context) { events.NewEvent(x.inv.InvocationID()) }`, `x.inv, x.inv.InvocationID()`},
		{`func f(c context.Context) { events.NewEvent(g().InvocationID()) }`, `c, g().InvocationID()`},
		{`func Test(t *testing.T) { t.Run("a", func(t *testing.T) { events.NewEvent("x") }) }`, `t.Context(), "x"`},
		{`func h(w http.ResponseWriter, r *http.Request) { events.NewEvent("x") }`, `r.Context(), "x"`},
		{`func f(inv agent.InvocationContext) any { return func(yield func(*events.Event, error) bool) { events.NewEvent("x") } }`, `inv, "x"`},
		{`func f(inv agent.InvocationContext) { func(_ context.Context) { events.NewEvent("x") }(nil) }`, `inv, "x"`},
		{`func f() { ctx := context.Background(); events.NewEvent("x") }`, `ctx, "x"`},
		{`func f() { ctx, stop := g(); defer stop(); events.NewEvent("x") }`, `ctx, "x"`},
		{`func (r *T) f(c context.Context) (a struct{ b int }, e error) { events.NewEvent("x"); return }`, `c, "x"`},
		{`func f[A any](c context.Context) interface{} { return events.NewEvent("x") }`, `c, "x"`},
		{"func f(c context.Context) { events.NewEvent(\n\t\tg(1, 2),\n) }", "\n\t\tc, g(1, 2),\n"},
		{`func f(c context.Context) { events.NewEvent(c, "x") }`, `c, "x"`},
		{`func f(c context.Context) { events.NewEventWithContext(c, "x") }`, ``},
		{`func f(c context.Context) { x.events.NewEvent("x") }`, `"x"`},
		{`func f(context.Context) { events.NewEvent("x") }`, `"x"`}, // none in reach
		{`func g(c context.Context) {}; func f() { events.NewEvent("x") }`, `"x"`},
		{`var e = events.NewEvent("x")`, `"x"`},
	} {
		s := read([]byte(imports + tt.code + "\n"))
		_, got, _ := strings.Cut(s.moved(), "NewEvent(")
		got = got[:max(strings.LastIndex(got, ")"), 0)]
		if want := tt.want; !strings.HasPrefix(got, want) {
			t.Errorf("%s\ngot %s, want %s", tt.code, got, want)
		}
		lost := slices.ContainsFunc(s.findings, func(f *Finding) bool { return strings.Contains(f.Text, "none is in reach") })
		if want := tt.want == `"x"` && !strings.Contains(tt.code, "x.events"); lost != want {
			t.Errorf("%s\nsays that no context is in reach: %t, want %t", tt.code, lost, want)
		}
	}
}

// Each finding stands where >< marks its place.
func TestFindings(t *testing.T) {
	const head = "func f(ctx agent.InvocationContext, st events.State, ev *events.Event, err error) {\n"
	for code, want := range map[string][]string{
		`v, _ := ctx.Session().State().Get("n"); n := v.(><int)`:                                 {"not int but float64"},
		`v, err := st.Get("n"); if err == nil { n, ok := v.(><int32) }`:                          {"not int32 but float64"},
		`s := ctx.State(); var v any; v, _ = s.Get("n"); v.(><int64)`:                            {"not int64 but float64 unless it is beyond 2^53"},
		`v, _ := st.Get("n"); _, _ = v.(><time.Duration), v.(string)`:                            {"not time.Duration but float64"},
		`v, _ := st.Get("n"); _, _ = v.(><[]string), v.(map[string]any)`:                         {"not []string but []any"},
		`v, _ := st.Get("n"); _, _ = v.(><Mine), v.([]interface{})`:                              {"not Mine but string"},
		`v, _ := st.Get("n"); _ = v.(><*Mine)`:                                                   {"not *Mine but map[string]any"},
		`for k, v := range st.All() { _ = v.(><time.Time); k.(int) }`:                            {"not time.Time but string"},
		`_ = ev.Actions.StateDelta["n"].(><int)`:                                                 {"not int but float64"},
		`v := ev.Actions.StateDelta["n"]; _ = v.(><int)`:                                         {"not int but float64"},
		`v, _ := st.Get("n"); switch v.(type) { case ><int, string: g(1, v); case nil: }`:        {"not int but float64"},
		`v, _ := st.Get("n"); switch v := v.(type) { case int, float64: a, b = 1, v }`:           nil,
		`v, _ := cache.Get("n"); _ = v.(int); w := http.Get; _ = w.(int)`:                        nil,
		`x.v, _ = st.Get("n"); _ = f().(int)`:                                                    nil,
		`v := any(1); _ = v.(int); x.v.(int)`:                                                    nil,
		`if ><err.Error() == "x" {}`:                                                             {"error texts differ"},
		`strings.Contains(err.><Error(), "x")`:                                                   {"error texts differ"},
		`log(err.Error()); errors.Is(err, x)`:                                                    nil,
		`ctx.Session().State().><Set("a", 1); ctx.State().Set("a", 1)`:                           {"session.ErrNotLogged"},
		`_ = llmagent.Config{Name: "a", ><Mode: x}`:                                              {"Mode and tasks"},
		`_ = ><llmagent.ModeTask; a.ModeTask()`:                                                  {"Mode and tasks"},
		`_ = ><launcher.Config{AgentLoader: l}; _ = launcher.Config{SessionService: s}`:          {"in the folder .refrain"},
		`_ = []launcher.Config{}; func() *launcher.Config { return nil }()`:                      nil,
		`><otel.SetTracerProvider(p)`:                                                            {"SetGlobalOtelProviders"},
		`_ = genai.GenerateContentConfig{><MaxOutputTokens: 9, Labels: m}`:                       {"cut off or blocked is the error"},
		`if resp.FinishReason == ><genai.FinishReasonMaxTokens { genai.NewPartFromText("") }`:    {"cut off or blocked is the error"},
		`ctx.><SubScheduler(); ><agent.Promote(); llmagent.New(llmagent.Config{OutputKey: "a"})`: {"graph engine", "made by the runner"},
	} {
		code = strings.Replace(code, "><err.Error", "err.><Error", 1)
		plain := imports + head + strings.ReplaceAll(code, "><", "") + "\n}\n"
		marked := imports + head + code + "\n}\n"
		var got []string
		for _, f := range read([]byte(plain)).findings {
			got = append(got, f.Text)
			at := 0
			for range f.Line - 1 {
				at += strings.IndexByte(plain[at:], '\n') + 1
			}
			at += f.Column - 1 + 2*(len(got)-1)
			if !strings.HasPrefix(marked[at:], "><") {
				t.Errorf("%s\n%q is at %.20q", code, f.Text, marked[at:])
			}
		}
		if !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s\ngot %q, want %q", code, got, want)
		}
	}
}

// A drawn program that gofmt likes still is one that it likes, its second move changes nothing, and git applies the diff.
func TestDrawnPrograms(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		text := drawn(r)
		s := read([]byte(text))
		moved := s.moved()
		if formatted, err := format.Source([]byte(moved)); err != nil || string(formatted) != moved {
			t.Fatalf("seed %d: %v\n%s", seed, err, cmp.Diff(string(formatted), moved))
		}
		if strings.Contains(moved, `"google.golang.org/adk`) {
			t.Fatalf("seed %d:\n%s", seed, moved)
		}
		if again := read([]byte(moved)).moved(); again != moved {
			t.Fatalf("seed %d:\n%s", seed, cmp.Diff(moved, again))
		}
		crlf := strings.ReplaceAll(text, "\n", "\r\n")
		if got := read([]byte(crlf)).moved(); got != strings.ReplaceAll(moved, "\n", "\r\n") {
			t.Fatalf("seed %d, CRLF:\n%s", seed, cmp.Diff(moved, got))
		}
	}
}

// drawn returns a program as gofmt writes it.
func drawn(r *rand.Rand) string {
	prefix := []string{"google.golang.org/adk/", "google.golang.org/adk/v2/"}[r.IntN(2)]
	var b strings.Builder
	b.WriteString("// Package p is drawn.\npackage p\n\n")
	some := []string{"context", "fmt", prefix + "agent", prefix + "session", prefix + "tool/functiontool", "google.golang.org/genai",
		"github.com/a/b", "github.com/refrain/other", "gopkg.in/x", prefix + "server/adka2a/v2"}
	for len(some) > 0 {
		group := 1 + r.IntN(len(some))
		if group == 1 && r.IntN(2) == 0 {
			fmt.Fprintf(&b, "import %q\n\n", some[0])
		} else {
			b.WriteString("import (\n")
			for _, p := range some[:group] {
				fmt.Fprintf(&b, "\t%s%q%s\n", []string{"", "", "x ", "_ ", "// a word\n\t"}[r.IntN(5)], p, []string{"", "", "\n"}[r.IntN(3)])
			}
			b.WriteString(")\n\n")
		}
		some = some[group:]
	}
	for i := range r.IntN(4) {
		fmt.Fprintf(&b, "func f%d(ctx context.Context) {\n", i)
		for range r.IntN(5) {
			b.WriteString([]string{"\t// session.NewEvent(x)\n", "\t_ = session.NewEvent(\"x\")\n",
				"\tgo func() { x := []int{1, 2}; g(session.NewEvent(h(x[0], 1))) }()\n",
				"\n", "\t_ = `\n\"google.golang.org/genai/adk/agent\"\n`\n"}[r.IntN(5)])
		}
		b.WriteString("}\n\n")
	}
	formatted, err := format.Source([]byte(b.String()))
	if err != nil {
		panic(err)
	}
	return string(formatted)
}

// FuzzRead: whatever a file holds, reading it ends, and what was moved has nothing more to move.
func FuzzRead(f *testing.F) {
	for _, text := range []string{imports, "package p; import `google.golang.org/adk/agent`; func (", "import \"google.golang.org/adk/v2/\"\x00}",
		"package p\nimport (\"google.golang.org/adk/session\"; x \"a\")\nfunc f(ctx context.Context) []session.Event {session.NewEvent(0)\n}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once := read(text).moved()
		if twice := read([]byte(once)).moved(); twice != once {
			t.Errorf("%s", cmp.Diff(once, twice))
		}
	})
}

func TestGoMod(t *testing.T) {
	for _, tt := range []struct{ name, version, text, want string }{
		{"v1", "v1.2.3", "module m\n\ngo 1.24.1\n\ntoolchain go1.25.0\n\nrequire google.golang.org/adk v1.6.0 // why\n",
			"module m\n\ngo 1.26.0\n\nrequire github.com/refrain-dev/refrain v1.2.3 // why\n"},
		{"v2 in a block", "v1.2.3", "module m\ngo 1.27\nrequire (\n\ta.b/c v1.0.0\n\tgoogle.golang.org/adk/v2 v2.2.0 // indirect\n)\n",
			"module m\ngo 1.27\nrequire (\n\ta.b/c v1.0.0\n\tgithub.com/refrain-dev/refrain v1.2.3 // indirect\n)\n"},
		{"both", "v1.2.3", "module m\nrequire (\n\tgoogle.golang.org/adk v1.6.0\n\tgoogle.golang.org/adk/v2 v2.2.0\n)\n",
			"module m\nrequire (\n\tgithub.com/refrain-dev/refrain v1.2.3\n)\n"},
		{"ours is there", "v1.2.3", "module m\nrequire github.com/refrain-dev/refrain v1.0.0\nrequire google.golang.org/adk v1.6.0\n",
			"module m\nrequire github.com/refrain-dev/refrain v1.0.0\n"},
		{"ours is there, below", "v1.2.3", "module m\nrequire google.golang.org/adk v1.6.0\nrequire github.com/refrain-dev/refrain v1.0.0\n",
			"module m\nrequire github.com/refrain-dev/refrain v1.0.0\n"},
		{"a checkout", "", "module m\n\nrequire google.golang.org/adk v1.6.0\n\nrequire a.b/c v1.0.0\n", "module m\n\nrequire a.b/c v1.0.0\n"},
		{"the last line", "", "module m\n\nrequire google.golang.org/adk v1.6.0", "module m\n"},
		{"others", "v1.2.3", "module m\nexclude google.golang.org/adk v1.0.0\nreplace google.golang.org/adk => ../adk\ntool google.golang.org/adk/cmd/adkgo\n" +
			"require google.golang.org/adkx v1.0.0\n", "module m\nrequire google.golang.org/adkx v1.0.0\n"},
		{"ADK itself", "v1.2.3", "module google.golang.org/adk\n", "module google.golang.org/adk\n"},
		{"nonsense", "v1.2.3", "require google.golang.org/adk\nrequire (\ngoogle.golang.org/adk\n((\n)\n)\ngo\n", "require (\n((\n)\n)\ngo\n"},
	} {
		got, _ := moveGoMod(tt.text, true, tt.version)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if again, _ := moveGoMod(got, true, tt.version); again != got {
			t.Errorf("%s: a second move changes\n%q to\n%q", tt.name, got, again)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, goMod))
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^go (.*)$`).FindSubmatch(text); string(m[1]) != goVersion {
		t.Errorf("go.mod asks for Go %s, not %s", m[1], goVersion)
	}
}

// module writes a module with some drawn files.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{goMod: "module m\n\ngo 1.24\n\nrequire google.golang.org/adk v1.6.0\n"}
	for i := range 3 {
		files[fmt.Sprintf("p%d/p.go", i)] = drawn(rand.New(rand.NewPCG(uint64(i), 1)))
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A move that is killed between two writes is finished by the next one.
func TestKilledMove(t *testing.T) {
	whole := module(t)
	p, err := Read(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(); err != nil {
		t.Fatal(err)
	}
	want := files(t, whole)
	for n := range p.changed {
		dir := module(t)
		p, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		p.changed = p.changed[:n]
		if err := p.Write(); err != nil {
			t.Fatal(err)
		}
		if p, err = Read(dir); err == nil {
			err = p.Write()
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Errorf("after %d files (-want +got):\n%s", n, diff)
		}
	}
	if info, err := os.Stat(filepath.Join(whole, "p0", "p.go")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got the mode %v, %v", info.Mode(), err)
	}
}

// What somebody else wrote meanwhile is not lost.
func TestFileThatChangesMeanwhile(t *testing.T) {
	dir := module(t)
	p, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "p1", "p.go")
	if err := os.WriteFile(name, []byte("package mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(); err == nil || !strings.Contains(err.Error(), "p1/p.go has changed since it was read") {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(name); string(text) != "package mine\n" {
		t.Errorf("got %q", text)
	}
}

// git and patch understand the diff.
func TestDiffApplies(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := module(t)
	p, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var diff bytes.Buffer
	if err := p.Diff(&diff); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, &diff
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	applied := files(t, dir)
	if p, err = Read(dir); err != nil || len(p.Files()) > 0 {
		t.Errorf("got %v, %v", p.Files(), err)
	}
	other := module(t)
	if p, err = Read(other); err == nil {
		err = p.Write()
	}
	if diff := cmp.Diff(files(t, other), applied); err != nil || diff != "" {
		t.Errorf("%v (-written +applied):\n%s", err, diff)
	}
}

func TestDiff(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("%d\n", i+1))
	}
	moved := slices.Clone(lines)
	moved[0], moved[9], moved[16], moved[29] = "", "ten\n", "a\nb\n", "end"
	got := change{"x.go", strings.Join(lines, ""), strings.Join(moved, "")}.diff()
	want := "--- a/x.go\n+++ b/x.go\n@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n" +
		"@@ -7,7 +6,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n@@ -14,7 +13,8 @@\n 14\n 15\n 16\n-17\n+a\n+b\n 18\n 19\n 20\n" +
		"@@ -27,4 +27,4 @@\n 27\n 28\n 29\n-30\n+end\n\\ No newline at end of file\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
