// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
	"github.com/refrain-dev/refrain/budget"
)

// claude is Claude Code. https://code.claude.com/docs/en/headless
var claude = &Program{
	Name: "claude",
	Variables: []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
	},
	Tested:  "2.1.197",
	Install: "npm install -g @anthropic-ai/claude-code",
	SignIn:  "run claude once and sign in, or set ANTHROPIC_API_KEY",
	Costs:   true, Turns: true,
	SignedIn: []string{"auth", "status"},
	Settings: claudeSettings, SettingsVariable: "CLAUDE_CONFIG_DIR",
	Start: startClaude,
	Kind: func(line []byte) string {
		var l claudeLine
		if json.Unmarshal(line, &l) != nil {
			return ""
		}
		switch {
		case l.Type == "result" || l.Type == "rate_limit_event":
			return l.Type
		case l.Type == "system" && (l.Subtype == "init" || l.Subtype == "api_retry"):
			return l.Subtype
		case l.Type == "assistant" && l.Error != nil:
			return "error"
		}
		return ""
	},
	Doing: doingClaude,
	Edits: editsOfClaude, Transcribe: transcribeClaude,
	Read: readClaude,
}

var claudeSettings = []string{".claude", ".claude.json", ".local/share/claude", ".local/state/claude"}

func startClaude(r Request) (args, env []string) {
	modes := map[Permissions]string{Read: "default", Edit: "acceptEdits", All: "bypassPermissions"}
	args = []string{"-p"}
	if r.Allow != nil && r.Permissions != All {
		args = append(append(args, "--allowedTools"), claudeRules(r.Allow)...) // the next option ends the list
	}
	args = append(args, "--output-format", "stream-json", "--verbose", "--permission-mode", modes[r.Permissions])
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(r.MaxTurns))
	}
	if r.MaxCost != nil {
		args = append(args, "--max-budget-usd", strconv.FormatFloat(*r.MaxCost, 'f', -1, 64))
	}
	if r.Continue != "" {
		args = append(args, "--resume", r.Continue, "--fork-session")
	}
	return append(args, r.Args...), []string{
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
	}
}

// claudeRules returns the rules as Claude Code writes them. Claude Code checks each part of a compound command, and allows cd and
// tail without a rule.
func claudeRules(r *commandrule.Rules) (all []string) {
	for _, p := range r.Prefixes() {
		all = append(all, "Bash("+p+":*)")
	}
	for _, line := range r.Exact() {
		if !strings.ContainsAny(line, "(),*\\") {
			all = append(all, "Bash("+line+")")
		}
	}
	return all
}

// claudeLine has the fields that this package needs of a line of Claude Code. The last line is the result.
type claudeLine struct {
	Type       string         `json:"type"`
	Subtype    string         `json:"subtype"`
	Model      string         `json:"model"`
	Session    string         `json:"session_id"`
	Version    string         `json:"claude_code_version"`
	IsError    bool           `json:"is_error"`
	Status     *int           `json:"api_error_status"`
	Result     string         `json:"result"`
	Errors     []string       `json:"errors"`
	StopReason *string        `json:"stop_reason"`
	Turns      int            `json:"num_turns"`
	Cost       *float64       `json:"total_cost_usd"`
	Usage      *claudeUsage   `json:"usage"`
	Models     map[string]any `json:"modelUsage"`
	Denials    []claudeDenial `json:"permission_denials"`
	Limit      struct {
		Status string  `json:"status"`
		Resets float64 `json:"resetsAt"` // in seconds since 1970
	} `json:"rate_limit_info"` // of a rate_limit_event, which only subscriptions have
	RetryMS     float64 `json:"retry_delay_ms"` // of an api_retry
	RetryStatus *int    `json:"error_status"`
	Error       any     `json:"error"` // of an assistant line, which gives the reason for which a request failed
}

type claudeUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Read   int64 `json:"cache_read_input_tokens"`
	Write  int64 `json:"cache_creation_input_tokens"`
	Writes struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

type claudeDenial struct {
	Tool  string `json:"tool_name"`
	Input struct {
		Command string `json:"command"`
	} `json:"tool_input"`
}

// claudeDoes has the fields of a line of Claude Code that show what the program does.
type claudeDoes struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Attempt int    `json:"attempt"`
	Most    int    `json:"max_retries"`
	Status  *int   `json:"error_status"`
	Message struct {
		Content []struct {
			Type   string `json:"type"`
			Text   string `json:"text"`
			ID     string `json:"id"`
			Name   string `json:"name"`
			Of     string `json:"tool_use_id"` // of a tool_result
			Failed bool   `json:"is_error"`
			Input  struct {
				Path     string `json:"file_path"`
				Notebook string `json:"notebook_path"`
				Command  string `json:"command"`
				Pattern  string `json:"pattern"`
				URL      string `json:"url"`
				Query    string `json:"query"`
			} `json:"input"`
		} `json:"content"`
	} `json:"message"`
}

// editsOfClaude returns the calls of Claude Code's editing tools in a line, and the results of all tools.
func editsOfClaude(line []byte) (all []Change) {
	var l claudeDoes
	if json.Unmarshal(line, &l) != nil || l.Type != "assistant" && l.Type != "user" {
		return nil
	}
	for _, c := range l.Message.Content {
		switch path := cmp.Or(c.Input.Path, c.Input.Notebook); {
		case c.Type == "tool_result" && l.Type == "user":
			all = append(all, Change{ID: c.Of, Failed: c.Failed})
		case c.Type == "tool_use" && path != "" && slices.Contains([]string{"Edit", "Write", "MultiEdit", "NotebookEdit"}, c.Name):
			all = append(all, Change{ID: c.ID, Path: path})
		}
	}
	return all
}

