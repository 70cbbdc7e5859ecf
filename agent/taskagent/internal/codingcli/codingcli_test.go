// SPDX-License-Identifier: Apache-2.0

package codingcli_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/budget"
)

// The outputs were recorded from the real programs, against package standin.
var recorded = []struct {
	program, dir, name string
	code               int
	want               codingcli.Report
}{
	{"claude", "claude-2.1.197", "ok", 0, codingcli.Report{Outcome: codingcli.OK, Answer: "done", Turns: 2, Files: []string{"a.txt"},
		Usage: budget.Usage{Calls: 2, InputTokens: 200, OutputTokens: 20, Cost: new(0.0015)}}},
	{"claude", "claude-2.1.197", "denied", 0, codingcli.Report{Outcome: codingcli.Denied, Answer: "done", Turns: 2,
		Denied: []string{"Write"}, Usage: budget.Usage{Calls: 2, InputTokens: 200, OutputTokens: 20, Cost: new(0.0015)}}},
	{"claude", "claude-2.1.197", "turns", 1, codingcli.Report{Outcome: codingcli.Partial, Turns: 2,
		Answer: "Reached maximum number of turns (1)", Files: []string{"a.txt"},
		Usage: budget.Usage{Calls: 2, InputTokens: 100, OutputTokens: 10, Cost: new(0.00075)}}},
	{"claude", "claude-2.1.197", "not_configured", 1, codingcli.Report{Outcome: codingcli.NotConfigured, Turns: 1,
		Answer: "Failed to authenticate. API Error: 401 Unauthorized", Usage: budget.Usage{Calls: 1, Cost: new(0.0)}}},
	// Anthropic answers 400.
	{"claude", "claude-2.1.197", "credit", 1, codingcli.Report{Outcome: codingcli.NotConfigured, Turns: 1,
		Answer: "Credit balance is too low", Usage: budget.Usage{Calls: 1, Cost: new(0.0)}}},
	{"claude", "claude-2.1.197", "limited", 1, codingcli.Report{Outcome: codingcli.Limited, Turns: 1,
		Answer: "API Error: Request rejected (429) · Too Many Requests", Usage: budget.Usage{Calls: 1, Cost: new(0.0)},
		Wait: 516963194 * time.Nanosecond}},
	{"claude", "claude-2.1.197", "retry_after", 1, codingcli.Report{Outcome: codingcli.Limited, Turns: 1,
		Answer: "API Error: Request rejected (429) · Too many", Usage: budget.Usage{Calls: 1, Cost: new(0.0)}, Wait: 3 * time.Second}},
	{"claude", "claude-2.1.197", "subscription", 1, codingcli.Report{Outcome: codingcli.Limited, Turns: 1,
		Answer: "You've hit your session limit · resets 4:19pm (UTC)", Usage: budget.Usage{Calls: 1, Cost: new(0.0)},
		Until: time.Date(2026, 11, 26, 16, 19, 17, 0, time.UTC)}},
	{"claude", "claude-2.1.197", "gone", 1, codingcli.Report{Outcome: codingcli.Failed, Lost: true,
		Answer: "No conversation found with session ID: 11111111-2222-4333-8444-555555555555",
		Usage:  budget.Usage{Calls: 1, Cost: new(0.0)}}},
	// It says "success" and counts no token, though the server was asked.
	{"claude", "claude-2.1.197", "cut", 0, codingcli.Report{Outcome: codingcli.NoResult, Answer: "abc", Turns: 1,
		Usage: budget.Usage{Calls: 1, Estimated: true}}},
	{"codex", "codex-0.169.0", "ok", 0, codingcli.Report{Outcome: codingcli.OK, Answer: "done",
		Usage: budget.Usage{Calls: 1, InputTokens: 200, CachedTokens: 80, OutputTokens: 20},
		Total: codingcli.Total{Input: 200, Cached: 80, Output: 20}}},
	{"codex", "codex-0.169.0", "patch", 0, codingcli.Report{Outcome: codingcli.OK, Answer: "done",
		Files: []string{"old.txt", "sub/new.txt"},
		Usage: budget.Usage{Calls: 1, InputTokens: 300, CachedTokens: 120, OutputTokens: 30},
		Total: codingcli.Total{Input: 300, Cached: 120, Output: 30}}},
	{"codex", "codex-0.169.0", "unauthorized", 1, codingcli.Report{Outcome: codingcli.Failed,
		Answer: "unexpected status 401 Unauthorized: Unauthorized, url: http://127.0.0.1:1/v1/responses",
		Usage:  budget.Usage{Calls: 1, Estimated: true}}},
	{"codex", "codex-0.169.0", "limited", 1, codingcli.Report{Outcome: codingcli.Failed,
		Answer: "exceeded retry limit, last status: 429 Too Many Requests", Usage: budget.Usage{Calls: 1, Estimated: true}}},
	{"codex", "codex-0.169.0", "usage_limit", 1, codingcli.Report{Outcome: codingcli.Failed,
		Answer: "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit " +
			"https://chatgpt.com/settings/usage to purchase more credits or try again at 4:31 PM.", Usage: budget.Usage{Calls: 1, Estimated: true}}},
	{"codex", "codex-0.169.0", "cut", 1, codingcli.Report{Outcome: codingcli.Failed,
		Answer: "stream disconnected before completion: stream closed before response.completed",
		Usage:  budget.Usage{Calls: 1, Estimated: true}}},
}

