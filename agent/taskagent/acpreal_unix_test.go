// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/testkit/standin"
)

// realAgent is a program that speaks the Agent Client Protocol, and how it is told where its model is.
type realAgent struct {
	name  string
	args  []string
	files map[string]string // below its home; SERVER stands for its address
	env   map[string]string
	key   string // the variable of its key
	write func(path string) standin.Answer
	asks  func(path string) standin.Answer // a call that it asks for, and not the one that writes
	// What it makes of each case; "" is not tried.
	denied, noKey, unauthorized, limited, quota string
	tokens                                      any // of input, that it reports for two requests of 100
	cost                                        any
	copies, loads                               bool // how it goes on with its conversation
}

func writeShell(path string) standin.Answer { return standin.Shell("echo new >" + filepath.Base(path)) }

// asksShell is a call that Codex asks for.
func asksShell(path string) standin.Answer {
	a := writeShell(path)
	a.Input["sandbox_permissions"], a.Input["justification"] = "require_escalated", "May I?"
	return a
}

func writeFile(path string) standin.Answer {
	return standin.Answer{Tool: "write_file", Input: map[string]any{"file_path": path, "content": "new"}}
}

// codexHome is the configuration of Codex.
const codexHome = `model_provider = "stub"
model = "gpt-5.5"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.stub]
name = "stub"
base_url = "SERVER/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`