// doingClaude describes a line of Claude Code: the tools that it calls, the text of the model, or that it repeats a request.
func doingClaude(line []byte) string {
	var l claudeDoes
	if json.Unmarshal(line, &l) != nil {
		return ""
	}
	if l.Type == "system" && l.Subtype == "api_retry" {
		why := "did not answer"
		if l.Status != nil {
			why = "answered " + strconv.Itoa(*l.Status)
		}
		return fmt.Sprintf(Waits+"its provider %s, attempt %d of %d follows", why, l.Attempt+1, l.Most+1)
	}
	if l.Type != "assistant" {
		return ""
	}
	var all []string
	for _, c := range l.Message.Content {
		switch in := c.Input; {
		case c.Type == "text":
			all = append(all, c.Text)
		case c.Type != "tool_use":
		case in.Command != "":
			all = append(all, doing("runs", in.Command))
		case c.Name == "Read":
			all = append(all, doing("reads", in.Path))
		case in.Path != "" || in.Notebook != "":
			all = append(all, doing("edits", cmp.Or(in.Path, in.Notebook)))
		default:
			all = append(all, strings.TrimSpace(doing("calls", c.Name)+" "+cmp.Or(in.Pattern, in.URL, in.Query)))
		}
	}
	return strings.Join(all, ", ")
}

// readClaude returns the report in the lines of Claude Code. The outcome is NoResult if there is no result line.
func readClaude(stdout []byte, code int) Report {
	var first, last, failed claudeLine
	var until time.Time
	var wait time.Duration
	each(stdout, func(line []byte) {
		var l claudeLine
		if json.Unmarshal(line, &l) != nil {
			return
		}
		switch {
		case l.Type == "system" && l.Subtype == "init":
			first = l
		case l.Type == "system" && l.RetryStatus != nil && isLimit(*l.RetryStatus):
			wait = milliseconds(l.RetryMS)
		case l.Type == "rate_limit_event":
			if until = (time.Time{}); l.Limit.Status == "rejected" {
				until = epoch(l.Limit.Resets)
			}
		case l.Type == "assistant":
			failed = l
		case l.Type == "result":
			last = l
		}
	})
	r := Report{Outcome: NoResult, Session: first.Session, Model: first.Model, Usage: unknown(0)}
	r.readFiles(stdout)
	if last.Type == "" {
		return r
	}
	r.Session, r.Turns = last.Session, last.Turns
	r.Answer = last.Result
	if r.Answer == "" {
		r.Answer = strings.Join(last.Errors, "\n")
	}
	for _, d := range last.Denials {
		r.Denied = append(r.Denied, d.Tool)
		r.Refused(d.Input.Command)
	}
	r.Denied = distinct(r.Denied)
	r.Usage = last.used()
	if c := r.Usage.Cost; c != nil && costsInTotal(first.Version) {
		r.Total.Cost = *c
	}
	if r.Outcome = last.outcome(code); r.Outcome == Failed && last.IsError && failed.Error == "billing_error" {
		r.Outcome = NotConfigured // Anthropic answers 400 if there is no credit
	}
	r.Lost = first.Type == "" && last.Subtype == "error_during_execution" && last.Turns == 0
	if r.Outcome == OK && r.Denied != nil {
		r.Outcome = Denied
	}
	if r.Outcome == Limited {
		r.Until, r.Wait = until, wait
	}
	return r
}

// costsInTotal reports whether a version of Claude Code reports the cost of the whole conversation. This was measured with
// --resume and --fork-session. Version 2.1.197 reports the cost and the tokens of each process alone. Version 2.1.330 reports
// the cost of the conversation and the tokens of the process. A version between them is treated like 2.1.197, because that
// can only count too much.
func costsInTotal(version string) bool {
	var v [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n != len(v) {
		return false
	}
	return slices.Compare(v[:], []int{2, 1, 330}) >= 0
}

// outcome returns the outcome that the result line and the exit code mean. The subtype is "success" for many failures too.
func (l *claudeLine) outcome(code int) Outcome {
	status := 0
	if l.Status != nil {
		status = *l.Status
	}
	switch {
	case slices.Contains([]string{"error_max_turns", "error_max_budget_usd"}, l.Subtype):
		return Partial
	case l.IsError && slices.Contains(noAccess, status):
		return NotConfigured
	case l.IsError && isLimit(status):
		return Limited
	case l.IsError || l.Subtype != "success" || code != 0:
		return Failed
	case l.StopReason == nil: // the answer of the model was cut off
		return NoResult
	}
	return OK
}

// used returns the usage that the result line reports. Claude Code reports no usage for an answer that was cut off, though its
// provider charges for it; then used returns an estimate.
func (l *claudeLine) used() budget.Usage {
	u := l.Usage
	if u == nil || u.Input+u.Output+u.Read+u.Write == 0 && !l.IsError {
		return unknown(l.Turns)
	}
	return budget.Usage{
		Calls: int64(max(1, l.Turns)), InputTokens: u.Input + u.Read + u.Write, OutputTokens: u.Output, CachedTokens: u.Read,
		CacheWriteTokens: max(0, u.Write-u.Writes.Hour), CacheWrite1hTokens: u.Writes.Hour, Cost: l.Cost,
	}
}
