// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/testkit/standin"
	"github.com/refrain-dev/refrain/session"
)

// fake puts a program of a name into PATH that takes its prompt and then runs lines of shell. It returns its folder,
// where it writes its arguments and its prompt.
func fake(t *testing.T, program, lines string) string {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\ncd '" + dir + "'\nprintf '%s\\n' \"$@\" >args\ncat >prompt\n" + lines + "\n"
	if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// recording is a line of shell that prints what a real program has printed, and exits as it did.
func recording(t *testing.T, name string, code int) string {
	t.Helper()
	path, err := filepath.Abs("internal/codingcli/testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return "cat '" + path + "'; exit " + strconv.Itoa(code)
}

func asked(t *testing.T, cli taskagent.CLI, more ...func(*taskagent.CommandConfig)) *ran {
	t.Helper()
	cfg := taskagent.CommandConfig{Stdin: "Mend it: {{tested}}", CLI: &cli}
	for _, f := range more {
		f(&cfg)
	}
	return command(t, cfg, map[string]any{"tested": "-x 'not' $(ok)"})
}

// D1: a wrapper of a program is started with its own arguments, and its report is read as that of the program.
func TestCodingAgentHasAWrapper(t *testing.T) {
	dir := fake(t, "my-claude", recording(t, "claude-2.1.197/ok", 0))
	r := asked(t, taskagent.CLI{Program: "claude", Wrapper: []string{"my-claude", "--profile", "a b"}, Args: []string{"--effort", "high"}})
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got := text(t, dir, "args"); !strings.HasPrefix(got, "--profile\na b\n-p\n") || !strings.Contains(got, "--effort\nhigh\n") {
		t.Errorf("the wrapper gets the arguments %q", got)
	}
}

// D1, D2: what a coding agent reports decides, not its exit code and not its words.
func TestCodingAgentReports(t *testing.T) {
	for _, tt := range []struct {
		cli       taskagent.CLI
		recording string
		code      int
		outcome   string
		err       string // "" if the step goes on
		permanent bool
	}{
		{taskagent.CLI{Program: "claude"}, "claude-2.1.197/ok", 0, "ok", "", false},
		{taskagent.CLI{Program: "claude", MaxTurns: 1}, "claude-2.1.197/turns", 1, "partial", "", false},
		{taskagent.CLI{Program: "claude"}, "claude-2.1.197/denied", 0, "denied", "claude: it was not allowed to use Write; give it permissions: all", true},
		{taskagent.CLI{Program: "claude", Denied: "allow"}, "claude-2.1.197/denied", 0, "denied", "", false},
		{taskagent.CLI{Program: "claude"}, "claude-2.1.197/not_configured", 1, "not_configured", "run claude once and sign in, or set ANTHROPIC_API_KEY", true},
		{taskagent.CLI{Program: "claude"}, "claude-2.1.197/limited", 1, "limited", "its provider takes no more requests for now", false},
		{taskagent.CLI{Program: "claude"}, "claude-2.1.197/cut", 0, "no_result", "it ended without a result", false},
		{taskagent.CLI{Program: "codex"}, "codex-0.169.0/ok", 0, "ok", "", false},
		{taskagent.CLI{Program: "codex"}, "codex-0.169.0/limited", 1, "failed", "429 Too Many Requests", false},
	} {
		t.Run(tt.recording, func(t *testing.T) {
			dir := fake(t, tt.cli.Program, recording(t, tt.recording, tt.code))
			got := asked(t, tt.cli)
			equal(t, "prompt", "Mend it: -x 'not' $(ok)", text(t, dir, "prompt"))
			result, _ := got.state["all"].(map[string]any)
			equal(t, "outcome", any(tt.outcome), result["outcome"])
			if tt.err == "" {
				equal(t, "error", nil, got.err)
				return
			}
			has(t, got.err, tt.err)
			failed, ok := errors.AsType[*taskagent.CLIError](got.err)
			if !ok || failed.Permanent() != tt.permanent || got.state["out"] != nil {
				t.Errorf("got %#v, output %v", got.err, got.state["out"])
			}
		})
	}
}

// An agent that came to a limit after it was denied a tool was denied.
func TestCodingAgentIsDeniedAndPartial(t *testing.T) {
	fake(t, "claude", `echo '{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":2,`+
		`"permission_denials":[{"tool_name":"Bash"}]}'; exit 1`)
	got := asked(t, taskagent.CLI{Program: "claude"})
	has(t, got.err, "it was not allowed to use Bash")
	equal(t, "outcome", any("denied"), got.state["all"].(map[string]any)["outcome"])
	got = asked(t, taskagent.CLI{Program: "claude", Denied: "allow"})
	equal(t, "error", nil, got.err)
	equal(t, "outcome", any("partial"), got.state["all"].(map[string]any)["outcome"])
}

// A program that is not there is not tried again, and the error says how to get it.
func TestCodingAgentIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := asked(t, taskagent.CLI{Program: "claude"}).err
	has(t, err, "install it with npm install -g @anthropic-ai/claude-code, or put its folder into PATH")
	if p, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err); !ok || !p.Permanent() || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %#v", err)
	}
}

