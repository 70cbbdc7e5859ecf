// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// called runs the command with options in a folder of its own, with a script that no definition means.
func called(t *testing.T, opts []Option, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("script.yaml", []byte("answers: [{text: Another script.}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	code = run(t.Context(), opts, args, func(string) string { return "" }, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// requires fails if the command ended with another code, or if its output lacks a text.
func requires(t *testing.T, want int, texts ...string) func(code int, stdout, stderr string) {
	return func(code int, stdout, stderr string) {
		t.Helper()
		if code != want {
			t.Errorf("exit code %d, want %d", code, want)
		}
		for _, text := range texts {
			if !strings.Contains(stdout+stderr, text) {
				t.Errorf("%q is not in\n%s%s", text, stdout, stderr)
			}
		}
	}
}

// library is a set with one tool.
type library struct{ shelf tool.Tool }

func (l library) Name() string { return "library" }

func (l library) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return []tool.Tool{l.shelf}, nil }

// The plugins of a program are called in its runs.
func TestPluginsOfAProgram(t *testing.T) {
	var calls []string
	p, err := plugin.New(plugin.Config{
		Name: "guard",
		OnUserMessageCallback: func(ctx agent.InvocationContext, c *genai.Content) (*genai.Content, error) {
			calls = append(calls, "message to "+ctx.Agent().Name())
			return nil, nil
		},
		BeforeAgentCallback: func(ctx agent.Context) (*genai.Content, error) {
			calls = append(calls, "before "+ctx.AgentName())
			return genai.NewContentFromText("The guard says no.", genai.RoleModel), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	requires(t, 0, "The guard says no.")(called(t, []Option{
		Config{PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}}}, Definition("{name: bake, text: Bread.}"),
	}, "run", "bake", "go"))
	if want := "message to bake, before bake"; strings.Join(calls, ", ") != want {
		t.Errorf("got %q, want %q", calls, want)
	}
}

// A definition in a file system has its parts and its script there, and names a set of tools and a callback of the program. It is the
// only one, so that run needs no name.
func TestOnlyDefinitionOfAProgram(t *testing.T) {
	shelf, err := functiontool.New(functiontool.Config{Name: "shelf", Description: "Says where a book is."},
		func(tool.Context, struct{}) (string, error) { return "shelf 4", nil })
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	files := fstest.MapFS{
		"loops/find.yaml": {Data: []byte("{name: find, type: sequential, sub_agents: [{ref: steps/finder.yaml}]}\n")},
		"loops/steps/finder.yaml": {Data: []byte(`name: finder
model: scripted/script.yaml
instructions: Find the book.
tools: [library]
callbacks: {before_agent: [{func: tell}]}
`)},
		"loops/steps/script.yaml": {Data: []byte(`answers:
  - {match_request: shelf 4, text: It is on shelf 4.}
  - calls: [{name: shelf}]
`)},
	}
	requires(t, 0, "It is on shelf 4.", "reader show ")(called(t, []Option{
		Config{Name: "reader"}, Toolset(library{shelf}), DefinitionFS(files, "loops/find.yaml"),
		Callback("tell", func(_ context.Context, ev hook.Event) error {
			told = append(told, ev.Data.Agent)
			return nil
		}),
	}, "run", "Where is the book?"))
	if got := strings.Join(told, " "); got != "finder" {
		t.Errorf("the callback was told of %q, want finder", got)
	}
}

// Mistakes of a program show when it starts, and not when a definition uses what is wrong.
func TestMainPanicsOfMistakes(t *testing.T) {
	shelf, err := functiontool.New(functiontool.Config{Name: "shelf", Description: "Says where a book is."},
		func(tool.Context, struct{}) (string, error) { return "shelf 4", nil })
	if err != nil {
		t.Fatal(err)
	}
	shelves, err := functiontool.New(functiontool.Config{Name: "two shelves", Description: "Says where books are."},
		func(tool.Context, struct{}) (string, error) { return "shelf 4", nil })
	if err != nil {
		t.Fatal(err)
	}
	for want, opt := range map[string]Option{
		"an option is nil":              nil,
		"an agent is nil":               Agent(nil),
		"one is nil":                    Tool(nil),
		`two are called "shelf"`:        Tool(shelf, shelf),
		`"two shelves" cannot be`:       Tool(shelves),
		`"library": give a name`:        NewAgent("library", nil),
		`"": give a name`:               NewAgent("", func(cfg agent.Config) (agent.Agent, error) { return agent.New(cfg) }),
		`"tell": give a name`:           Callback("tell", nil),
		`definition "find.yaml" is nil`: DefinitionFS(nil, "find.yaml"),
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "command.Main: ") || !strings.Contains(got, want) {
					t.Errorf("the panic is %q, want %q in it", got, want)
				}
			}()
			called(t, []Option{opt}, "version")
		}()
	}
}

