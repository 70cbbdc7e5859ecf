// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// What a coding agent does is shown while it works, cleaned and bounded, if pieces are wanted; no log has it.
func TestCodingAgentLines(t *testing.T) {
	says := `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"go\u001b[2Jtest\n\u202e ./... ` +
		strings.Repeat("x", 5000) + `"}}]}}`
	flood := "i=0; while test $i -lt 500; do i=$((i+1)); printf '%s\\n' '" + says + "'; done; sleep 0.3; "
	fake(t, "claude", flood+strings.Replace(recording(t, "claude-2.1.197/ok", 0), "; exit", "; sleep 0.5; exit", 1))
	cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}}
	cfg.Name, cfg.OutputKey = "c", "out"
	coder := must(taskagent.NewCommand(cfg))
	for _, mode := range []agent.StreamingMode{agent.StreamingModeSSE, agent.StreamingModeNone, ""} {
		began := time.Now()
		got := runAs(t.Context(), t, coder, nil, agent.RunConfig{StreamingMode: mode})
		most := 50 * int(time.Since(began)/(100*time.Millisecond)+2) // a slow machine takes longer for the flood
		equal(t, "error", nil, got.err)
		equal(t, "output", any("done"), got.state["out"])
		var lines []string
		for _, ev := range got.events {
			if line, ok := ev.CustomMetadata[mark.MetadataDoing].(string); ok {
				if !ev.Partial || ev.Seq != 0 {
					t.Errorf("%q is in the log", line)
				}
				if n := len([]rune(line)); n == 0 || n > 201 || strings.ContainsAny(line, "\n\x1b\u202e") {
					t.Errorf("got a line of %d characters, %q", n, line)
				}
				lines = append(lines, line)
			}
		}
		all := strings.Join(lines, "\n")
		if mode != agent.StreamingModeSSE {
			equal(t, "lines that nobody wants", "", all)
			continue
		}
		if len(lines) > most || !strings.Contains(all, "runs go[2Jtest ./... xxx") || !strings.Contains(all, "edits /work/a.txt\ndone") {
			t.Errorf("got %d lines, at most %d:\n%.2000s", len(lines), most, all)
		}
	}
}

// A provider that does not answer is told while the agent still waits, whether the agent says so in its output or to people.
func TestCodingAgentWaitsForItsProvider(t *testing.T) {
	for program, c := range map[string]struct{ line, recording, want string }{
		"claude": {`{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":500,"error_status":null}`, "claude-2.1.197/ok",
			"waits: its provider did not answer, attempt 3 of 11 follows"},
		"codex": {`{"type":"error","message":"Reconnecting... 2/5 (unexpected status 503)"}`, "codex-0.169.0/ok",
			"waits: its provider does not answer: Reconnecting... 2/5 (unexpected status 503)"},
	} {
		fake(t, program, "printf '%s\\n' '"+c.line+"'; echo 'Attempt 4 failed: fetch failed' >&2; echo other >&2; "+recording(t, c.recording, 0))
		cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: program}}
		cfg.Name = "c"
		got := runAs(t.Context(), t, must(taskagent.NewCommand(cfg)), nil, agent.RunConfig{StreamingMode: agent.StreamingModeSSE})
		equal(t, "error", nil, got.err)
		var lines []string
		for _, ev := range got.events {
			if line, ok := ev.CustomMetadata[mark.MetadataDoing].(string); ok && strings.HasPrefix(line, mark.DoingWaits) {
				lines = append(lines, line)
			}
		}
		all := strings.Join(lines, "\n")
		if len(lines) != 2 || !strings.Contains(all, c.want) ||
			!strings.Contains(all, "waits: its provider does not answer: Attempt 4 failed: fetch failed") {
			t.Errorf("%s: got\n%s", program, all)
		}
	}
}

// No secret is in what is told of a provider that does not answer, not even a part where a long line is cut.
func TestCodingAgentWaitsWithoutSecrets(t *testing.T) {
	const secret = "wm4Kq81zRt0vXy73"
	long := strings.Repeat("\u00a0", 988) // of 2 bytes each, shown as one space, so that the cut at 2000 bytes is in the token
	fake(t, "codex", "echo \"stream error: 401 for token $SERVICE_TOKEN\" >&2; echo \"stream error"+long+"$SERVICE_TOKEN\" >&2; "+
		recording(t, "codex-0.169.0/ok", 0))
	cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "codex"}, Env: map[string]string{"SERVICE_TOKEN": secret}}
	cfg.Name = "c"
	got := runAs(t.Context(), t, must(taskagent.NewCommand(cfg)), nil, agent.RunConfig{StreamingMode: agent.StreamingModeSSE})
	equal(t, "error", nil, got.err)
	waits := 0
	for _, ev := range got.events {
		line, _ := ev.CustomMetadata[mark.MetadataDoing].(string)
		if strings.HasPrefix(line, mark.DoingWaits) {
			waits++
		}
		if strings.Contains(line, secret[:8]) {
			t.Errorf("got %q", line)
		}
	}
	equal(t, "lines", 2, waits)
}

// D2: a program that reports success although its model has not answered has failed.
func TestCodingAgentThatWasNotAnswered(t *testing.T) {
	for program, prints := range map[string]string{
		"claude": `echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"stop_reason":"end_turn","session_id":"s1",` +
			`"result":"[API Error: Connection error.]","total_cost_usd":0,"usage":{"input_tokens":3,"output_tokens":4}}'`,
		"codex": `echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0}}'`,
	} {
		fake(t, program, prints)
		cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: program}}
		cfg.Name = "c"
		got := runAs(t.Context(), t, must(taskagent.NewCommand(cfg)), nil, agent.RunConfig{})
		if failed, ok := errors.AsType[*taskagent.CLIError](got.err); !ok || failed.Outcome != "failed" {
			t.Errorf("%s: %v", program, got.err)
		}
	}
}

// Who listens no more ends the program.
func TestCodingAgentWithoutListener(t *testing.T) {
	dir := fake(t, "claude", "echo $$ >pid; echo '"+`{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}`+"'; exec sleep 60")
	cfg := taskagent.CommandConfig{Stdin: "x", CLI: &taskagent.CLI{Program: "claude"}}
	cfg.Name = "c"
	svc := session.InMemoryService()
	r := must(runner.New(runner.Config{AppName: "app", Agent: must(taskagent.NewCommand(cfg)), SessionService: svc}))
	s := must(svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana"})).Session
	for ev, err := range r.Run(t.Context(), "ana", s.ID(), genai.NewContentFromText("x", genai.RoleUser),
		agent.RunConfig{StreamingMode: agent.StreamingModeSSE}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Partial {
			break
		}
	}
	isGone(t, must(strconv.Atoi(strings.TrimSpace(text(t, dir, "pid")))))
}