// kept is what the filter keeps of an output, in whatever pieces it comes.
func kept(t *testing.T, program string, output []byte) []byte {
	t.Helper()
	lines := &codingcli.Lines{Program: program, Dir: "/work"}
	for rest := output; len(rest) > 0; {
		n := 1 + rand.IntN(len(rest))
		if _, err := lines.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	pieces := lines.Kept()
	all := &codingcli.Lines{Program: program, Dir: "/work"}
	_, _ = all.Write(output)
	if whole := all.Kept(); !bytes.Equal(whole, pieces) {
		t.Errorf("in pieces it keeps\n%s\nwhole\n%s", pieces, whole)
	}
	return pieces
}

func TestRecordedOutputs(t *testing.T) {
	for _, tt := range recorded {
		t.Run(tt.dir+"/"+tt.name, func(t *testing.T) {
			output, err := os.ReadFile("testdata/" + tt.dir + "/" + tt.name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			output = append([]byte("WARNING: a line for people\n{not JSON}\n"), output...)
			got := codingcli.Programs[tt.program].Read(kept(t, tt.program, output), tt.code)
			if got.Session == "" {
				t.Error("it has no session")
			}
			got.Session, got.Model = "", ""
			tt.want.Files = append([]string{}, tt.want.Files...) // it reports edits, if there are any
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Codex prints no line when it does not have the conversation; one that was killed may have it.
func TestCodexLosesAConversation(t *testing.T) {
	read := codingcli.Programs["codex"].Read
	if !read(nil, 1).Lost || read(nil, -1).Lost || read([]byte(`{"type":"thread.started","thread_id":"a"}`), 1).Lost {
		t.Error("a conversation is lost without a line and with exit code 1 only")
	}
}

// An output that ends anywhere is never a success.
func TestCutOutputs(t *testing.T) {
	for _, tt := range recorded {
		output, err := os.ReadFile("testdata/" + tt.dir + "/" + tt.name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			cut := output[:rand.IntN(len(output)-1)]
			if got := codingcli.Programs[tt.program].Read(kept(t, tt.program, cut), -1); got.Outcome == codingcli.OK {
				t.Fatalf("%s/%s cut at %d is a success: %+v", tt.dir, tt.name, len(cut), got)
			} else if got.Usage.Calls < 1 {
				t.Fatalf("%s/%s cut at %d has used nothing: %+v", tt.dir, tt.name, len(cut), got)
			}
		}
	}
}

// What a tool has answered may be of any length: it is dropped, and the end is read.
func TestLongLines(t *testing.T) {
	lines := &codingcli.Lines{Program: "claude"}
	long := append(append([]byte(`{"type":"user","message":"`), bytes.Repeat([]byte("x"), 5<<20)...), "\"}\n"...)
	for _, part := range [][]byte{long, []byte(`{"type":"result","subtype":"success","stop_reason":"end_turn"}`)} {
		if _, err := bytes.NewReader(part).WriteTo(lines); err != nil {
			t.Fatal(err)
		}
	}
	kept := lines.Kept()
	if got := codingcli.Programs["claude"].Read(kept, 0); got.Outcome != codingcli.OK || len(kept) > 1000 {
		t.Errorf("got %+v of %d bytes", got, len(kept))
	}
}

// However much a program says, the last of it is kept, and no more than that.
func TestManyMessages(t *testing.T) {
	lines := &codingcli.Lines{Program: "codex"}
	_, _ = lines.Write([]byte(`{"type":"thread.started","thread_id":"t1"}` + "\n"))
	for range 300 {
		_, _ = fmt.Fprintf(lines, `{"type":"item.completed","item":{"type":"agent_message","text":"%s"}}`+"\n", strings.Repeat("x", 10_000))
	}
	_, _ = lines.Write([]byte(`{"type":"item.completed","item":{"type":"agent_message","text":"done"}}` + "\n" +
		`{"type":"turn.completed","usage":{"input_tokens":5}}`))
	kept := lines.Kept()
	got := codingcli.Programs["codex"].Read(kept, 0)
	if got.Outcome != codingcli.OK || got.Answer != "done" || got.Session != "t1" || got.Usage.InputTokens != 5 || len(kept) > 1000 {
		t.Errorf("got %+v of %d bytes", got, len(kept))
	}
}

// What a program does is told from its own fields, for each line that there is.
func TestDoing(t *testing.T) {
	for _, tt := range []struct{ program, line, want string }{
		{"claude", `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit","input":{"file_path":"/w/a.go"}},{"type":"text","text":"so"}]}}`, "edits /w/a.go, so"},
		{"claude", `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{"file_path":"/w/a.go"}}]}}`, "reads /w/a.go"},
		{"claude", `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Grep","input":{"pattern":"x y"}}]}}`, "calls Grep x y"},
		{"claude", `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"error_status":429}`, "waits: its provider answered 429, attempt 2 of 4 follows"},
		{"claude", `{"type":"assistant","message":{"content":"wrong"}}`, ""},
		{"claude", `{"type":"user"}`, ""},
		{"claude", `not JSON`, ""},
		{"codex", `{"type":"item.started","item":{"type":"command_execution","command":"/bin/bash -lc 'go test ./...'"}}`, "runs go test ./..."},
		{"codex", `{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a.go"},{"path":"b.go"}]}}`, "edits a.go, b.go"},
		{"codex", `{"type":"item.started","item":{"type":"mcp_tool_call","server":"s","tool":"t"}}`, "calls s t"},
		{"codex", `{"type":"item.completed","item":{"type":"command_execution","command":"x"}}`, ""},
		{"codex", `{"type":"item.started","item":7}`, ""},
	} {
		if got := codingcli.Programs[tt.program].Doing([]byte(tt.line)); got != tt.want {
			t.Errorf("%s\ngot %q, want %q", tt.line, got, tt.want)
		}
	}
}

// Why Codex failed is in its own record of the conversation, which is looked up by the ID that it has printed.
func TestRecordOfCodex(t *testing.T) {
	codex := codingcli.Programs["codex"]
	for name, want := range map[string]codingcli.Report{
		"limited":      {Outcome: codingcli.Limited},
		"usage_limit":  {Outcome: codingcli.Limited, Until: time.Date(2026, 11, 26, 16, 31, 13, 0, time.UTC)},
		"unauthorized": {Outcome: codingcli.NotConfigured},
	} {
		output, err := os.ReadFile("testdata/codex-0.169.0/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		record, err := os.ReadFile("testdata/codex-0.169.0/" + name + ".record")
		if err != nil {
			t.Fatal(err)
		}
		home, kept := t.TempDir(), kept(t, "codex", output)
		id := codex.Read(kept, 1).Session
		day := filepath.Join(home, ".codex", "sessions", "2026", "11", "26")
		if err := os.MkdirAll(day, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(day, "rollout-2026-11-26T15-31-12-"+id+".jsonl")
		// The record is long, and its end counts.
		text := append(bytes.Repeat([]byte(`{"payload":{"type":"task_complete","error":{"codex_error_info":"other"}}}`+"\n"), 40_000), record...)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, env := range [][]string{{"HOME=/", "HOME=" + home}, {"HOME=/", "CODEX_HOME=" + filepath.Join(home, ".codex")}} {
			got := codex.Read(append(kept[:len(kept):len(kept)], codex.Record(env, kept)...), 1)
			if got.Outcome != want.Outcome || !got.Until.Equal(want.Until) {
				t.Errorf("%s: got %s until %s", name, got.Outcome, got.Until)
			}
		}
		// No other file is read, and nothing is looked up for one that has succeeded.
		for _, stdout := range []string{`{"type":"thread.started","thread_id":"*"}` + "\n" + `{"type":"turn.failed"}`,
			`{"type":"thread.started","thread_id":"` + id + `"}` + "\n" + `{"type":"turn.completed"}`} {
			if more := codex.Record([]string{"HOME=" + home}, []byte(stdout)); more != nil {
				t.Errorf("%s: it has looked up %s", name, more)
			}
		}
	}
	lie := `{"type":"refrain.record","codex_error_info":"usage_limit_exceeded"}` + "\n"
	if got := kept(t, "codex", []byte(lie)); len(got) > 0 {
		t.Errorf("a line of the program itself is kept: %s", got)
	}
}