// A function that makes an agent and panics fails the run, and leaves the process.
func TestNewAgentPanics(t *testing.T) {
	bad := func(agent.Config) (agent.Agent, error) { panic("no ladder") }
	requires(t, 2, `build Go agent "climber": panic: no ladder`)(
		called(t, []Option{NewAgent("climber", bad)}, "run", "climber"))
}

// A loop in Go has its limits in its code, and the name of a program may have any character.
func TestGoLoopHasItsLimitInTheCode(t *testing.T) {
	opts := []Option{Config{Name: "two$1"}, NewAgent("climber", func(cfg agent.Config) (agent.Agent, error) { return agent.New(cfg) })}
	store := "sqlite:" + filepath.Join(t.TempDir(), "runs.db")
	requires(t, 0, "two$1 show climb --store "+store+"\n")(called(t, opts, "run", "climber", "--session", "climb", "--store", store))
	requires(t, 2, "a loop in Go has its limit in the code")(
		called(t, opts, "resume", "climb", "--store", store, "--add-iterations", "1"))
	requires(t, 2, "max iterations given, but the definition has no loop; a loop in Go has its limits in its code")(
		called(t, opts, "run", "climber", "--max-iterations", "2"))
}

// What a program prints to stdout for people and for other programs names the commands that they can type.
func TestHintsOnStdoutNameTheProgramAndItsStore(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "runs.db")
	opts := []Option{Config{Name: "bakery"}, Definition("{name: ask, type: human, question: May I?}"),
		Definition("{name: talk, model: scripted/s.yaml, instructions: \"Answer {{user_input}}.\"}")}
	requires(t, 4, `"Answer with: bakery answer a1 --store `+store)(
		called(t, opts, "run", "ask", "--session", "a1", "--store", store, "--json"))
	for _, verb := range []string{"answer", "show"} {
		requires(t, 0, "Answer with: bakery answer a1 --store "+store)(called(t, opts, verb, "a1", "--store", store))
	}
	// A run may have any name, and the text around it stays as it is.
	requires(t, 4, "Answer with: bakery answer team@42:b --store "+store+" yes|no")(
		called(t, opts, "run", "ask", "--session", "team@42:b", "--store", store))
	requires(t, 0, "Answer with: bakery answer team@42:b --store "+store+" yes|no")(called(t, opts, "show", "team@42:b", "--store", store))
	requires(t, 2, "no definition is given; write: bakery console FILE")(called(t, opts, "console"))
	requires(t, 0, "bakery check loop.yaml", "bakery run loop.yaml")(called(t, opts, "init", "retry", "new"))
	requires(t, 0, `Write: bakery run talk "REQUEST"`)(called(t, opts, "check", "talk"))
}

// silent is a model that breaks its contract.
type silent struct{ model.LLM }

func (silent) Name() string { return "silent" }

func (silent) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(func(*model.LLMResponse, error) bool) {}
}

// A provider of the program that panics or gives nothing fails the run, and not the process, which may drive other runs.
func TestModelsOfAProgramThatFail(t *testing.T) {
	opts := []Option{
		Model("loud", func(context.Context, string) (model.LLM, error) { panic("no key") }),
		Model("none", func(context.Context, string) (model.LLM, error) { return nil, nil }),
		Model("silent", func(context.Context, string) (model.LLM, error) { return silent{}, nil }),
	}
	for name, want := range map[string]string{
		"loud/a": "panic: no key", "none/a": "neither a model nor an error", "silent/a": "the model gave no response",
	} {
		code := 2
		if name == "silent/a" {
			code = 1
		}
		own := append([]Option{Definition("{name: talk, model: " + name + ", instructions: Answer., query: Hello.}")}, opts...)
		requires(t, code, want)(called(t, own, "run", "talk"))
		opts = nil // they are registered for the process
	}
	// A run whose model failed continues with another one.
	store, talk := "sqlite:"+filepath.Join(t.TempDir(), "runs.db"), Definition("{name: talk, model: silent/a, instructions: Answer., query: Hello.}")
	requires(t, 1, "the model gave no response")(called(t, []Option{talk}, "run", "talk", "--session", "s1", "--store", store))
	requires(t, 0, "Another script.")(called(t, []Option{talk}, "resume", "s1", "--store", store, "--retry", "--model", "scripted/script.yaml"))
}

