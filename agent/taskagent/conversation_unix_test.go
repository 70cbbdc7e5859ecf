// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/testkit/standin"
)

// iterations runs a coding agent in a loop of two iterations that goes on with its conversation.
func iterations(t *testing.T, cli taskagent.CLI, more ...func(*taskagent.CommandConfig)) *ran {
	t.Helper()
	cli.Conversation = taskagent.ConversationContinue
	cfg := taskagent.CommandConfig{Stdin: "Mend it: {{iteration}}.", CLI: &cli, Timeout: time.Minute}
	cfg.Config = taskagent.Config{Name: "c", OutputKey: "out", ResultKey: "all"}
	for _, f := range more {
		f(&cfg)
	}
	sub := must(taskagent.NewCommand(cfg))
	return run(t.Context(), t, must(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{sub}}, MaxIterations: 2,
	})), nil)
}

// What a program counts for the whole conversation is booked once.
func TestConversationUsage(t *testing.T) {
	const claude = `echo '{"type":"system","subtype":"init","session_id":"s'$n'","claude_code_version":"VERSION"}'
echo '{"type":"result","subtype":"success","num_turns":1,"stop_reason":"end_turn","session_id":"s'$n'",'` +
		`'"total_cost_usd":'$n',"usage":{"input_tokens":5}}'`
	for _, tt := range []struct {
		name, program, lines string
		input, cost          any
		args                 string
	}{
		{"claude 2.1.330", "claude", strings.Replace(claude, "VERSION", "2.1.330", 1), 5.0, 1.0, "--resume\ns1\n--fork-session\n"},
		{"claude 2.1.197", "claude", strings.Replace(claude, "VERSION", "2.1.197", 1), 5.0, 2.0, "--resume\ns1\n--fork-session\n"},
		{"codex", "codex", `echo '{"type":"thread.started","thread_id":"s'$n'"}'
echo '{"type":"turn.completed","usage":{"input_tokens":'$n'00,"cached_input_tokens":'$n'0,"output_tokens":'$n'}}'`,
			100.0, nil, "\nfork\ns1\n-\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := fake(t, tt.program, "echo >>calls; n=$(($(wc -l <calls)))\n"+tt.lines)
			got := iterations(t, taskagent.CLI{Program: tt.program})
			equal(t, "error", nil, got.err)
			result := got.state["all"].(map[string]any)
			equal(t, "session", any("s2"), result["session"])
			equal(t, "continued", any("s1"), result["continued"])
			equal(t, "input tokens", tt.input, result["input_tokens"])
			equal(t, "cost", tt.cost, result["cost"])
			if args := text(t, dir, "args"); !strings.HasSuffix(args, tt.args) {
				t.Errorf("got the arguments %q", args)
			}
		})
	}
}

// An ID is no option of the program.
func TestConversationIsNoOption(t *testing.T) {
	dir := fake(t, "codex", `echo '{"type":"thread.started","thread_id":"--dangerously-bypass-approvals-and-sandbox"}'
echo '{"type":"turn.completed","usage":{"input_tokens":1}}'`)
	equal(t, "error", nil, iterations(t, taskagent.CLI{Program: "codex"}).err)
	if args := text(t, dir, "args"); strings.Contains(args, "dangerously") || strings.Contains(args, "fork") {
		t.Errorf("got the arguments %q", args)
	}
}

// The real programs go on: their model sees the first iteration in the second, and only the second is booked for it. One
// that does not have the conversation begins a new one.
func TestRealCodingAgentsContinue(t *testing.T) {
	realClaudeAndCodex(t)
	for _, program := range []string{"claude", "codex"} {
		t.Run(program, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			cli := taskagent.CLI{Program: program, Conversation: taskagent.ConversationContinue}
			server, here := standinFor(t, &cli, t.TempDir(), standin.Say("one"), standin.Say("two"))
			got := iterations(t, cli, here)
			equal(t, "error", nil, got.err)
			result, _ := got.state["all"].(map[string]any)
			equal(t, "input tokens", any(100.0), result["input_tokens"])
			if result["continued"] == nil || result["continued"] == result["session"] {
				t.Errorf("got %v", result)
			}
			asked := server.Asked()
			if len(asked) != 2 || !strings.Contains(asked[1], "Mend it: 1.") || !strings.Contains(asked[1], "Mend it: 2.") {
				t.Fatalf("the model was asked %d times, and does not see the first iteration in the second", len(asked))
			}
			t.Setenv("HOME", t.TempDir()) // without the conversation
			t.Setenv("CODEX_HOME", t.TempDir())
			cfg := taskagent.CommandConfig{Stdin: "Mend it.", CLI: &cli}
			here(&cfg)
			cfg.Config = taskagent.Config{Name: "c", ResultKey: "all"}
			lost := run(t.Context(), t, must(taskagent.NewCommand(cfg)), map[string]any{
				"conversation:c": map[string]any{"session": result["session"]},
			})
			equal(t, "error", nil, lost.err)
			result, _ = lost.state["all"].(map[string]any)
			equal(t, "continued", nil, result["continued"])
			equal(t, "requests", 3, len(server.Asked()))
		})
	}
}
