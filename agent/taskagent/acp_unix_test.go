// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
)

// This program is also one that speaks the Agent Client Protocol, if a variable says what it plays.
func init() {
	if plays := os.Getenv("ACP_PLAYS"); plays != "" {
		playACP(plays)
		os.Exit(0)
	}
}

// acpUpdate is an update of its session.
func acpUpdate(what string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + what + "}}"
}

func playACP(plays string) {
	lines := bufio.NewReader(os.Stdin)
	read := func() (m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Prompt []struct{ Text string } }
		Result json.RawMessage
	}) {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(3)
		}
		_ = json.Unmarshal(line, &m)
		return m
	}
	for {
		m := read()
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"id":%s,"result":{"protocolVersion":1}}`+"\n", m.ID)
			continue
		case "session/new":
			fmt.Printf(`{"id":%s,"result":{"sessionId":"s1"}}`+"\n", m.ID)
			continue
		}
		id := m.ID
		ok := `{"id":` + string(id) + `,"result":{"stopReason":"end_turn"}}`
		said := strconv.Quote("I was asked: " + m.Params.Prompt[0].Text)
		fmt.Println(acpUpdate(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + said + `}}`))
		switch plays {
		case "ok":
			fmt.Println(ok)
		case "env":
			_ = os.WriteFile("env", []byte(strings.Join(os.Environ(), "\n")), 0o600)
			fmt.Println(ok)
		case "denied":
			fmt.Println(`{"id":"p","method":"session/request_permission","params":{"sessionId":"s1",` +
				`"toolCall":{"toolCallId":"1","kind":"execute","title":"rm -rf x"},` +
				`"options":[{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}]}}`)
			if !strings.Contains(string(read().Result), `"n"`) {
				os.Exit(4)
			}
			fmt.Println(ok)
		case "auth", "limited":
			fmt.Printf(`{"id":%s,"error":{"code":%d,"message":"sorry"}}`+"\n", id, map[string]int{"auth": -32000, "limited": 429}[plays])
		case "cut":
			fmt.Fprintln(os.Stderr, "out of memory")
			fmt.Print(ok[:len(ok)-5])
			os.Exit(137)
		case "hangs":
			time.Sleep(time.Minute)
		case "works on":
			for range 16 {
				fmt.Println(acpUpdate(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}`))
				time.Sleep(200 * time.Millisecond)
			}
			fmt.Println(ok)
		case "stays": // after its answer
			fmt.Println(ok)
			time.Sleep(time.Minute)
		case "flood":
			flood := strings.Repeat(acpUpdate(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)+"\n", 1000)
			for {
				fmt.Print(flood)
			}
		case "leaves": // a process that has left its group, and cleans up when it is asked to end
			term := make(chan os.Signal, 1)
			signal.Notify(term, syscall.SIGTERM)
			cmd := exec.Command("setsid", "sleep", "60")
			if cmd.Start() == nil {
				_ = os.WriteFile("pid", []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
			}
			canceled := read().Method
			<-term
			_ = os.WriteFile("cleaned", []byte(canceled), 0o600)
			os.Exit(143)
		}
	}
}

// askedACP asks this program in a folder.
func askedACP(t *testing.T, plays, dir string, cli taskagent.CLI, more ...func(*taskagent.CommandConfig)) *ran {
	t.Helper()
	cli.ACP = []string{os.Args[0], "-test.run=^$"}
	return asked(t, cli, append([]func(*taskagent.CommandConfig){func(c *taskagent.CommandConfig) {
		c.Root, c.Env = dir, map[string]string{"ACP_PLAYS": plays}
	}}, more...)...)
}