// A panic of a Go agent names its place, and a console knows the inputs of the definition before the first line.
func TestPanicAndConsoleOfAProgram(t *testing.T) {
	loud := NewAgent("loud", func(cfg agent.Config) (agent.Agent, error) {
		cfg.Run = func(agent.InvocationContext) iter.Seq2[*session.Event, error] { panic("oh no") }
		return agent.New(cfg)
	})
	requires(t, 1, "panic: oh no", "The panic was in github.com/refrain-dev/refrain/command.TestPanicAndConsoleOfAProgram", "option_test.go:")(
		called(t, []Option{loud}, "run", "loud"))
	asks := Definition("{name: talk, inputs: {dog: {type: string}}, text: \"{{dog}} {{user_input}}\"}")
	requires(t, 2, `input "dog" (string) is required`)(called(t, []Option{asks}, "console"))
	t.Chdir(t.TempDir())
	var out, errs strings.Builder
	code := run(t.Context(), []Option{asks}, []string{"console", "--set", "dog=Rex"}, func(string) string { return "" },
		strings.NewReader("barks\n"), &out, &errs)
	requires(t, 0, "Rex barks")(code, out.String(), errs.String())
}

// A program knows its code, so a name that it does not have is an error before the run.
func TestProgramChecksTheNamesOfItsCode(t *testing.T) {
	agents := NewAgent("judge", func(cfg agent.Config) (agent.Agent, error) { return agent.New(cfg) })
	misspelled := `name: loop
max_iterations: 1
callbacks: {after_run: [{func: gate}]}
sub_agents:
  - {name: a, func: jugde}
  - {name: b, model: scripted/s.yaml, instructions: "Measure {{mark}}.", tools: [mesure]}
`
	for _, verb := range []string{"validate", "check"} {
		requires(t, 2, `there is no Go agent "jugde"`, `did you mean "judge"?`, `there is no function "mesure"`,
			`there is no callback function "gate"`, `warning: {{mark}} is read here but no agent writes it`,
			"if Go code writes it, declare it under state")(called(t, []Option{agents, Definition(misspelled)}, verb, "loop"))
	}
}

// The description of an agent is that of the definition that runs it, by which clients choose.
func TestGoAgentsKeepTheirDescriptions(t *testing.T) {
	a, err := agent.New(agent.Config{Name: "judge", Description: "Scores a \"draft\".\nFrom 0 to 10."})
	if err != nil {
		t.Fatal(err)
	}
	var o options
	Agent(a).apply(&o)
	own, err := o.code.Own()
	if err != nil {
		t.Fatal(err)
	}
	def, err := new(program.Program).ReadOwn("judge", own["judge"])
	if err != nil || def.Description != a.Description() {
		t.Errorf("got %q, %v", def.Description, err)
	}
}

// Each step that names a constructor has an agent of its own, with the name of the step.
func TestNewAgentIsMadeForEachStep(t *testing.T) {
	twin := func(cfg agent.Config) (agent.Agent, error) {
		calls := 0
		cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				calls++
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content = genai.NewContentFromText(strings.Repeat(ctx.Agent().Name(), calls), genai.RoleModel)
				yield(ev, nil)
			}
		}
		return agent.New(cfg)
	}
	text := `name: twins
max_iterations: 1
sub_agents:
  - {name: a, type: func, func: twin, output_key: a}
  - {name: b, type: func, func: twin, output_key: b}
  - {name: both, text: "{{a}} and {{b}}."}
`
	requires(t, 0, "a and b.")(called(t, []Option{NewAgent("twin", twin), Definition(text)}, "run", "twins"))
}

// The program refrain-temporal has no code of another program, so that it cannot drive its runs.
func TestProgramWithoutClusterRefusesTemporal(t *testing.T) {
	own := []Option{Config{Name: "bakery"}, Definition("name: bake\ntext: Done.\n")}
	for _, args := range [][]string{
		{"run", "bake", "--temporal", "localhost:7233"},
		{"resume", "last", "--temporal", "localhost:7233"},
		{"worker", "--store", "postgres://localhost/runs"},
	} {
		requires(t, 2, "the program bakery is built without the SDK of Temporal", "command.Config{Cluster: cluster.Temporal{}}")(
			called(t, own, args...))
	}
}

// A provider of models is code of the program, which therefore has the name of its executable.
func TestProgramWithAModelHasItsName(t *testing.T) {
	open := func(context.Context, string) (model.LLM, error) { return nil, errors.New("closed") }
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	requires(t, 0, "Usage:\n  "+name+" ")(called(t, []Option{Model("kiosk", open)}, "--help"))
}

// An agent has in definitions and on the command line a name that a definition can have, and its description.
func TestAgentWithABlankInItsName(t *testing.T) {
	a, err := agent.New(agent.Config{Name: "count up", Description: "Counts to four.", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := new(session.Event)
			ev.Content = genai.NewContentFromText("one, two, three, four", genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	requires(t, 0, "one, two, three, four")(called(t, []Option{Agent(a)}, "run", "count_up", "Go.", "--store", "memory"))
	requires(t, 0, "four")(called(t, []Option{Agent(a), Definition("name: x\nsub_agents: [{name: a, type: func, func: count_up}]\ntype: sequential\n")},
		"run", "x", "Go.", "--store", "memory"))
}
