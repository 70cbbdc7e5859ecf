// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/budget"
)

// codex is OpenAI's Codex. https://developers.openai.com/codex/noninteractive
var codex = &Program{
	Name:      "codex",
	Variables: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME"},
	Tested:    "0.169.0",
	Install:   "npm install -g @openai/codex",
	SignIn:    "run codex login",
	SignedIn:  []string{"login", "status"},
	Settings:  []string{".codex"}, SettingsVariable: "CODEX_HOME",
	Start: startCodex,
	Kind: func(line []byte) string {
		var l codexLine
		if json.Unmarshal(line, &l) != nil || l.Type == "item.completed" && l.Item.Type != "agent_message" ||
			!slices.Contains([]string{"thread.started", "item.completed", "turn.completed", "turn.failed"}, l.Type) {
			return ""
		}
		return l.Type
	},
	Doing: doingCodex,
	Edits: editsOfCodex, Transcribe: transcribeCodex,
	Record: recordCodex,
	Read:   readCodex,
}

func startCodex(r Request) (args, env []string) {
	modes := map[Permissions]string{Read: "read-only", Edit: "workspace-write", All: "danger-full-access"}
	mode := modes[r.Permissions]
	if r.Confined {
		mode = modes[All] // no sandbox can be made inside the one around it, which limits what it may change
	}
	// No login shell, because it can set another PATH than Refrain's.
	args = []string{"exec", "--json", "--skip-git-repo-check", "-s", mode, "-c", "allow_login_shell=false"}
	if r.Allow != nil && r.Permissions == Edit && !r.Confined {
		for _, dir := range caches(r.Allow.Programs()) {
			args = append(args, "--add-dir", dir)
		}
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	args = append(args, r.Args...)
	if r.Continue != "" {
		args = append(args, "fork", r.Continue)
	}
	return append(args, "-"), nil // the prompt is in the standard input
}

// codexLine has the fields that this package needs of a line of Codex.
type codexLine struct {
	Type   string `json:"type"`
	Thread string `json:"thread_id"`
	Item   struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage *struct {
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

// codexDoes has the fields of a line of Codex that show what the program does.
type codexDoes struct {
	Type    string `json:"type"`
	Message string `json:"message"` // of an error
	Item    struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Text    string `json:"text"`
		Command string `json:"command"`
		Query   string `json:"query"`
		Server  string `json:"server"`
		Tool    string `json:"tool"`
		Changes []struct {
			Path string `json:"path"`
		} `json:"changes"`
	} `json:"item"`
}

// editsOfCodex returns the edits in a line by Codex's tool for patches. Codex reports them when they are done.
func editsOfCodex(line []byte) (all []Change) {
	var l codexDoes
	if json.Unmarshal(line, &l) != nil || l.Type != "item.completed" || l.Item.Type != "file_change" || l.Item.Status != "completed" {
		return nil
	}
	for _, c := range l.Item.Changes {
		all = append(all, Change{Path: c.Path})
	}
	return all
}

// doingCodex describes a line of Codex: the command or tool that it calls, the files that have changed, the text of the model,
// or that it connects to its provider again.
func doingCodex(line []byte) string {
	var l codexDoes
	if json.Unmarshal(line, &l) != nil {
		return ""
	}
	began, ended := l.Type == "item.started", l.Type == "item.completed"
	switch i := l.Item; {
	case l.Type == "error" && strings.HasPrefix(l.Message, "Reconnecting"):
		return doing(Waits+"its provider does not answer:", l.Message)
	case began && i.Type == "command_execution":
		command := i.Command
		if _, inner, shell := strings.Cut(command, " -lc "); shell {
			command = strings.Trim(inner, `'"`)
		}
		return doing("runs", command)
	case began && i.Type == "mcp_tool_call":
		return doing("calls", i.Server+" "+i.Tool)
	case ended && i.Type == "file_change":
		var paths []string
		for _, c := range i.Changes {
			paths = append(paths, c.Path)
		}
		return doing("edits", strings.Join(paths, ", "))
	case ended && i.Type == "web_search":
		return doing("searches the web for", i.Query)
	case ended && i.Type == "agent_message":
		return i.Text
	}
	return ""
}

// readCodex returns the report in the lines of Codex. Codex does not report which tools were denied. The reason for a failure
// is in the line of recordCodex.
func readCodex(stdout []byte, code int) Report {
	r := Report{Outcome: NoResult, Usage: unknown(0), Lost: code == 1}
	r.readFiles(stdout)
	each(stdout, func(line []byte) {
		var l codexLine
		if json.Unmarshal(line, &l) != nil {
			return
		}
		r.Lost = false // if Codex does not have the conversation, it prints no line
		switch {
		case l.Type == "thread.started":
			r.Session = l.Thread
		case l.Type == "item.completed" && l.Item.Type == "agent_message":
			r.Answer = l.Item.Text
		case l.Type == "turn.completed":
			r.Outcome = OK
			if u := l.Usage; u != nil {
				r.Usage = budget.Usage{Calls: 1, InputTokens: u.Input, CachedTokens: u.Cached, OutputTokens: u.Output}
				r.Total = Total{Input: u.Input, Cached: u.Cached, Output: u.Output} // measured with exec fork of 0.169.0
			}
		case l.Type == "turn.failed":
			r.Outcome, r.Answer = Failed, l.Error.Message
		case l.Type == codexRecord && r.Outcome == Failed:
			var why codexReason
			if json.Unmarshal(line, &why) != nil {
				return
			}
			if r.Outcome = why.outcome(); r.Outcome == Limited {
				r.Until = why.until()
			}
		}
	})
	if r.Outcome == OK && code != 0 {
		r.Outcome = Failed
	}
	return r
}