// D1, D2, D4: a program that speaks the Agent Client Protocol is a coding agent like those with a command line of their
// own: the same outcomes, errors and fields.
func TestACPReports(t *testing.T) {
	for _, tt := range []struct {
		plays, outcome, err string
		permanent           bool
		cli                 taskagent.CLI
	}{
		{plays: "ok", outcome: "ok"},
		{plays: "denied", outcome: "denied", err: "it was not allowed to use rm -rf x; give it permissions: all", permanent: true},
		{plays: "denied", outcome: "denied", cli: taskagent.CLI{Denied: "allow"}},
		{plays: "auth", outcome: "not_configured", err: "name the variable of its key with inherit. It says: sorry", permanent: true},
		{plays: "limited", outcome: "limited", err: "its provider takes no more requests for now. It says: sorry"},
		{plays: "cut", outcome: "crashed", err: "it ended without a result: out of memory"},
		{plays: "hangs", outcome: "idle", err: "printed nothing for its idle_timeout of 500ms", cli: taskagent.CLI{IdleTimeout: 500 * time.Millisecond}},
		{plays: "works on", outcome: "ok", cli: taskagent.CLI{IdleTimeout: 2500 * time.Millisecond}},
		{plays: "stays", outcome: "ok"},
	} {
		t.Run(tt.plays, func(t *testing.T) {
			t.Parallel()
			got := askedACP(t, tt.plays, t.TempDir(), tt.cli)
			result, _ := got.state["all"].(map[string]any)
			equal(t, "outcome", any(tt.outcome), result["outcome"])
			for _, unknown := range []string{"turns", "input_tokens", "output_tokens", "cost", "files"} {
				if v, ok := result[unknown]; !ok || v != nil {
					t.Errorf("%s is %v", unknown, v)
				}
			}
			if tt.err == "" {
				equal(t, "error", nil, got.err)
				equal(t, "words", any("I was asked: Mend it: -x 'not' $(ok)"), got.state["out"])
				return
			}
			has(t, got.err, tt.err)
			if failed, ok := errors.AsType[*taskagent.CLIError](got.err); ok && failed.Permanent() != tt.permanent {
				t.Errorf("got %#v", failed)
			}
		})
	}
}

// It gets the variables that are named, those that programs need, and no others.
func TestACPEnvironment(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "SOMETHING"} {
		t.Setenv(name, "value of "+name)
	}
	dir := t.TempDir()
	got := askedACP(t, "env", dir, taskagent.CLI{}, func(c *taskagent.CommandConfig) { c.Inherit = []string{"GEMINI_API_KEY"} })
	equal(t, "error", nil, got.err)
	env := text(t, dir, "env")
	for want, is := range map[string]bool{"PATH=": true, "GEMINI_API_KEY=value": true, "REFRAIN_CALL_ID=": true, "ANTHROPIC": false, "SOMETHING": false} {
		if strings.Contains(env, want) != is {
			t.Errorf("%s is there: %t\n%s", want, !is, env)
		}
	}
}

// A flood ends with the step's timeout, and keeps nothing. A step that is canceled cancels the session first, then asks
// the program to end, and leaves nothing that it has started.
func TestACPEnds(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := askedACP(t, "flood", t.TempDir(), taskagent.CLI{}, func(c *taskagent.CommandConfig) { c.Timeout = time.Second })
	has(t, got.err, "did not end in its timeout of 1s")
	runtime.GC()
	if runtime.ReadMemStats(&after); int64(after.HeapAlloc)-int64(before.HeapAlloc) > 32<<20 {
		t.Errorf("%d bytes are kept", after.HeapAlloc-before.HeapAlloc)
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	cfg := taskagent.CommandConfig{Stdin: "x", Root: dir, Env: map[string]string{"ACP_PLAYS": "leaves"},
		CLI: &taskagent.CLI{ACP: []string{os.Args[0], "-test.run=^$"}}}
	cfg.Name = "c"
	_ = run(ctx, t, must(taskagent.NewCommand(cfg)), nil)
	equal(t, "what it was told", "session/cancel", text(t, dir, "cleaned"))
	if _, err := os.Stat("/proc/self/environ"); err == nil { // processes are found by their environment
		pid, err := strconv.Atoi(text(t, dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		isGone(t, pid)
	}
}

func TestACPConfig(t *testing.T) {
	for want, cli := range map[string]taskagent.CLI{
		"CLI and ACP: give one of them":               {Program: "claude", ACP: []string{"x"}},
		"ACP has no program":                          {ACP: []string{""}},
		"ACP: a model and further arguments stand in": {ACP: []string{"x"}, Model: "m"},
		"x takes no limit of turns":                   {ACP: []string{"x"}, MaxTurns: 1},
	} {
		cfg := taskagent.CommandConfig{Stdin: "x", CLI: &cli}
		cfg.Name = "c"
		_, err := taskagent.NewCommand(cfg)
		has(t, err, want)
	}
	got := asked(t, taskagent.CLI{ACP: []string{"no-such-program-acp"}})
	if !errors.Is(got.err, exec.ErrNotFound) {
		t.Errorf("without the program: %v", got.err)
	}
}
