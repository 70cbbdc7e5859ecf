// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
)

// Bounds of a transcript, in bytes.
const (
	mostBegin  = 128 << 10 // of its beginning
	mostEnd    = 384 << 10 // of its end
	mostResult = 8 << 10   // of the input or the result of one tool call
)

// Transcript keeps the messages and tool calls of a program as text for people: its beginning, and its end. Its zero value is empty. A nil
// Transcript keeps nothing. String may be called while another goroutine adds to it.
type Transcript struct {
	mu     sync.Mutex
	begin  limited.Head
	end    limited.Tail
	length int64
	last   string // the kind of the last entry
}

// Says adds a message of the model, or a piece that goes on with the last one.
func (t *Transcript) Says(text string, goesOn bool) {
	if t == nil || text == "" {
		return
	}
	if goesOn && t.last == "says" {
		t.write(text)
		return
	}
	t.entry("says", strings.TrimSpace(text))
}

// Calls adds a call of a tool with its input.
func (t *Transcript) Calls(tool, input string) {
	t.entry("calls", strings.TrimSpace("> "+tool+" "+short(input)))
}

// Gets adds the result of a tool call.
func (t *Transcript) Gets(text string, failed bool) {
	if text = short(strings.TrimRight(text, " \t\r\n")); failed {
		text = "failed: " + text
	}
	if text != "" {
		t.entry("gets", "  "+strings.ReplaceAll(text, "\n", "\n  "))
	}
}

// short cuts a text in its middle, and says how much is left out.
func short(text string) string {
	if len(text) <= mostResult {
		return text
	}
	begin, end := brief.ClipBytes(text, mostResult/2), brief.EndBytes(text, mostResult/2)
	return fmt.Sprintf("%s\n(%d bytes are left out)\n%s", begin, len(text)-len(begin)-len(end), end)
}

func (t *Transcript) entry(kind, text string) {
	if t == nil || text == "" {
		return
	}
	if t.length > 0 {
		text = "\n\n" + text
	}
	t.last = kind
	t.write(text)
}

func (t *Transcript) write(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin.Most, t.end.Most = mostBegin, mostEnd
	n := int64(min(len(text), max(0, int(mostBegin-t.length))))
	t.length += int64(len(text))
	_, _ = t.begin.Write([]byte(text[:n])) // neither fails
	_, _ = t.end.Write([]byte(text[n:]))
}

// String returns the transcript. It says how much is left out in its middle.
func (t *Transcript) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	begin, end := t.begin.String(), t.end.String()
	if left := t.length - int64(len(begin)) - int64(len(end)); left > 0 {
		return fmt.Sprintf("%s\n\n(%d bytes are left out here)\n\n%s", begin, left, end)
	}
	return begin + end
}

// transcribeClaude adds a line of Claude Code to a transcript.
func transcribeClaude(t *Transcript, line []byte) {
	var l struct {
		Type    string `json:"type"`
		Message struct {
			Content []struct {
				Type    string          `json:"type"`
				Text    string          `json:"text"`
				Name    string          `json:"name"`
				Input   json.RawMessage `json:"input"`
				Content json.RawMessage `json:"content"`
				Failed  bool            `json:"is_error"`
			} `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "assistant" && l.Type != "user" {
		return
	}
	for _, c := range l.Message.Content {
		switch c.Type {
		case "text":
			if l.Type == "assistant" {
				t.Says(c.Text, false)
			}
		case "tool_use":
			t.Calls(c.Name, InputText(c.Input))
		case "tool_result":
			t.Gets(ContentText(c.Content), c.Failed)
		}
	}
}

// transcribeCodex adds a line of Codex to a transcript.
func transcribeCodex(t *Transcript, line []byte) {
	var more struct {
		Item struct {
			Output string          `json:"aggregated_output"`
			Code   *int            `json:"exit_code"`
			Args   json.RawMessage `json:"arguments"`
		} `json:"item"`
	}
	var does codexDoes
	if json.Unmarshal(line, &does) != nil || does.Type != "item.completed" || json.Unmarshal(line, &more) != nil {
		return
	}
	l := more.Item
	switch i := does.Item; i.Type {
	case "agent_message", "reasoning":
		t.Says(i.Text, false)
	case "command_execution":
		t.Calls("shell", i.Command)
		if l.Code != nil && *l.Code != 0 {
			l.Output = fmt.Sprintf("%s\nexit status %d", strings.TrimRight(l.Output, "\n"), *l.Code)
		}
		t.Gets(l.Output, false)
	case "mcp_tool_call":
		t.Calls(i.Server+" "+i.Tool, InputText(l.Args))
	case "file_change":
		for _, c := range i.Changes {
			t.Calls("patch", c.Path)
		}
	case "web_search":
		t.Calls("web_search", i.Query)
	}
}

// InputText returns the input of a tool: the command or the path if it has nothing else, and else its JSON.
func InputText(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return string(input)
	}
	for _, name := range []string{"command", "file_path", "path", "pattern"} {
		var text string
		_, more := fields["content"]
		if !more && fields["old_string"] == nil && json.Unmarshal(fields[name], &text) == nil && text != "" {
			return text
		}
	}
	return string(input)
}

// ContentText returns the text of a tool's result: a string, or a list of parts, which may have a text or a content with one.
func ContentText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Path    string `json:"path"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var all []string
	for _, p := range parts {
		switch {
		case p.Text+p.Content.Text != "":
			all = append(all, p.Text+p.Content.Text)
		case p.Path != "":
			all = append(all, p.Type+" "+p.Path)
		}
	}
	return strings.Join(all, "\n")
}