// What a program has cost is in the event of its step; what it does not report is unknown, and not zero.
func TestCodingAgentUsage(t *testing.T) {
	fake(t, "claude", recording(t, "claude-2.1.197/ok", 0))
	got := asked(t, taskagent.CLI{Program: "claude"})
	result := got.state["all"].(map[string]any)
	equal(t, "cost", any(0.0015), result["cost"])
	equal(t, "turns", any(2.0), result["turns"])
	equal(t, "files", any([]any{"/work/a.txt"}), result["files"])
	equal(t, "more files", any(0.0), result["more_files"])
	if u := got.events[0].UsageMetadata; u == nil || u.PromptTokenCount != 200 || u.CandidatesTokenCount != 20 {
		t.Errorf("got the usage %+v", u)
	}
	fake(t, "codex", recording(t, "codex-0.169.0/ok", 0))
	result = asked(t, taskagent.CLI{Program: "codex"}).state["all"].(map[string]any)
	equal(t, "input", any(200.0), result["input_tokens"])
	equal(t, "cost", nil, result["cost"])
	fake(t, "claude", recording(t, "claude-2.1.197/cut", 0))
	got = asked(t, taskagent.CLI{Program: "claude"})
	result = got.state["all"].(map[string]any)
	equal(t, "input of an answer that was cut", nil, result["input_tokens"])
	equal(t, "files of it", any([]any{}), result["files"])
	if ev := got.events[0]; ev.UsageMetadata != nil || ev.ModelVersion == "" {
		t.Errorf("got %+v", ev)
	}
}

// The config becomes the program's own arguments. It gets the keys that it documents, and no others.
func TestCodingAgentIsStarted(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, "secret of "+name)
	}
	print := "env >env; "
	dir := fake(t, "claude", print+recording(t, "claude-2.1.197/ok", 0))
	got := asked(t, taskagent.CLI{Program: "claude", Model: "opus", Permissions: "all", MaxTurns: 7, MaxCost: 1.5, Args: []string{"--add-dir", "{{x}}"}})
	equal(t, "error", nil, got.err)
	equal(t, "args", "-p\n--output-format\nstream-json\n--verbose\n--permission-mode\nbypassPermissions\n--model\nopus\n"+
		"--max-turns\n7\n--max-budget-usd\n1.5\n--add-dir\n{{x}}\n", text(t, dir, "args"))
	if env := text(t, dir, "env"); !strings.Contains(env, "secret of ANTHROPIC") || strings.Contains(env, "secret of OPENAI") ||
		strings.Contains(env, "secret of GEMINI") || !strings.Contains(env, "DISABLE_AUTOUPDATER=1") {
		t.Errorf("the environment is\n%s", env)
	}
	dir = fake(t, "codex", print+recording(t, "codex-0.169.0/ok", 0))
	equal(t, "error", nil, asked(t, taskagent.CLI{Program: "codex", Permissions: "read"}).err)
	equal(t, "args", "exec\n--json\n--skip-git-repo-check\n-s\nread-only\n-c\nallow_login_shell=false\n-\n", text(t, dir, "args"))
	if env := text(t, dir, "env"); !strings.Contains(env, "secret of OPENAI") || strings.Contains(env, "secret of ANTHROPIC") {
		t.Errorf("the environment is\n%s", env)
	}
}