// A closed port takes what goes elsewhere. Qwen Code would go there for its model too.
var nowhere = map[string]string{"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}

var realAgents = []realAgent{
	{
		name: "gemini", args: []string{"gemini", "--acp", "-m", "gemini-2.5-flash"}, key: "GEMINI_API_KEY", write: writeFile,
		files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}},
			"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false, "maxAttempts": 1}}`},
		env:    map[string]string{"GOOGLE_GEMINI_BASE_URL": "SERVER"},
		denied: "denied", noKey: "not_configured", unauthorized: "not_configured", limited: "limited", tokens: 200.0,
	}, {
		name: "qwen", args: []string{"qwen", "--acp", "--auth-type", "openai"}, key: "OPENAI_API_KEY", write: writeFile,
		files: map[string]string{".qwen/settings.json": `{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
		env:   map[string]string{"OPENAI_BASE_URL": "SERVER/v1", "OPENAI_MODEL": "stand-in", "HTTP_PROXY": "", "HTTPS_PROXY": ""},
		// It waits for an hour and more at a limit.
		denied: "denied", noKey: "not_configured", unauthorized: "failed", tokens: 200.0, loads: true,
	}, {
		name: "opencode", args: []string{"opencode", "acp"},
		write: func(path string) standin.Answer {
			return standin.Answer{Tool: "write", Input: map[string]any{"filePath": path, "content": "new"}}
		},
		asks: func(path string) standin.Answer { // as its variable says, below
			return standin.Answer{Tool: "bash", Input: map[string]any{"command": "echo new >" + path, "description": "x"}}
		},
		files: map[string]string{".config/opencode/opencode.json": `{"autoupdate": false, "share": "disabled", "model": "stub/stub-1",
			"provider": {"stub": {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": {"baseURL": "SERVER/v1", "apiKey": "k"},
			"models": {"stub-1": {"name": "stub-1", "limit": {"context": 100000, "output": 1000}, "cost": {"input": 1, "output": 10}}}}}}`},
		env: map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
		// Its mode for reading keeps it from writing, and it does not ask. It tries on for ever at a limit.
		denied: "ok", unauthorized: "failed", cost: 0.0004, copies: true,
	}, {
		name: "codex-acp", args: []string{"codex-acp"}, key: "OPENAI_API_KEY", write: writeShell, asks: asksShell,
		files: map[string]string{".codex/config.toml": codexHome},
		// Its sandbox keeps it from writing, and it does not ask.
		denied: "ok", noKey: "failed", unauthorized: "not_configured", limited: "failed", quota: "limited", tokens: 200.0, copies: true,
	}, {
		name: "codex-acp-0.16", args: []string{"codex-acp-0.16"}, key: "OPENAI_API_KEY", write: writeShell, asks: asksShell,
		files:  map[string]string{".codex/config.toml": codexHome},
		denied: "ok", noKey: "failed", unauthorized: "failed", limited: "limited", quota: "limited", loads: true,
	}, {
		name: "claude-agent-acp", args: []string{"claude-agent-acp"}, key: "ANTHROPIC_API_KEY", env: map[string]string{"ANTHROPIC_BASE_URL": "SERVER"},
		write: func(path string) standin.Answer { return standin.Write(path, "new") },
		// It tries on for minutes at an error of the server.
		denied: "denied", noKey: "not_configured", tokens: 200.0, cost: 0.0009000000000000001, copies: true,
	},
}

// home makes a home for the program, and returns its variables.
func (a *realAgent) home(t *testing.T, server *standin.Server) map[string]string {
	t.Helper()
	home, env := t.TempDir(), make(map[string]string)
	keys := map[string]string{"HOME": home, "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
	for _, from := range []map[string]string{nowhere, keys, a.env} {
		for name, value := range from {
			env[name] = strings.ReplaceAll(value, "SERVER", server.URL)
		}
	}
	for name, text := range a.files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "SERVER", server.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

// ask asks the program, which is in bin, with answers of its model.
func (a *realAgent) ask(ctx context.Context, t *testing.T, work string, server *standin.Server, permissions string,
	more func(*taskagent.CommandConfig)) *ran {
	t.Helper()
	cfg := taskagent.CommandConfig{Stdin: "Mend it.", Root: work, Env: a.home(t, server), Timeout: 2 * time.Minute,
		CLI: &taskagent.CLI{ACP: a.args, Permissions: permissions}}
	cfg.Name, cfg.OutputKey, cfg.ResultKey = "c", "out", "all"
	more(&cfg)
	return run(ctx, t, must(taskagent.NewCommand(cfg)), nil)
}

// D4: the real programs that speak the Agent Client Protocol do what the recordings say. See .ci/clis; the large ones
// are there with make clis only.
func TestRealCodingAgentsOverACP(t *testing.T) {
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: the real coding agents are not tried; see make clis")
	}
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.args[0] = filepath.Join(bin, a.args[0])
			if _, err := os.Stat(a.args[0]); err != nil {
				t.Skip("it is not installed; see make clis")
			}
			for _, tt := range []struct {
				name, permissions, outcome string
				answers                    []standin.Answer // after the one that writes
				noKey, writes, asks        bool
			}{
				{name: "ok", permissions: "edit", outcome: "ok", answers: []standin.Answer{standin.Say("done")}, writes: true},
				{name: "denied", permissions: "read", outcome: a.denied, answers: []standin.Answer{standin.Say("done")}, writes: true},
				{name: "asks", permissions: "edit", outcome: map[bool]string{true: "denied"}[a.asks != nil], asks: true},
				{name: "no key", outcome: a.noKey, noKey: true},
				{name: "401", outcome: a.unauthorized, answers: []standin.Answer{standin.Fail(401)}},
				{name: "429", outcome: a.limited, answers: []standin.Answer{{Status: 429, RetryAfter: 1}}},
				{name: "quota", outcome: a.quota, answers: []standin.Answer{{Status: 429, Kind: "usage_limit_reached"}}},
			} {
				if tt.outcome == "" {
					continue
				}
				t.Run(tt.name, func(t *testing.T) {
					work := t.TempDir()
					file := filepath.Join(work, "file")
					if tt.writes {
						tt.answers = append([]standin.Answer{a.write(file)}, tt.answers...)
					}
					if tt.asks {
						tt.answers = []standin.Answer{a.asks(file), standin.Say("done")}
					}
					server := standin.New(tt.answers...)
					defer server.Close()
					permissions := tt.permissions
					if a.name == "codex-acp-0.16" && tt.name == "ok" {
						permissions = "all" // its sandbox needs bubblewrap, which is not everywhere
					}
					got := a.ask(t.Context(), t, work, server, permissions, func(c *taskagent.CommandConfig) {
						if tt.asks {
							c.Env["OPENCODE_PERMISSION"] = `{"edit": "ask", "bash": "ask"}`
						}
						if tt.noKey {
							delete(c.Env, a.key)
						}
					})
					result, _ := got.state["all"].(map[string]any)
					if result["outcome"] != tt.outcome || result["session"] == nil {
						t.Errorf("got the outcome %v, want %s: %v\n%v", result["outcome"], tt.outcome, got.err, result)
					}
					if _, err := os.Stat(file); (tt.name == "ok") != (err == nil) {
						t.Errorf("the file is there: %t", err == nil)
					}
					if n := len(server.Asked()); (n == 0) != tt.noKey || n > 0 && !strings.Contains(server.Asked()[0], "Mend it.") {
						t.Errorf("the model was asked %d times", n)
					}
					if tt.writes {
						equal(t, "last words", any("done"), result["said"])
						equal(t, "input tokens", a.tokens, result["input_tokens"])
						equal(t, "cost", a.cost, result["cost"])
					}
				})
			}
			t.Run("continues", a.continues)
			t.Run("ends", a.ends)
		})
	}
}

// ends cancels a program that waits for its model. It leaves no process.
func (a *realAgent) ends(t *testing.T) {
	server := standin.New(standin.Answer{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for len(server.Asked()) == 0 && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	mark := t.TempDir() // a variable of the processes
	got := a.ask(ctx, t, t.TempDir(), server, "edit", func(c *taskagent.CommandConfig) { c.Env["ACP_TEST"] = mark })
	server.CloseClientConnections()
	server.Close()
	if !errors.Is(got.err, context.Canceled) || len(server.Asked()) == 0 {
		t.Errorf("the model was asked %d times: %v", len(server.Asked()), got.err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte(mark)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			t.Errorf("%s survives: %q", filepath.Dir(path), line)
		}
	}
}

// continues asks a program three times, the last time as after a rollback of the second: its model sees nothing of that.
func (a *realAgent) continues(t *testing.T) {
	server := standin.New(standin.Say("done"))
	defer server.Close()
	work, env := t.TempDir(), a.home(t, server)
	asks := func(prompt string, conversation any) (result map[string]any, kept any) {
		cfg := taskagent.CommandConfig{Stdin: prompt, Root: work, Env: env, Timeout: 2 * time.Minute,
			CLI: &taskagent.CLI{ACP: a.args, Conversation: taskagent.ConversationContinue}}
		cfg.Name, cfg.ResultKey = "c", "all"
		got := run(t.Context(), t, must(taskagent.NewCommand(cfg)), map[string]any{"conversation:c": conversation})
		equal(t, "error", nil, got.err)
		result, _ = got.state["all"].(map[string]any)
		equal(t, "last words", any("done"), result["said"])
		if result["cost"] != nil && a.cost != nil {
			if cost, all := result["cost"].(float64), a.cost.(float64); cost < all*0.49 || cost > all*0.51 { // one request
				t.Errorf("%q cost %v", prompt, cost)
			}
		}
		return result, got.state["conversation:c"]
	}
	// sees reports whether the model has seen a prompt in any of the requests with another one.
	sees := func(prompt, earlier string) bool {
		return slices.ContainsFunc(server.Asked(), func(r string) bool { return strings.Contains(r, prompt) && strings.Contains(r, earlier) })
	}
	first, kept := asks("Mend it: 1.", nil)
	equal(t, "continued, of the first", nil, first["continued"])
	second, _ := asks("Mend it: 2.", kept)
	third, _ := asks("Mend it: 3.", kept)
	goesOn := map[bool]any{true: first["session"]}
	equal(t, "continued, of the second", goesOn[a.copies || a.loads], second["continued"])
	equal(t, "continued, of the third", goesOn[a.copies], third["continued"])
	equal(t, "the second sees the first", a.copies || a.loads, sees("Mend it: 2.", "Mend it: 1."))
	equal(t, "the third sees the first", a.copies, sees("Mend it: 3.", "Mend it: 1."))
	equal(t, "the third sees the second", false, sees("Mend it: 3.", "Mend it: 2."))
	env = a.home(t, server) // without the conversation
	lost, _ := asks("Mend it: 4.", kept)
	equal(t, "continued, of a conversation that is lost", nil, lost["continued"])
}
