// SPDX-License-Identifier: Apache-2.0

package acpclient_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/acpclient"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/budget"
)

// TestRecordings plays what the real programs said to this client in TestRealCodingAgentsOverACP, without their lists of
// models and commands. A line that begins with > is what the client sent, and has to send.
func TestRecordings(t *testing.T) {
	unknown := budget.Usage{Calls: 1, Estimated: true}
	tokens := func(input, output, cached int64) budget.Usage {
		return budget.Usage{Calls: 1, InputTokens: input, OutputTokens: output, CachedTokens: cached}
	}
	wrote := []string{"file"}
	type want struct {
		permissions codingcli.Permissions
		report      codingcli.Report
	}
	said := func(o codingcli.Outcome, text string) want {
		return want{codingcli.Edit, codingcli.Report{Outcome: o, Answer: text, Usage: unknown}}
	}
	with := func(w want, u budget.Usage, denied, files []string) want {
		w.report.Usage, w.report.Denied, w.report.Files = u, denied, files
		return w
	}
	as := func(p codingcli.Permissions, w want) want {
		w.permissions = p
		return w
	}
	asked := unknown
	asked.Cost = new(0.0002)
	priced := unknown // opencode reports the tokens of its last request only
	priced.Cost = new(0.0004)
	free := unknown
	free.Cost = new(0.0)
	one := tokens(100, 10, 0) // and the cost of the conversation
	one.Cost = new(0.0004)
	claude := tokens(100, 10, 0)
	claude.Cost = new(0.00045000000000000004)
	first, _ := goesOn(t, acpclient.Config{Prompt: "Mend it: 1."}, map[string]string{"initialize": load})
	for name, want := range map[string]want{
		"claude-agent-acp-0.23.1/not_configured": said("not_configured", "Authentication required"),
		"claude-agent-acp-0.23.1/unauthorized": with(said("failed", "Internal error: Failed to authenticate. API Error: 401 "+
			`{"error":{"code":401,"message":"Unauthorized","status":"UNAUTHENTICATED","type":"authentication_error"},`+
			`"type":"error"}`), free, nil, nil),
		"claude-agent-acp-0.23.1/limited": with(said("failed", "Internal error: API Error: 429 "+
			`{"error":{"code":429,"message":"Too Many Requests","status":"RESOURCE_EXHAUSTED","type":"rate_limit_error"},`+
			`"type":"error"}`), free, nil, nil),

		// It may not allow edits by itself in a folder that it was not told to trust, so it asks.
		"gemini-0.61.0/ok":             with(said("ok", "done"), tokens(200, 20, 0), nil, wrote),
		"gemini-0.61.0/denied":         as("read", with(said("denied", "done"), tokens(200, 20, 0), []string{"Writing to file"}, nil)),
		"gemini-0.61.0/not_configured": said("not_configured", "Gemini API key is missing or not configured."),
		"gemini-0.61.0/limited":        said("limited", "Too Many Requests"),

		"qwen-0.15.10/ok":           with(said("ok", "done"), tokens(200, 20, 0), nil, wrote),
		"qwen-0.15.10/denied":       as("read", with(said("denied", "done"), tokens(200, 20, 0), []string{"Writing to file"}, nil)),
		"qwen-0.15.10/unauthorized": said("failed", "Internal error\n401 Unauthorized"),

		"opencode-1.18.33/ok":     with(said("ok", "done"), priced, nil, wrote),
		"opencode-1.18.33/denied": as("read", with(said("ok", "done"), priced, nil, nil)),
		"opencode-1.18.33/asks":   with(said("denied", ""), asked, []string{"echo new >/work/file"}, nil),
		"opencode-1.18.33/unauthorized": said("failed",
			`Internal error: Unauthorized: {"error":{"code":401,"message":"Unauthorized",`+
				`"status":"UNAUTHENTICATED","type":"authentication_error"},"type":"error"}`),

		// At the first no it ends its turn as canceled, and after an error as if nothing had happened.
		"codex-acp-2.6.0/ok":           with(said("ok", "done"), tokens(200, 20, 80), nil, nil),
		"codex-acp-2.6.0/asks":         with(said("denied", ""), tokens(100, 10, 40), []string{"echo new >file"}, nil),
		"codex-acp-2.6.0/unauthorized": said("not_configured", "Authentication required"),
		"codex-acp-2.6.0/limited":      said("failed", "exceeded retry limit, last status: 429 Too Many Requests\n\n"),
		"codex-acp-2.6.0/quota":        said("limited", "Internal error\nYou’ve hit your usage limit. Try again at 4:47 PM."),

		"codex-acp-0.16.0/ok":      as("all", said("ok", "done")),
		"codex-acp-0.16.0/asks":    with(said("denied", ""), unknown, []string{"echo new >file"}, nil),
		"codex-acp-0.16.0/limited": said("limited", "Internal error\nexceeded retry limit, last status: 429 Too Many Requests"),
		// The second iteration, and after a rollback of it.
		"claude-agent-acp-0.23.1/continued": with(said("ok", "done"), claude, nil, nil),
		"gemini-0.61.0/continued":           with(said("ok", "done"), tokens(100, 10, 0), nil, nil),
		"qwen-0.15.10/continued":            with(said("ok", "done"), tokens(100, 10, 0), nil, nil),
		"qwen-0.15.10/undone":               with(said("ok", "done"), tokens(100, 10, 0), nil, nil),
		"opencode-1.18.33/continued":        with(said("ok", "done"), one, nil, nil),
		"codex-acp-2.6.0/continued":         with(said("ok", "done"), tokens(100, 10, 40), nil, nil),
		"codex-acp-0.16.0/continued":        said("ok", "done"),

		"codex-acp-0.16.0/quota": said("limited", "Internal error\nYou've hit your usage limit. Try again at 4:46 PM."),
	} {
		t.Run(name, func(t *testing.T) {
			recorded, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			var sent, sends []string
			cfg := acpclient.Config{Prompt: "Mend it.", Permissions: want.permissions}
			for line := range strings.Lines(string(recorded)) {
				var m struct {
					Method string
					Params struct{ SessionID string }
				}
				if _, sent, ok := strings.Cut(line, "> "); ok && json.Unmarshal([]byte(sent), &m) == nil &&
					(m.Method == acp.AgentMethodSessionLoad || m.Method == acp.AgentMethodSessionFork) {
					cfg.Continues, cfg.Conversation, cfg.Asked = true, m.Params.SessionID, first.report.Asked
				}
			}
			got := ask(t, cfg, func(in io.Reader, out io.Writer) {
				read := bufio.NewReader(in)
				for line := range bytes.Lines(recorded) {
					mark, m, _ := strings.Cut(string(line), " ")
					if mark == "<" {
						if _, err := io.WriteString(out, m); err != nil {
							return
						}
						continue
					}
					now, err := read.ReadString('\n')
					sends, sent = append(sends, m), append(sent, now)
					if err != nil || now != m {
						return
					}
				}
			})
			if renewed := name == "qwen-0.15.10/undone" || name == "gemini-0.61.0/continued"; (got.report.Renewed != "") != renewed {
				t.Errorf("it began a new conversation: %q", got.report.Renewed)
			}
			if asks := strings.HasSuffix(name, "/asks"); asks && len(got.report.Commands) != 1 || !asks && got.report.Commands != nil {
				t.Errorf("the commands that were not allowed are %q", got.report.Commands)
			}
			got.report.Commands = nil
			got.report.Session, got.report.Total, got.report.Asked, got.report.Renewed = "", codingcli.Total{}, "", ""
			if diff := cmp.Diff(sends, sent) + cmp.Diff(want.report, got.report); diff != "" || got.err != nil {
				t.Errorf("-want +got\n%s%v", diff, got.err)
			}
		})
	}
	all, _ := filepath.Glob("testdata/*/*.txt")
	if len(all) != 30 {
		t.Errorf("there are %d recordings", len(all))
	}
}

// opencode reports a cost of 0 where it does not know the price.
func TestPriceThatIsNotKnown(t *testing.T) {
	cost := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` +
		`{"sessionUpdate":"usage_update","used":100,"size":100000,"cost":{"amount":0,"currency":"USD"}}}}` + "\n"
	for name, known := range map[string]bool{"OpenCode": false, "other": true} {
		got := ask(t, acpclient.Config{Prompt: "x"}, func(in io.Reader, out io.Writer) {
			_ = answer(in, out, map[string]string{"initialize": `"result":{"protocolVersion":1,"agentInfo":{"name":"` + name + `"}}`,
				"session/prompt": cost + `"result":{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110}}`})
		})
		if u := got.report.Usage; (u.Cost != nil) != known || u.InputTokens != 100 {
			t.Errorf("%s: %+v", name, u)
		}
	}
}
