// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/text/template"
)

func ref(name string) template.Ref { return template.Ref{Name: name} }

// G5: a config is checked when the agent is made, and every problem is said at
// once.
func TestEveryProblemOfAConfigIsReported(t *testing.T) {
	for _, tt := range []struct {
		name string
		new  func() (agent.Agent, error)
		want []string
	}{
		{"command", func() (agent.Agent, error) {
			return taskagent.NewCommand(taskagent.CommandConfig{
				Config: taskagent.Config{OutputKey: "k", ResultKey: "k", ExitReason: "{{#x}}"},
				Args:   []string{"{{program}}", "{{#a}}"}, Stdin: "{{/b}}", Env: map[string]string{"A=B": ""},
				OutputLimit: -1, Timeout: -1, Dir: "{{#d}}",
			})
		}, []string{
			`command agent ""`, "has no name", `OutputKey and ResultKey are both "k"`, "ExitReason: 1:1", "ExitReason is set, but no ExitWhen",
			"Args[0]: the program's name has the placeholder {{program}}", "Args[1]: 1:1", "Stdin: 1:1", `Env["A=B"]`, "OutputLimit is negative", "Timeout is negative", "Dir: 1:1",
		}},
		{"no program", func() (agent.Agent, error) {
			return taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "c"}})
		}, []string{"Args has no program"}},
		{"HTTP", func() (agent.Agent, error) {
			return taskagent.NewHTTP(taskagent.HTTPConfig{
				Config: taskagent.Config{Name: "h", ExitWhen: "result.status"}, Method: "GET IT", URL: "http://x/{{#a}}{{/a}}",
				Headers: map[string]string{"A:B": "", "host": "x"}, Body: "x", BodyJSON: map[string]any{"f": func() {}},
				Timeout: -1, SizeLimit: -1,
			})
		}, []string{
			"Method", "a URL cannot have sections", `Headers["A:B"]`, `Headers["host"]: the URL says`, "both Body and BodyJSON",
			"BodyJSON: json: unsupported type", "Timeout is negative", "SizeLimit is negative",
		}},
		{"expression", func() (agent.Agent, error) {
			return taskagent.NewExpression(taskagent.ExpressionConfig{
				Config: taskagent.Config{Name: "e", OutputKey: "n", ExitWhen: "iteration"},
				Set:    map[string]string{"": "1", "n": "1 +", "value": "stat.x", "e": ""}, Value: "result.x",
			})
		}, []string{
			`Set[""]: the key is empty`, `Set["n"]: 1:`, `Set["n"]: OutputKey`, `Set["value"]: the result already`, "stat", `Set["e"]: the expression is empty`,
			"Value: 1:1", "ExitWhen: iteration is of type int, not true or false",
		}},
		{"nothing to do", func() (agent.Agent, error) {
			return taskagent.NewExpression(taskagent.ExpressionConfig{Config: taskagent.Config{Name: "e"}})
		}, []string{"there is nothing to do"}},
		{"no value", func() (agent.Agent, error) {
			return taskagent.NewExpression(taskagent.ExpressionConfig{Config: taskagent.Config{Name: "e", OutputKey: "x"}, Set: map[string]string{"n": "1"}})
		}, []string{"OutputKey is set, but no Value"}},
		{"value for nobody", func() (agent.Agent, error) {
			return taskagent.NewExpression(taskagent.ExpressionConfig{Config: taskagent.Config{Name: "e"}, Value: "1"})
		}, []string{"Value is set, but no OutputKey"}},
		{"text", func() (agent.Agent, error) {
			return taskagent.NewText(taskagent.TextConfig{Config: taskagent.Config{Name: "user"}})
		}, []string{"Text is empty", `cannot be named "user"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := tt.new()
			if a != nil {
				t.Error("there is an agent")
			}
			has(t, err, tt.want...)
		})
	}
}

// D4: a value stands in an argument or in a setting only if its shape is declared; text of any content does not, whatever the
// program is.
func TestValuesNeedAShape(t *testing.T) {
	env := func(name, value string) taskagent.CommandConfig {
		return taskagent.CommandConfig{Args: []string{"tool"}, Env: map[string]string{name: value}}
	}
	stdin := func(args ...string) taskagent.CommandConfig {
		return taskagent.CommandConfig{Args: args, Stdin: "{{x}}"}
	}
	for _, tt := range []struct {
		cfg     taskagent.CommandConfig
		refused bool
	}{
		{commandOf("{{x}}"), true},
		{commandOf("run-{{n}}"), true}, // a number is no choice
		{commandOf("run-{{iteration}}"), true},
		{commandOf("echo", "{{x}}"), true},
		{commandOf("echo", "--x={{x}}"), true},
		{commandOf("echo", "{{x?}}"), true},
		{commandOf("echo", "{{prev.x}}"), true},
		{commandOf("echo", "{{n.x}}"), true},
		{commandOf("echo", "{{user_input}}"), true},
		{commandOf("echo", "{{rejected.reason}}"), true},
		{commandOf("echo", "{{artifact.a.txt}}"), true},
		{commandOf("echo", "{{app:tone}}"), true},
		{commandOf("echo", "{{#x}}--option{{/x}}"), true},
		{commandOf("echo", "{{#x}}{{.}}{{/x}}"), true},
		{commandOf("echo", "{{#n}}{{x}}{{/n}}"), true},
		{commandOf("echo", "{{^x}}none{{/x}}"), true},
		{commandOf("sh", "-c", `echo "$1"`, "sh", "{{x}}"), true},
		{commandOf("python3", "score.py", "{{x}}"), true},
		{env("LD_PRELOAD", "{{x}}"), true},
		{env("TASK", "{{x}}"), true},
		{env("INPUT_", "{{x}}"), true},
		{env("input_x", "{{x}}"), true},
		{stdin("sh"), true},
		{stdin("choom", "-n", "0", "--", "sh"), true},

		{commandOf("run-{{choice}}"), false},
		{commandOf("echo", "{{n}}", "-{{n}}", "--n={{n}}.{{m}}", "{{prev.n}} {{best.n}} {{rejected.n}}"), false},
		{commandOf("echo", "{{deep.n}}"), false},
		{commandOf("echo", "{{iteration}}", "{{max_iterations}} {{remaining_iterations}} {{is_first_iteration}} {{is_last_iteration}}"), false},
		{commandOf("echo", "{{score}}", "{{best.score}}", "{{elapsed}}"), false},
		{commandOf("echo", "{{yes}}", "{{choice}}", "{{word}}", "a{{word}}.bak", "{{file}}", "--f={{file}}"), false},
		{commandOf("echo", "a/{{file}}"), true},
		{commandOf("echo", "{{file}}.bak"), true},
		{commandOf("echo", "a --f={{file}}"), true},
		{commandOf("sh", "-c", "cat '{{file}}'"), true},
		{commandOf("sh", "-c", "{{word}}"), true},
		{commandOf("sh", "-c", "{{n}} {{choice}} {{yes}} {{iteration}} {{elapsed}}"), false},
		{commandOf("{{shell}}", "-c", "{{word}}"), true},
		{env("BASH_ENV", "{{file}}"), true},
		{commandOf("echo", "{{#yes}}--verbose={{.}}{{/yes}}{{^yes}}--quiet{{/yes}}"), false},
		{commandOf("sh"), false},
		{env("LEVEL", "{{n}}"), false},
		{env("INPUT_X", "{{x}} {{app:tone}}"), false},
		{env("LD_PRELOAD", "fixed"), false},
		{stdin("wc", "-w"), false},
		{stdin("sh", "-c", "cat"), false},
	} {
		tt.cfg.Config = taskagent.Config{Name: "c"}
		tt.cfg.Shapes = map[string]taskagent.Shape{
			"n": {Type: taskagent.ShapeInt}, "m": {Type: taskagent.ShapeNumber}, "yes": {Type: taskagent.ShapeBool}, "choice": {Choices: []string{"a"}}, "shell": {Choices: []string{"true", "sh"}},
			"word": {Pattern: "[a-z]+"}, "file": {Type: taskagent.ShapeFile}, "deep.n": {Type: taskagent.ShapeInt},
		}
		_, err := taskagent.NewCommand(tt.cfg)
		if refused := err != nil; refused != tt.refused {
			t.Errorf("%q %v: refused is %t: %v", tt.cfg.Args, tt.cfg.Env, refused, err)
		}
		if shape, ok := errors.AsType[*taskagent.ShapeError](err); tt.refused && tt.cfg.Stdin == "" && (!ok || shape.Name == "") {
			t.Errorf("%q: %v", tt.cfg.Args, err)
		}
		tt.cfg.Unsafe = true
		made, err := taskagent.NewCommand(tt.cfg)
		if err != nil {
			t.Errorf("%q, unsafe: %v", tt.cfg.Args, err)
		} else if made.(*taskagent.CommandAgent).NeedsUnsafe() != tt.refused {
			t.Errorf("%q: NeedsUnsafe is %t", tt.cfg.Args, !tt.refused)
		}
	}
}

func commandOf(args ...string) taskagent.CommandConfig { return taskagent.CommandConfig{Args: args} }

// D4: what the values of each shape are.
func TestShapes(t *testing.T) {
	number, whole, yes := taskagent.Shape{Type: taskagent.ShapeNumber}, taskagent.Shape{Type: taskagent.ShapeInt}, taskagent.Shape{Type: taskagent.ShapeBool}
	file, word := taskagent.Shape{Type: taskagent.ShapeFile}, taskagent.Shape{Pattern: "a|b+"}
	choice := taskagent.Shape{Choices: []string{"low", "-v", "3"}}
	small := taskagent.Shape{Type: taskagent.ShapeInt, Pattern: "[1-9]"}
	for _, tt := range []struct {
		shape taskagent.Shape
		value any
		want  string // "" if the value has the shape
	}{
		{number, 3, ""}, {number, -0.5, ""}, {number, int64(1) << 60, ""}, {number, "7", ""}, {number, "-7.25e3", ""},
		{number, "x", `must be a number, got "x"`}, {number, "1\n", "must be a number"}, {number, "", "must be a number"}, {number, math.NaN(), "must be a number"},
		{number, []any{1}, "must be a number"}, {number, map[string]any{"a": 1}, "must be a number"}, {number, true, "must be a number, got true"},
		{whole, 1e6, ""}, {whole, 1.5, "must be a whole number, got 1.5"}, {whole, "0x1", "must be a whole number"},
		{yes, true, ""}, {yes, "false", ""}, {yes, "yes", `must be true or false, got "yes"`}, {yes, 1, "must be true or false"},
		{word, "a", ""}, {word, "bbb", ""}, {word, "ab", `must be text that matches a|b+, got "ab"`}, {word, "a\n", "must be text"}, {word, "xa", "must be text"},
		{choice, "low", ""}, {choice, "-v", ""}, {choice, 3, ""}, {choice, "Low", `must be one of low, -v, 3, got "Low"`}, {choice, "", "must be one of"},
		{small, 7, ""}, {small, 10, "must be a whole number, text that matches [1-9]"},
		{file, "a.txt", ""}, {file, "a/b c.txt", ""}, {file, "a..b", ""}, {file, "/etc/passwd", "it is empty or absolute"}, {file, "../x", "has .. in it"},
		{file, "a/../b", "has .. in it"}, {file, "", "it is empty"}, {file, "-rf", ""}, {file, "a$(id)", "a program may read"}, {file, "a${x}", "a program may read"}, {file, "$id.tsx", ""}, {file, "a\x00b", "zero byte"}, {file, 7, ""},
		{word, strings.Repeat("x", 5000), "xxx…"},
	} {
		err := tt.shape.Check(tt.value)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, %q: %v, want %q", tt.shape, tt.value, err, tt.want)
		}
	}
}

// The config can be looked at, and later changes of it have no effect.
func TestConfigIsKept(t *testing.T) {
	args := []string{"echo", "hello"}
	a := must(taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "c", Description: "says hello"}, Args: args}))
	args[1] = "goodbye"
	cfg := a.(*taskagent.CommandAgent).Config()
	equal(t, "args", []string{"echo", "hello"}, cfg.Args)
	equal(t, "limit", int64(1<<20), cfg.OutputLimit)
	equal(t, "exit codes", []int{0}, cfg.OKExitCodes)
	equal(t, "description", "says hello", a.Description())
}

// D4: what a pattern lets through is found in the pattern, whatever stands around it.
func TestPatternPermits(t *testing.T) {
	const all = "a dash at the beginning, a semicolon, $(x), a backtick, |, &, <, >, a single quote, a double quote, a backslash, a line break, a blank, ../"
	for pattern, want := range map[string]string{
		"[a-z]+": "", "[a-z]+-[0-9]+": "", `v\d+(\.\d+){2}`: "", "a|b+": "", "(?i)fast|slow": "", `\w+(/\w+)*`: "", `[A-Za-z0-9][\w.]*`: "",
		"(?s).*": all, "(?s)a.*b": strings.TrimPrefix(all, "a dash at the beginning, "), ".+": strings.Replace(all, "a line break, ", "", 1),
		"[^-].*":  strings.Replace(strings.TrimPrefix(all, "a dash at the beginning, "), "a line break, ", "a line break, ", 1),
		"[^;]{3}": strings.Replace(all, "a semicolon, ", "", 1), `[\w./-]+`: "a dash at the beginning, ../", "[a-z]+( [a-z]+)?": "a blank", `\$[(]x[)]`: "$(x)",
		"a;?b": "a semicolon", `x\n?`: "a line break", `\s`: "a line break, a blank", `(a|b\|c)`: "|",
	} {
		if got := strings.Join((taskagent.Shape{Pattern: pattern}).Permits(), ", "); got != want {
			t.Errorf("%s permits %q, want %q", pattern, got, want)
		}
	}
	for _, shape := range []taskagent.Shape{{}, {Type: taskagent.ShapeInt, Pattern: ".*"}, {Choices: []string{"a;b"}}, {Type: taskagent.ShapeFile}} {
		if got := shape.Permits(); got != nil {
			t.Errorf("%+v permits %q", shape, got)
		}
	}
}