// The requests of a coding agent count, and the error says which limit they have come to.
func TestCodingAgentsRequestsAreLimited(t *testing.T) {
	fake(t, "claude", recording(t, "claude-2.1.197/ok", 0))
	a := func() agent.Agent {
		cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}}
		cfg.Name = "c"
		return must(taskagent.NewCommand(cfg))
	}
	equal(t, "error", nil, runAs(t.Context(), t, a(), nil, agent.RunConfig{MaxLLMCalls: 2}).err)
	has(t, runAs(t.Context(), t, a(), nil, agent.RunConfig{MaxLLMCalls: 1}).err,
		"each of the 2 requests of claude to its model counts: too many model calls in one run: the limit is 1; raise it with max_model_calls")
}

// Agents that run at the same time are told together no more than what the run's budget leaves.
func TestCodingAgentsShareABudget(t *testing.T) {
	dir := fake(t, "claude", `while [ $# -gt 0 ]; do [ "$1" = --max-budget-usd ] && echo "$2" >"told.$$"; shift; done
for i in 1 2 3 4 5 6 7 8 9; do set -- told.*; [ $# -ge 3 ] && break; sleep 0.2; done
`+recording(t, "claude-2.1.197/ok", 0))
	var all []agent.Agent
	for _, name := range []string{"a", "b", "c"} {
		cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}}
		cfg.Name = name
		all = append(all, must(taskagent.NewCommand(cfg)))
	}
	p := must(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "p", SubAgents: all}}))
	got := runAs(t.Context(), t, p, nil, agent.RunConfig{Budget: &budget.Limits{Cost: new(6.0)}})
	equal(t, "error", nil, got.err)
	told, err := filepath.Glob(filepath.Join(dir, "told.*"))
	if err != nil || len(told) != 3 {
		t.Fatalf("%d agents were told, %v", len(told), err)
	}
	for _, path := range told {
		equal(t, "told", "2\n", text(t, path))
	}
}

// A coding agent of a Reconcile that cannot be started gives back what it has reserved, as one of a step does.
func TestReconcileReleasesItsReservation(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	find := must(taskagent.NewCommandReconcile(taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}}))
	a := must(agent.New(agent.Config{Name: "a", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(func(*session.Event, error) bool) {
			_, err := find(ctx, agent.Doubt{ID: "call"})
			has(t, err, "claude")
			equal(t, "left", new(6.0), drive.At(ctx).Budget().Remaining().Cost)
		}
	}}))
	equal(t, "error", nil, runAs(t.Context(), t, a, nil, agent.RunConfig{Budget: &budget.Limits{Cost: new(6.0)}}).err)
}

