// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/template"
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
			`command agent ""`, "needs a name", `OutputKey and ResultKey are both "k"`, "ExitReason: 1:1", "ExitReason is set, but no ExitWhen",
			"Args[0]: the program's name has a placeholder", "Args[1]: 1:1", "Stdin: 1:1", `Env["A=B"]`, "OutputLimit is negative", "Timeout is negative", "Dir: 1:1",
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

// D4: no value of the state is ever code: neither a program's name nor the script
// of a shell.
func TestPlaceholdersInCodeAreRefused(t *testing.T) {
	for _, tt := range []struct {
		args    []string
		refused bool
	}{
		{[]string{"{{program}}"}, true},
		{[]string{"run-{{program}}"}, true},
		{[]string{"sh", "-c", "echo {{x}}"}, true},
		{[]string{"/bin/bash", "-euo", "pipefail", "-c", "echo {{x}}"}, true},
		{[]string{"sh", "-{{options}}", "echo"}, true},
		{[]string{"sh", "{{script}}"}, true},
		{[]string{"env", "A=b", "sh", "-c", "echo {{x}}"}, true},
		{[]string{`C:\Windows\System32\cmd.exe`, "/c", "dir", "{{x}}"}, true},
		{[]string{"sh", "-c", `echo "$1"`, "sh", "{{x}}"}, false},
		{[]string{"sh", "script.sh", "-c", "{{x}}"}, false},
		{[]string{"grep", "sh", "-c", "{{x}}"}, false},
		{[]string{"env", "A={{x}}", "printenv"}, false},
		{[]string{"sh"}, false},
	} {
		_, err := taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "c"}, Args: tt.args})
		if refused := err != nil; refused != tt.refused {
			t.Errorf("%q: refused is %t: %v", tt.args, refused, err)
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
