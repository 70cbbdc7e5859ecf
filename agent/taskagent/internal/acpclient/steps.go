// SPDX-License-Identifier: Apache-2.0

package acpclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// The types of answers in this file have only the fields that this package needs. A program may be newer than the SDK, and
// further fields in its answers are no error.

// onInitialize handles the answer to the first request, and enters the conversation.
func (t *Talk) onInitialize(result json.RawMessage, failed *acp.RequestError) {
	var r struct {
		Version int `json:"protocolVersion"`
		Agent   struct {
			Name string `json:"name"`
		} `json:"agentInfo"`
		Can struct {
			Load    bool `json:"loadSession"`
			Session struct {
				Fork *struct{} `json:"fork"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	switch {
	case failed != nil:
		t.fail(failed)
	case json.Unmarshal(result, &r) != nil || r.Version != acp.ProtocolVersionNumber:
		t.end(fmt.Errorf("it does not speak version %d of the Agent Client Protocol", acp.ProtocolVersionNumber))
	default:
		t.usage.onlyLast, t.usage.costOfProcess = r.Agent.Name == "OpenCode", r.Agent.Name == "@zed-industries/claude-agent-acp"
		t.enter(r.Can.Session.Fork != nil, r.Can.Load)
	}
}

// choice is a list from which the client can choose one value: the modes, or the values of a setting.
type choice struct {
	config  string // ID of the setting; "" for modes
	current string
	ids     []string
}

// newSession is the answer to session/new, session/fork and, without the ID, session/load.
type newSession struct {
	Session acp.SessionId `json:"sessionId"`
	Modes   *struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Config []struct {
		ID       string          `json:"id"`
		Category string          `json:"category"`
		Current  any             `json:"currentValue"`
		Options  json.RawMessage `json:"options"`
	} `json:"configOptions"`
}

// modes returns the modes that the program offers. They are in its list of modes, or in its setting of the category mode.
func (r *newSession) modes() (c choice) {
	if m := r.Modes; m != nil {
		c.current = m.Current
		for _, mode := range m.Available {
			c.ids = append(c.ids, mode.ID)
		}
		return c
	}
	for _, o := range r.Config {
		var options []struct {
			Value string `json:"value"`
		}
		if o.Category != string(acp.SessionConfigOptionCategoryMode) || json.Unmarshal(o.Options, &options) != nil {
			continue
		}
		c.config = o.ID
		c.current, _ = o.Current.(string)
		for _, v := range options {
			c.ids = append(c.ids, v.Value)
		}
		break
	}
	return c
}

// modes maps each permission to the names of fitting modes, the best first. They are modes of Claude, Codex, Gemini, Qwen and
// opencode. A program that has none of them keeps its own mode, and Permissions only answer its requests for permission.
var modes = map[codingcli.Permissions][]string{
	codingcli.Read: {"read-only", "default", "plan"},
	codingcli.Edit: {"acceptEdits", "workspace-write", "autoEdit", "auto-edit", "auto", "build"},
	codingcli.All:  {"bypassPermissions", "agent-full-access", "full-access", "yolo", "build"},
}

// onSession handles the answer that a conversation has begun. It selects the mode for the permissions, and sends the prompt.
func (t *Talk) onSession(result json.RawMessage, failed *acp.RequestError) {
	var r newSession
	if failed != nil {
		t.fail(failed)
		return
	}
	err := json.Unmarshal(result, &r)
	if t.loaded {
		r.Session = t.session
	}
	if err != nil || r.Session == "" || len(r.Session) > longestName {
		t.end(fmt.Errorf("its answer to %s has no session", t.request.method))
		return
	}
	t.session = r.Session
	t.report.Session = string(r.Session)
	offered := r.modes()
	best := slices.IndexFunc(modes[t.cfg.Permissions], func(id string) bool { return slices.Contains(offered.ids, id) })
	if best < 0 || modes[t.cfg.Permissions][best] == offered.current {
		t.prompt()
		return
	}
	mode := modes[t.cfg.Permissions][best]
	then := func(_ json.RawMessage, failed *acp.RequestError) {
		// The program stays in its current mode, which may allow more than the permissions; then it must end. A mode that
		// allows less is safe, because the program asks. Gemini refuses other modes in a folder that it does not trust.
		if failed != nil && t.cfg.Permissions != codingcli.All && !slices.Contains(modes[codingcli.Read], offered.current) {
			t.fail(failed)
			return
		}
		t.prompt()
	}
	if offered.config == "" {
		t.call(acp.AgentMethodSessionSetMode, acp.SetSessionModeRequest{SessionId: t.session, ModeId: acp.SessionModeId(mode)}, then)
		return
	}
	t.call(acp.AgentMethodSessionSetConfigOption, acp.SetSessionConfigOptionValueId{
		SessionId: t.session, ConfigId: acp.SessionConfigId(offered.config), Value: acp.SessionConfigValueId(mode),
	}, then)
}

func (t *Talk) prompt() {
	t.hello.Stop()
	t.hashPrompt(t.cfg.Prompt)
	t.report.Asked = promptHash(t.prompts)
	t.call(acp.AgentMethodSessionPrompt, acp.PromptRequest{
		SessionId: t.session, Prompt: []acp.ContentBlock{acp.TextBlock(t.cfg.Prompt)},
	}, t.onPromptEnd)
}

// onPromptEnd handles the answer to the prompt, and ends the conversation.
func (t *Talk) onPromptEnd(result json.RawMessage, failed *acp.RequestError) {
	if failed != nil {
		t.fail(failed)
		return
	}
	var r struct {
		Reason acp.StopReason  `json:"stopReason"`
		Usage  *usage          `json:"usage"`
		Meta   json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		t.end(fmt.Errorf("its answer to %s cannot be read", acp.AgentMethodSessionPrompt))
		return
	}
	var meta struct { // Gemini reports its usage here
		Quota struct {
			Tokens struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	}
	_ = json.Unmarshal(r.Meta, &meta)
	quota := meta.Quota.Tokens
	for _, u := range []*usage{r.Usage, {Input: quota.Input, Output: quota.Output}, &t.usage.sum} {
		if u.counts() {
			t.reportUsage(u)
			break
		}
	}
	denied := len(t.report.Denied) > 0
	switch {
	case r.Reason == acp.StopReasonEndTurn && t.broken:
		t.report.Outcome = codingcli.Failed
	case r.Reason == acp.StopReasonEndTurn && !denied:
		t.report.Outcome = codingcli.OK
	case r.Reason == acp.StopReasonEndTurn, r.Reason == acp.StopReasonCancelled && denied && !t.canceled:
		t.report.Outcome = codingcli.Denied // some programs end their turn when a request is denied
	case r.Reason == acp.StopReasonMaxTokens, r.Reason == acp.StopReasonMaxTurnRequests:
		t.report.Outcome = codingcli.Partial
	case r.Reason == acp.StopReasonCancelled:
		t.report.Outcome = codingcli.NoResult
	default:
		t.report.Outcome = codingcli.Failed
	}
	t.end(nil)
}

// Codes of errors. They are the protocol's own, and the statuses of HTTP, which some programs pass on.
var (
	notConfiguredCodes = []int{-32000, 401, 402, 403}
	limitedCodes       = []int{429, 529}
)

// causes are the names that Codex gives an error, with and without underscores.
var causes = map[string]codingcli.Outcome{
	"unauthorized": codingcli.NotConfigured, "usagelimitexceeded": codingcli.Limited, "ratelimitexceeded": codingcli.Limited,
	"serveroverloaded": codingcli.Limited,
}

// fail handles an error in place of an answer, and ends the conversation.
func (t *Talk) fail(e *acp.RequestError) {
	t.report.Outcome = t.fails(e)
	t.end(nil)
}

// fails returns the outcome that an error means, and sets Report.Answer to the error's text.
func (t *Talk) fails(e *acp.RequestError) codingcli.Outcome {
	t.report.Answer = e.Message
	code, outcome := e.Code, codingcli.Failed
	switch data := e.Data.(type) {
	case string:
		t.report.Answer += "\n" + data
	case map[string]any:
		for _, key := range []string{"details", "message"} {
			if text, ok := data[key].(string); ok {
				t.report.Answer += "\n" + text
			}
		}
		for _, key := range []string{"codex_error_info", "codexErrorInfo"} {
			switch cause := data[key].(type) {
			case string:
				outcome = cmp.Or(causes[strings.ToLower(strings.ReplaceAll(cause, "_", ""))], outcome)
			case map[string]any:
				code = cmp.Or(status(cause), code)
			}
		}
	}
	switch {
	case t.canceled:
		return codingcli.NoResult
	case slices.Contains(notConfiguredCodes, code):
		return codingcli.NotConfigured
	case slices.Contains(limitedCodes, code):
		return codingcli.Limited
	}
	return outcome
}

// status returns the HTTP status in the cause that Codex gives for an error; 0 if there is none.
func status(cause map[string]any) int {
	for _, v := range cause {
		fields, _ := v.(map[string]any)
		for _, key := range []string{"http_status_code", "httpStatusCode"} {
			if code, ok := fields[key].(float64); ok {
				return int(code)
			}
		}
	}
	return 0
}

// update is the content of a session/update message.
type update struct {
	Session acp.SessionId `json:"sessionId"`
	Update  struct {
		Is      string          `json:"sessionUpdate"`
		Content json.RawMessage `json:"content"`
		Message string          `json:"messageId"`
		Cost    *acp.Cost       `json:"cost"`
		Meta    json.RawMessage `json:"_meta"`
		tool
	} `json:"update"`
}

// text returns the text of a message; "" if its content is not text.
func (u *update) text() string {
	var c struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(u.Update.Content, &c) != nil {
		return ""
	}
	return c.Text
}

// updateMeta is the extra data that two programs send with an update. Qwen sends the usage of a request, and Codex the status
// of its conversation.
type updateMeta struct {
	Usage *usage `json:"usage"`
	Codex struct {
		Thread struct {
			Is string `json:"type"`
		} `json:"threadStatus"`
	} `json:"codex"`
}

// tool has the fields of a tool call that this package needs.
type tool struct {
	ID        acp.ToolCallId     `json:"toolCallId"`
	Title     string             `json:"title"`
	Kind      acp.ToolKind       `json:"kind"`
	Status    acp.ToolCallStatus `json:"status"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Content json.RawMessage `json:"content"`
	Input   json.RawMessage `json:"rawInput"`
}

// command returns the shell command of a tool call, or "" if it is not known or too long. Claude, Codex, Qwen and opencode send
// it as a field, and Gemini as the title.
func (u tool) command() string {
	var in struct {
		Command json.RawMessage `json:"command"`
	}
	if len(u.Input) > 0 && json.Unmarshal(u.Input, &in) == nil && len(in.Command) > 0 {
		var line string
		var words []string // Codex sends the arguments of a shell, the last of which is the line
		if json.Unmarshal(in.Command, &words) == nil && len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") {
			line = words[2]
		} else if json.Unmarshal(in.Command, &line) != nil {
			return ""
		}
		if len(line) > longestCommand {
			return ""
		}
		return line
	}
	if len(u.Title) > longestCommand {
		return ""
	}
	return u.Title
}

// update handles an update from the program.
func (t *Talk) update(params json.RawMessage) {
	var u update
	if json.Unmarshal(params, &u) != nil || u.Session != t.session || t.session == "" {
		return
	}
	var meta updateMeta
	_ = json.Unmarshal(u.Update.Meta, &meta)
	if t.request.method != acp.AgentMethodSessionPrompt { // the update belongs to an earlier prompt
		if u.Update.Is == "user_message_chunk" && t.request.method == acp.AgentMethodSessionLoad {
			t.hashPrompt(u.text())
		}
		return
	}
	switch u.Update.Is {
	case "user_message_chunk":
		if t.loaded && !t.tools && t.last.text.String() == "" && !strings.Contains(t.cfg.Prompt, u.text()) {
			t.end(errors.New("it repeated the end of its earlier conversation only after it was asked, so the prompts in that conversation are unknown"))
		}
	case "agent_message_chunk":
		t.last.complete = t.last.complete || u.Update.Message != t.last.id
		t.addText(u.text())
		t.cfg.Script.Says(u.text(), u.Update.Message == t.last.id)
		if len(u.Update.Message) <= longestName {
			t.last.id = u.Update.Message
		}
		if used := meta.Usage; used.counts() {
			t.usage.sum.add(used)
		}
	case "session_info_update":
		if is := meta.Codex.Thread.Is; is != "" {
			t.broken = is == "systemError"
		}
	case "tool_call", "tool_call_update":
		u.Update.tool.Content = u.Update.Content
		if c := t.updateCall(u.Update.tool); u.Update.Is == "tool_call" {
			t.announce(c, u.Update.Input)
		}
		t.last.complete, t.tools = true, true
		if failed := u.Update.Status == acp.ToolCallStatusFailed; failed || u.Update.Status == acp.ToolCallStatusCompleted {
			t.cfg.Script.Gets(codingcli.ContentText(u.Update.Content), failed)
		}
	case "usage_update":
		// opencode reports an unknown price as 0.
		if c := u.Update.Cost; c != nil && c.Currency == "USD" && c.Amount >= 0 && (c.Amount > 0 || !t.usage.onlyLast) {
			t.report.Usage.Cost = &c.Amount
			if !t.usage.costOfProcess {
				t.report.Total.Cost = c.Amount
			}
		}
	}
}

// announce reports the message before a tool call, and the call, once: a program may ask for permission before it reports the call.
func (t *Talk) announce(c *toolCall, input json.RawMessage) {
	if c.announced {
		return
	}
	c.announced = true
	if t.cfg.Doing != nil {
		if !t.last.complete {
			t.cfg.Doing(t.last.text.String())
		}
		t.cfg.Doing(c.title)
	}
	t.cfg.Script.Calls(c.title, codingcli.InputText(input))
	t.last.complete, t.tools = true, true
}

// addText adds text to the last message, or begins a new one with it.
func (t *Talk) addText(text string) {
	if text == "" {
		return
	}
	if t.last.complete {
		t.last.text.Reset()
		t.last.complete = false
	}
	_, _ = t.last.text.Write([]byte(text))
}

// updateCall adds the facts of an update about a tool call to those that are known, and returns them. When the call is completed, it
// notes the files that the call has changed.
func (t *Talk) updateCall(u tool) *toolCall {
	c := t.calls[u.ID]
	if c == nil {
		c = &toolCall{}
		if len(t.calls) < mostCalls && len(u.ID) <= longestName {
			t.calls[u.ID] = c
		}
	}
	c.kind = cmp.Or(u.Kind, c.kind)
	if len(c.kind) > longestName {
		c.kind = acp.ToolKindOther
	}
	c.title = cmp.Or(brief.Line(u.Title, longestName), c.title)
	c.command = cmp.Or(u.command(), c.command)
	if paths := u.paths(); paths != nil {
		c.paths, c.outside = t.below(paths)
	}
	if u.Status == acp.ToolCallStatusCompleted || u.Status == acp.ToolCallStatusFailed {
		delete(t.calls, u.ID)
		if u.Status == acp.ToolCallStatusCompleted && changes(c.kind) {
			for _, path := range c.paths {
				t.report.Edited(path)
			}
		}
	}
	return c
}

// paths returns the paths of the files that a tool call names.
func (u tool) paths() (paths []string) {
	for _, l := range u.Locations {
		paths = append(paths, l.Path)
	}
	var content []struct {
		Type string `json:"type"`
		Path string `json:"path"`
	}
	if json.Unmarshal(u.Content, &content) == nil {
		for _, c := range content {
			if c.Type == "diff" {
				paths = append(paths, c.Path)
			}
		}
	}
	return paths
}

// below returns the first paths as [codingcli.Folder.Below] names them, and reports whether any path is not in the folder.
func (t *Talk) below(paths []string) (first []string, outside bool) {
	for _, path := range paths {
		path, in := t.folder.Below(path)
		outside = outside || !in
		if len(first) < mostPaths && len(path) <= longestPath && !slices.Contains(first, path) {
			first = append(first, path)
		}
	}
	return first, outside
}

func changes(k acp.ToolKind) bool {
	return k == acp.ToolKindEdit || k == acp.ToolKindDelete || k == acp.ToolKindMove
}

// answerRequest answers a request of the program. It knows requests for permission only, and answers any other with an error.
func (t *Talk) answerRequest(m message) {
	if m.Method != acp.ClientMethodSessionRequestPermission {
		t.send(message{ID: m.ID, Error: acp.NewMethodNotFound(brief.Line(m.Method, longestName))})
		return
	}
	var p struct {
		Session acp.SessionId `json:"sessionId"`
		Tool    tool          `json:"toolCall"`
		Options []struct {
			ID   string                   `json:"optionId"`
			Kind acp.PermissionOptionKind `json:"kind"`
		} `json:"options"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		t.send(message{ID: m.ID, Error: acp.NewInvalidParams(nil)})
		return
	}
	chosen := ""
	if p.Session == t.session && t.request.method == acp.AgentMethodSessionPrompt && !t.canceled {
		c := t.updateCall(p.Tool)
		t.announce(c, p.Tool.Input)
		wanted := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
		allow := t.allows(c)
		if allow {
			wanted = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways}
		}
		for _, kind := range wanted {
			for _, o := range p.Options {
				if o.Kind == kind && chosen == "" && len(o.ID) <= longestName {
					chosen = o.ID
				}
			}
		}
		if !allow || chosen == "" {
			t.denies(cmp.Or(c.title, string(c.kind), string(acp.ToolKindOther)))
			if c.kind == acp.ToolKindExecute {
				t.report.Refused(c.command)
			}
		}
	}
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	if chosen != "" {
		outcome = acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(chosen))
	}
	t.send(message{ID: m.ID, Result: encode(acp.RequestPermissionResponse{Outcome: outcome})})
}

func (t *Talk) denies(name string) {
	if len(t.report.Denied) < mostDenied && !slices.Contains(t.report.Denied, name) {
		t.report.Denied = append(t.report.Denied, name)
	}
}

// allows reports whether the permissions allow a tool call. It trusts the kind that the program gives the call. With the
// permission edit, an edit must not name a file outside the folder.
func (t *Talk) allows(c *toolCall) bool {
	switch c.kind {
	case acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindFetch, acp.ToolKindThink:
		return true
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		return t.cfg.Permissions == codingcli.All ||
			t.cfg.Permissions == codingcli.Edit && !c.outside
	case acp.ToolKindExecute:
		return t.cfg.Permissions == codingcli.All || t.cfg.Allow != nil && t.cfg.Allow.Allow(c.command, func(path string) bool {
			_, in := t.folder.Below(path)
			return in
		})
	}
	return t.cfg.Permissions == codingcli.All
}