func TestCodingAgentConfig(t *testing.T) {
	for want, cfg := range map[string]taskagent.CommandConfig{
		`"cursor"; there are claude, codex`:   {Stdin: "x", CLI: &taskagent.CLI{Program: "cursor"}},
		"Prompt is empty":                     {CLI: &taskagent.CLI{Program: "claude"}},
		"Args: a CLI does not have it":        {Args: []string{"x"}, Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}},
		"JSON: a CLI does not have it":        {JSON: true, Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}},
		"codex takes no limit of turns":       {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", MaxTurns: 1}},
		"read, edit or all":                   {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", Permissions: "write"}},
		"fail or allow":                       {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", Denied: "no"}},
		"negative":                            {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", IdleTimeout: -1}},
		"OnLimit: wait is reset or stop":      {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", OnLimit: taskagent.OnLimit{Wait: "wait"}}},
		"OnLimit: at_most is for wait: reset": {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", OnLimit: taskagent.OnLimit{AtMost: 1}}},
		"must not be done twice; say stop": {Stdin: "x", CLI: &taskagent.CLI{Program: "codex", OnLimit: taskagent.OnLimit{Wait: "reset"}},
			Config: taskagent.Config{Effect: agent.AtMostOnce}},
	} {
		cfg.Name = "c"
		_, err := taskagent.NewCommand(cfg)
		has(t, err, want)
	}
	t.Setenv("PATH", t.TempDir())
	got := asked(t, taskagent.CLI{Program: "claude"})
	missing, _ := errors.AsType[*taskagent.NoProgramError](got.err)
	if !errors.Is(got.err, exec.ErrNotFound) || missing == nil || !missing.Permanent() || missing.Install == "" {
		t.Errorf("without the program: %v", got.err)
	}
}

// A program that prints much is not ended: the end of its standard error is kept.
func TestCodingAgentPrintsMuch(t *testing.T) {
	fake(t, "codex", "yes 'a warning' | head -c 3000000 >&2; echo the end >&2; yes '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"so\"}}' |\n"+
		"head -n 30000; "+recording(t, "codex-0.169.0/ok", 0))
	got := asked(t, taskagent.CLI{Program: "codex"})
	equal(t, "error", nil, got.err)
	if said := got.state["all"].(map[string]any)["stderr"].(string); !strings.HasSuffix(said, "a warning\nthe end") {
		t.Errorf("the standard error ends with %q", said)
	}
}

// A program that says nothing for too long is ended, and one that hangs after its result has given it.
func TestCodingAgentThatHangs(t *testing.T) {
	idle := taskagent.CLI{Program: "claude", IdleTimeout: 300 * time.Millisecond}
	fake(t, "claude", "sleep 60")
	got := asked(t, idle)
	has(t, got.err, "printed nothing for its idle_timeout of 300ms")
	result := got.state["all"].(map[string]any)
	equal(t, "outcome", any("idle"), result["outcome"])
	equal(t, "cost", nil, result["cost"])
	equal(t, "files", nil, result["files"])

	idle.IdleTimeout = 3 * time.Second
	fake(t, "claude", "for i in $(seq 35); do echo '{}'; sleep 0.1; done; "+recording(t, "claude-2.1.197/ok", 0))
	equal(t, "error of one that goes on", nil, asked(t, idle).err)

	hangs := strings.Replace(recording(t, "claude-2.1.197/ok", 0), "exit 0", "sleep 60", 1)
	fake(t, "claude", hangs)
	equal(t, "error of one that hangs after its result", nil, asked(t, idle).err)
}

// However the step ends, nothing of what the program has started stays, though it has left the group; and it may
// clean up before it is killed.
func TestCodingAgentLeavesNothing(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes are found by their environment on Linux only")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	leaves := "setsid sh -c 'echo $$ >pid; exec sleep 60' >/dev/null 2>&1 & while ! test -s pid; do sleep 0.01; done; "
	for name, lines := range map[string]string{
		"ended":    leaves + recording(t, "claude-2.1.197/ok", 0),
		"canceled": "trap 'echo cleaned >cleaned; exit 143' TERM; " + leaves + "echo >started; while :; do sleep 0.01; done",
	} {
		t.Run(name, func(t *testing.T) {
			dir := fake(t, "claude", lines)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "canceled" {
				go func() {
					for ctx.Err() == nil {
						if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
							cancel()
						}
						time.Sleep(time.Millisecond)
					}
				}()
			}
			cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}}
			cfg.Name = "c"
			_ = run(ctx, t, must(taskagent.NewCommand(cfg)), nil)
			pid, err := strconv.Atoi(strings.TrimSpace(text(t, dir, "pid")))
			if err != nil {
				t.Fatal(err)
			}
			isGone(t, pid)
			if name == "canceled" {
				equal(t, "cleaned", "cleaned\n", text(t, dir, "cleaned"))
			}
		})
	}
}

func acpClaude(permissions string) taskagent.CLI {
	return taskagent.CLI{ACP: []string{"claude-agent-acp"}, Permissions: permissions}
}

// realClaudeAndCodex puts the real programs into PATH, with a home and keys of their own. See .ci/clis.
func realClaudeAndCodex(t *testing.T) {
	t.Helper()
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: the real coding agents are not tried; see make clis")
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	home := standin.OutsideOfTemp(t, "codex")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CODEX_HOME", home)
	t.Setenv("CLAUDE_CODE_MAX_RETRIES", "1")
	t.Setenv("OPENAI_API_KEY", "k")
	t.Setenv("ANTHROPIC_API_KEY", "k")
}

// standinFor starts a server that the program asks in place of its model's, and returns how a step in a folder is told so.
func standinFor(t *testing.T, cli *taskagent.CLI, work string, answers ...standin.Answer) (*standin.Server, func(*taskagent.CommandConfig)) {
	t.Helper()
	server := standin.New(answers...)
	t.Cleanup(server.Close)
	t.Setenv("ANTHROPIC_BASE_URL", server.URL)
	if cli.Program == "codex" {
		cli.Model, cli.Args = "gpt-5", []string{"-c", "model_provider=stub", "-c", `model_providers.stub={name="stub",base_url="` + server.URL +
			`/v1",env_key="OPENAI_API_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`}
	}
	return server, func(c *taskagent.CommandConfig) {
		c.Root, c.Inherit = work, []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_MAX_RETRIES", "CODEX_HOME"}
	}
}

// The real programs do what the recordings say, against a stand-in for their models' servers. See .ci/clis.
func TestRealCodingAgents(t *testing.T) {
	realClaudeAndCodex(t)
	for _, tt := range []struct {
		name    string
		cli     taskagent.CLI
		answers func(file string) []standin.Answer
		outcome string
		wrote   bool
		files   any // that its own edits name
	}{
		{"edits", taskagent.CLI{Program: "claude"}, func(file string) []standin.Answer {
			return []standin.Answer{standin.Write(file, "new"), standin.Say("done")}
		}, "ok", true, []any{"file"}},
		{"denied", taskagent.CLI{Program: "claude", Permissions: "read"}, func(file string) []standin.Answer {
			return []standin.Answer{standin.Write(file, "new"), standin.Say("done")}
		}, "denied", false, []any{}},
		{"turns", taskagent.CLI{Program: "claude", MaxTurns: 1}, func(file string) []standin.Answer {
			return []standin.Answer{standin.Write(file, "new"), standin.Say("done")}
		}, "partial", true, []any{"file"}},
		{"cost", taskagent.CLI{Program: "claude", MaxCost: 1e-6}, func(file string) []standin.Answer {
			return []standin.Answer{standin.Write(file, "new"), standin.Say("done")}
		}, "partial", false, []any{}},
		{"401", taskagent.CLI{Program: "claude"}, func(string) []standin.Answer { return []standin.Answer{standin.Fail(401)} }, "not_configured", false, []any{}},
		{"credit", taskagent.CLI{Program: "claude"}, func(string) []standin.Answer { return []standin.Answer{standin.Fail(402)} }, "not_configured", false, []any{}},
		{"credit 400", taskagent.CLI{Program: "claude"}, func(string) []standin.Answer {
			return []standin.Answer{{Status: 400, Text: "Your credit balance is too low to access the Anthropic API."}}
		}, "not_configured", false, []any{}},
		{"quota", taskagent.CLI{Program: "codex"}, func(string) []standin.Answer {
			return []standin.Answer{{Status: 429, Kind: "insufficient_quota"}}
		}, "limited", false, []any{}},
		{"429", taskagent.CLI{Program: "claude"}, func(string) []standin.Answer { return []standin.Answer{standin.Fail(429)} }, "limited", false, []any{}},
		{"cut", taskagent.CLI{Program: "claude"}, func(string) []standin.Answer {
			return []standin.Answer{{Text: "half", Cut: true}}
		}, "no_result", false, []any{}},
		{"hangs", taskagent.CLI{Program: "claude", IdleTimeout: 10 * time.Second}, func(string) []standin.Answer {
			return []standin.Answer{{Hang: true}}
		}, "idle", false, []any{}},
		{"edits", taskagent.CLI{Program: "codex"}, func(file string) []standin.Answer {
			return []standin.Answer{standin.Shell("echo new >" + filepath.Base(file)), standin.Say("done")}
		}, "ok", true, []any{}},
		{"patch", taskagent.CLI{Program: "codex"}, func(file string) []standin.Answer {
			patch := "*** Begin Patch\n*** Add File: " + filepath.Base(file) + "\n+new\n*** End Patch\n"
			return []standin.Answer{standin.Shell("apply_patch <<'EOF'\n" + patch + "EOF"), standin.Say("done")}
		}, "ok", true, []any{"file"}},
		{"429", taskagent.CLI{Program: "codex"}, func(string) []standin.Answer { return []standin.Answer{standin.Fail(429)} }, "limited", false, []any{}},
		{"401", taskagent.CLI{Program: "codex"}, func(string) []standin.Answer { return []standin.Answer{standin.Fail(401)} }, "not_configured", false, []any{}},
		{"edits", acpClaude("edit"), func(file string) []standin.Answer {
			return []standin.Answer{standin.Write(file, "new"), standin.Say("done")}
		}, "ok", true, []any{"file"}},
		{"denied", acpClaude("read"), func(file string) []standin.Answer {
			return []standin.Answer{standin.Write(file, "new"), standin.Say("done")}
		}, "denied", false, nil},
		{"429", acpClaude("edit"), func(string) []standin.Answer { return []standin.Answer{standin.Fail(429)} }, "failed", false, nil},
		{"hangs", taskagent.CLI{ACP: []string{"claude-agent-acp"}, IdleTimeout: 10 * time.Second}, func(string) []standin.Answer {
			return []standin.Answer{{Hang: true}}
		}, "idle", false, nil},
	} {
		t.Run(tt.cli.Program+strings.Join(tt.cli.ACP, " ")+"/"+tt.name, func(t *testing.T) {
			work := t.TempDir()
			file := filepath.Join(work, "file")
			server, with := standinFor(t, &tt.cli, work, tt.answers(file)...)
			got := asked(t, tt.cli, with, func(c *taskagent.CommandConfig) { c.Timeout = time.Minute })
			result, _ := got.state["all"].(map[string]any)
			if result["outcome"] != tt.outcome {
				t.Errorf("got the outcome %v, want %s: %v\n%v", result["outcome"], tt.outcome, got.err, result)
			}
			if _, err := os.Stat(file); tt.wrote != (err == nil) {
				t.Errorf("the file is there: %t, want %t", err == nil, tt.wrote)
			}
			if diff := cmp.Diff(tt.files, result["files"]); diff != "" {
				t.Errorf("the files: -want +got\n%s", diff)
			}
			if len(server.Asked()) == 0 || !strings.Contains(server.Asked()[0], "Mend it: -x 'not' $(ok)") {
				t.Errorf("the model was asked %d times", len(server.Asked()))
			}
		})
	}
}

// What two calls never have in common is left out of a comparison, and nothing else: a new field of the result is compared.
func TestReportWithoutTheCall(t *testing.T) {
	result := make(map[string]any)
	for _, field := range taskagent.CLIResult() {
		result[field] = "x"
	}
	report := new(session.Event)
	report.CustomMetadata = map[string]any{"refrain:usage": budget.Usage{Calls: 1}}
	left, _ := new(taskagent.CommandAgent).Compared(report, result).(map[string]any)
	equal(t, "compared", []string{"denied", "denied_commands", "exit_code", "files", "more_files", "outcome", "said"}, slices.Sorted(maps.Keys(left)))
	equal(t, "fields of the result", len(taskagent.CLIResult()), len(result)) // it is a copy that was changed
	left, _ = new(taskagent.CommandAgent).Compared(new(session.Event), result).(map[string]any)
	equal(t, "fields of another command's result", len(result), len(left))
}
