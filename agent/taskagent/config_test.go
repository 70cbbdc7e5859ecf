// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"strings"
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
		cfg     taskagent.CommandConfig
		refused bool
	}{
		{commandOf("{{program}}"), true},
		{commandOf("run-{{program}}"), true},
		{commandOf("sh", "-c", "echo {{x}}"), true},
		{commandOf("/bin/bash", "-euo", "pipefail", "-c", "echo {{x}}"), true},
		{commandOf("sh", "-{{options}}", "echo"), true},
		{commandOf("sh", "{{script}}"), true},
		{commandOf("env", "A=b", "sh", "-c", "echo {{x}}"), true},
		{commandOf(`C:\Windows\System32\cmd.exe`, "/c", "dir", "{{x}}"), true},
		{commandOf("find", ".", "-exec", "sh", "-c", "{{x}}", ";"), true},
		{commandOf("docker", "exec", "box", "sh", "-c", "{{x}}"), true},
		{commandOf("rbash", "-c", "{{x}}"), true},
		{commandOf("su", "-c", "{{x}}"), true},
		{commandOf("script", "-c", "{{x}}", "out"), true},
		{commandOf("flock", "lock", "-c", "{{x}}"), true},
		{commandOf("ssh", "host", "{{x}}"), true},
		{commandOf("python3", "-c", "{{x}}"), true},
		{commandOf("python3.12", "-c", "{{x}}"), true},
		{commandOf("perl", "-e", "print 1", "{{x}}"), true},
		{commandOf("awk", "{{x}}"), true},
		{commandOf("nu", "-c", "{{x}}"), true},
		{commandOf("ghc", "-e", "{{x}}"), true},
		{commandOf("dbus-launch", "{{x}}"), true},
		{commandOf("/lib64/ld-linux-x86-64.so.2", "{{x}}"), true},
		{commandOf("/lib/ld-musl-aarch64.so.1", "{{x}}"), true},
		{commandOf("/libexec/ld-elf.so.1", "{{x}}"), true},
		{commandOf("make", "{{x}}"), true},
		{commandOf("tar", "--to-command={{x}}"), true},
		{commandOf("cat", "{{work}}/{{file}}"), true},
		{commandOf("cat", "{{#x}}--option{{/x}}"), true},
		{commandOf("env", "A={{x}}", "printenv"), true},
		{taskagent.CommandConfig{Args: []string{"sh"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"bash", "-s", "x"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"sh", "/dev/stdin"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"python3"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"python3", "-"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"env", "sh"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"awk", "-f", "/dev/stdin"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"sqlite3", "a.db"}, Stdin: "{{x}}"}, true},
		{taskagent.CommandConfig{Args: []string{"tool"}, Env: map[string]string{"BASH_ENV": "{{x}}"}}, true},
		{taskagent.CommandConfig{Args: []string{"tool"}, Env: map[string]string{"LD_PRELOAD": "{{x}}"}}, true},
		{taskagent.CommandConfig{Args: []string{"tool"}, Env: map[string]string{"path": "{{x}}"}}, true},

		{commandOf("sh", "-c", `echo "$1"`, "sh", "{{x}}"), false},
		{commandOf("bash", "-eu", "-o", "pipefail", "-c", `echo "$1"`, "sh", "a={{x}}"), false},
		{commandOf("sh", "script.sh", "-c", "{{x}}"), false},
		{commandOf("python3", "score.py", "{{x}}"), false},
		{commandOf("python3", "-u", "-c", "import sys", "{{x}}"), false},
		{commandOf("grep", "sh", "-c", "{{x}}"), false},
		{commandOf("tool", "{{ x }}", "{{{x}}}", "{{x?}}"), false},
		{commandOf("sh"), false},
		{taskagent.CommandConfig{Args: []string{"sh"}, Stdin: "echo hello"}, false},
		{taskagent.CommandConfig{Args: []string{"wc", "-w"}, Stdin: "{{x}}"}, false},
		{taskagent.CommandConfig{Args: []string{"sh", "-c", "cat"}, Stdin: "{{x}}"}, false},
		{taskagent.CommandConfig{Args: []string{"sed", "-e", "s/a/b/"}, Stdin: "{{x}}"}, false},
		{taskagent.CommandConfig{Args: []string{"tool"}, Env: map[string]string{"TASK": "{{x}}", "LD_PRELOAD": "fixed"}}, false},
	} {
		tt.cfg.Config = taskagent.Config{Name: "c"}
		_, err := taskagent.NewCommand(tt.cfg)
		if refused := err != nil; refused != tt.refused {
			t.Errorf("%q %v: refused is %t: %v", tt.cfg.Args, tt.cfg.Env, refused, err)
		}
		tt.cfg.Unsafe = true
		made, err := taskagent.NewCommand(tt.cfg)
		switch program := strings.Contains(tt.cfg.Args[0], "{{"); {
		case (err != nil) != program:
			t.Errorf("%q, unsafe: %v", tt.cfg.Args, err)
		case err == nil && made.(*taskagent.CommandAgent).NeedsUnsafe() != tt.refused:
			t.Errorf("%q: NeedsUnsafe is %t", tt.cfg.Args, !tt.refused)
		}
	}
}

func commandOf(args ...string) taskagent.CommandConfig { return taskagent.CommandConfig{Args: args} }

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
