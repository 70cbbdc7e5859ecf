// SPDX-License-Identifier: Apache-2.0

package acpclient_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/acpclient"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // where the SDK writes
	leaktest.Main(m)
}

// asked is what came of asking a program.
type asked struct {
	report codingcli.Report
	err    error  // why it was to be ended
	ended  bool   // it was to be ended, or has answered
	output []byte // what it printed first
	talk   *acpclient.Talk
}

// ask asks a program, which is a function here. It may have functions that run beside it.
func ask(t *testing.T, cfg acpclient.Config, program func(in io.Reader, out io.Writer), beside ...func(*acpclient.Talk)) *asked {
	t.Helper()
	in, to := io.Pipe()
	out, stdout := io.Pipe()
	end := make(chan error, 2)
	cfg.To, cfg.End = to, func(err error) { end <- err }
	if cfg.Dir == "" {
		cfg.Dir = "/work"
	}
	if cfg.Permissions == "" {
		cfg.Permissions = codingcli.Edit
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1 << 20
	}
	got := &asked{talk: acpclient.New(cfg)}
	for _, f := range beside {
		go f(got.talk)
	}
	ran, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ran)
		program(in, stdout)
		stdout.Close()
	}()
	go func() { // as a process does, it gives its output in any pieces
		defer close(read)
		buf := make([]byte, 64<<10)
		for {
			n, err := out.Read(buf[:1+rand.IntN(len(buf))])
			if len(got.output) < 1<<20 {
				got.output = append(got.output, buf[:n]...)
			}
			_, _ = got.talk.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	select {
	case got.err = <-end:
		got.ended = true
		out.CloseWithError(errors.New("ended"))
		in.CloseWithError(errors.New("ended"))
	case <-read:
	}
	<-ran
	<-read
	got.talk.Close()
	in.Close()
	got.report = got.talk.Report()
	select {
	case err := <-end:
		if got.ended {
			t.Errorf("it was ended again: %v", err)
		}
		got.err, got.ended = err, true
	default:
	}
	return got
}

// agent is a program written with the protocol's Go SDK.
type agent struct {
	conn   *acp.AgentSideConnection
	modes  []string
	config []string
	prompt func(a *agent, p acp.PromptRequest) (acp.PromptResponse, error)
	began  error

	cwd, mode string
	canceled  chan struct{}
}

func (a *agent) Initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	if p.ClientCapabilities.Fs.ReadTextFile || p.ClientCapabilities.Fs.WriteTextFile || p.ClientCapabilities.Terminal {
		return acp.InitializeResponse{}, errors.New("the client offers what it does not have")
	}
	return acp.InitializeResponse{ProtocolVersion: p.ProtocolVersion, AuthMethods: []acp.AuthMethod{}}, nil
}

func (a *agent) NewSession(_ context.Context, p acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	a.cwd = p.Cwd
	r := acp.NewSessionResponse{SessionId: "s1"}
	if a.modes != nil {
		r.Modes = &acp.SessionModeState{CurrentModeId: acp.SessionModeId(a.modes[0])}
		for _, m := range a.modes {
			r.Modes.AvailableModes = append(r.Modes.AvailableModes, acp.SessionMode{Id: acp.SessionModeId(m), Name: m})
		}
	}
	if a.config != nil {
		var values acp.SessionConfigSelectOptionsUngrouped
		for _, m := range a.config {
			values = append(values, acp.SessionConfigSelectOption{Value: acp.SessionConfigValueId(m), Name: m})
		}
		r.ConfigOptions = []acp.SessionConfigOption{{Select: &acp.SessionConfigOptionSelect{
			Id: "the_mode", Name: "Mode", Type: "select", Category: new(acp.SessionConfigOptionCategoryMode),
			CurrentValue: acp.SessionConfigValueId(a.config[0]), Options: acp.SessionConfigSelectOptions{Ungrouped: &values},
		}}}
	}
	return r, a.began
}

func (a *agent) SetSessionMode(_ context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	if p.ModeId == "refused" || strings.HasPrefix(string(p.ModeId), "bypass") {
		return acp.SetSessionModeResponse{}, acp.NewInvalidParams("not as root")
	}
	a.mode = string(p.ModeId)
	return acp.SetSessionModeResponse{}, nil
}

func (a *agent) SetSessionConfigOption(_ context.Context, p acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	a.mode = string(p.ValueId.ConfigId) + "=" + string(p.ValueId.Value)
	return acp.SetSessionConfigOptionResponse{ConfigOptions: []acp.SessionConfigOption{}}, nil
}

func (a *agent) Prompt(_ context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	return a.prompt(a, p)
}

func (a *agent) Cancel(context.Context, acp.CancelNotification) error {
	close(a.canceled)
	return nil
}

func (a *agent) Authenticate(context.Context, acp.AuthenticateRequest) (r acp.AuthenticateResponse, err error) {
	return r, nil
}

func (a *agent) CloseSession(context.Context, acp.CloseSessionRequest) (r acp.CloseSessionResponse, err error) {
	return r, nil
}

func (a *agent) ListSessions(context.Context, acp.ListSessionsRequest) (r acp.ListSessionsResponse, err error) {
	return r, nil
}

func (a *agent) ResumeSession(context.Context, acp.ResumeSessionRequest) (r acp.ResumeSessionResponse, err error) {
	return r, nil
}

// run is the program.
func (a *agent) run(in io.Reader, out io.Writer) {
	a.canceled = make(chan struct{})
	listens := make(chan struct{})
	a.conn = acp.NewAgentSideConnection(a, out, readerAfter{in, listens}) // it reads before it is returned
	close(listens)
	<-a.conn.Done()
}

// readerAfter is a reader that gives nothing before a moment.
type readerAfter struct {
	io.Reader
	moment <-chan struct{}
}

func (r readerAfter) Read(p []byte) (int, error) {
	<-r.moment
	return r.Reader.Read(p)
}

func (a *agent) updates(updates ...acp.SessionUpdate) {
	for _, u := range updates {
		_ = a.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: "s1", Update: u})
	}
}

var options = []acp.PermissionOption{
	{OptionId: "always", Kind: acp.PermissionOptionKindAllowAlways, Name: "Always"},
	{OptionId: "once", Kind: acp.PermissionOptionKindAllowOnce, Name: "Once"},
	{OptionId: "no", Kind: acp.PermissionOptionKindRejectOnce, Name: "No"},
	{OptionId: "never", Kind: acp.PermissionOptionKindRejectAlways, Name: "Never"},
}

// may asks for permission, and returns the option that was chosen, or "cancelled".
func (a *agent) may(call acp.ToolCallUpdate, options []acp.PermissionOption) string {
	r, err := a.conn.RequestPermission(context.Background(), acp.RequestPermissionRequest{SessionId: "s1", ToolCall: call, Options: options})
	switch {
	case err != nil:
		return err.Error()
	case r.Outcome.Selected != nil:
		return string(r.Outcome.Selected.OptionId)
	}
	return "cancelled"
}

// D4: a program that is written with the protocol's SDK is asked, its mode is set, and what it reports is reported. What
// it does not report is unknown.
func TestAgent(t *testing.T) {
	a := &agent{modes: []string{"default", "plan", "acceptEdits"}}
	a.prompt = func(a *agent, p acp.PromptRequest) (acp.PromptResponse, error) {
		a.updates(acp.UpdateAgentMessageText("I will look."),
			acp.StartToolCall("1", "Write a.go", acp.WithStartKind(acp.ToolKindEdit), acp.WithStartLocations([]acp.ToolCallLocation{{Path: "/work/a.go"}})),
			acp.UpdateToolCall("1", acp.WithUpdateStatus(acp.ToolCallStatusCompleted)),
			acp.StartEditToolCall("2", "Edit", "/work/b/c.go", nil),
			acp.UpdateToolCall("2", acp.WithUpdateStatus(acp.ToolCallStatusFailed)),
			acp.UpdateAgentMessageText("do"), acp.UpdateAgentMessageText("ne"),
			acp.SessionUpdate{UsageUpdate: &acp.SessionUsageUpdate{Used: 7, Size: 9, Cost: &acp.Cost{Amount: 0.25, Currency: "USD"}}})
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Usage: &acp.Usage{
			InputTokens: 100, OutputTokens: 10, CachedReadTokens: new(40), CachedWriteTokens: new(2), TotalTokens: 152}}, nil
	}
	var doing []string
	got := ask(t, acpclient.Config{Prompt: "Mend it.", Doing: func(words string) { doing = append(doing, words) }}, a.run)
	if diff := cmp.Diff([]string{"I will look.", "Write a.go", "Edit"}, doing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(codingcli.Report{
		Outcome: codingcli.OK, Answer: "done", Session: "s1", Files: []string{"a.go"},
		Usage: budget.Usage{Calls: 1, InputTokens: 142, OutputTokens: 10, CachedTokens: 40, CacheWriteTokens: 2, Cost: new(0.25)},
		Total: codingcli.Total{Cost: 0.25},
	}, got.report); diff != "" || got.err != nil {
		t.Errorf("-want +got\n%s%v", diff, got.err)
	}
	if a.mode != "acceptEdits" || a.cwd != "/work" {
		t.Errorf("it works in %q, in the mode %q", a.cwd, a.mode)
	}
	a.prompt = func(a *agent, _ acp.PromptRequest) (acp.PromptResponse, error) {
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	got = ask(t, acpclient.Config{Prompt: "Mend it."}, a.run)
	if u := got.report.Usage; !u.Estimated || u.Calls != 1 || u.Cost != nil || got.report.Files != nil {
		t.Errorf("it reports nothing: %+v", got.report)
	}
}

// How it ends becomes the outcome: by the stop reason and by the code of an error, and never by words.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		reason acp.StopReason
		err    error
		want   codingcli.Outcome
		said   string
	}{
		{acp.StopReasonEndTurn, nil, codingcli.OK, "429 auth_required"},
		{acp.StopReasonMaxTokens, nil, codingcli.Partial, "429 auth_required"},
		{acp.StopReasonMaxTurnRequests, nil, codingcli.Partial, "429 auth_required"},
		{acp.StopReasonRefusal, nil, codingcli.Failed, "429 auth_required"},
		{acp.StopReasonCancelled, nil, codingcli.NoResult, "429 auth_required"},
		{"of tomorrow", nil, codingcli.Failed, "429 auth_required"},
		{"", acp.NewAuthRequired(nil), codingcli.NotConfigured, "Authentication required"},
		{"", &acp.RequestError{Code: 401, Message: "no key"}, codingcli.NotConfigured, "no key"},
		{"", &acp.RequestError{Code: 429, Message: "wait"}, codingcli.Limited, "wait"},
		{"", acp.NewInternalError("429 Too Many Requests"), codingcli.Failed, "Internal error\n429 Too Many Requests"},
		{"", &acp.RequestError{Code: 1, Message: "a", Data: map[string]any{"details": "b"}}, codingcli.Failed, "a\nb"},
	} {
		a := &agent{prompt: func(a *agent, _ acp.PromptRequest) (acp.PromptResponse, error) {
			a.updates(acp.UpdateAgentMessageText("429 auth_required"))
			return acp.PromptResponse{StopReason: tt.reason}, tt.err
		}}
		got := ask(t, acpclient.Config{Prompt: "x"}, a.run)
		if got.report.Outcome != tt.want || got.report.Answer != tt.said || got.err != nil {
			t.Errorf("%q %v: got %q, it said %q, %v", tt.reason, tt.err, got.report.Outcome, got.report.Answer, got.err)
		}
	}
	a := &agent{began: acp.NewAuthRequired(nil)}
	if got := ask(t, acpclient.Config{Prompt: "x"}, a.run); got.report.Outcome != codingcli.NotConfigured {
		t.Errorf("a session without signing in: %+v", got.report)
	}
}

func TestModes(t *testing.T) {
	answers := func(*agent, acp.PromptRequest) (acp.PromptResponse, error) {
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	for _, tt := range []struct {
		permissions   codingcli.Permissions
		modes, config []string
		want          string
		outcome       codingcli.Outcome
	}{
		{codingcli.Read, []string{"auto", "read-only", "full-access"}, nil, "read-only", codingcli.OK},
		{codingcli.Edit, []string{"read-only", "auto", "full-access"}, nil, "auto", codingcli.OK},
		{codingcli.Edit, []string{"default", "autoEdit", "yolo", "plan"}, nil, "autoEdit", codingcli.OK},
		{codingcli.All, []string{"plan", "default", "auto-edit", "yolo"}, nil, "yolo", codingcli.OK},
		{codingcli.Read, []string{"default", "acceptEdits"}, nil, "", codingcli.OK}, // it is in it
		{codingcli.Read, nil, []string{"build", "plan"}, "the_mode=plan", codingcli.OK},
		{codingcli.Edit, nil, []string{"build", "plan"}, "", codingcli.OK},
		{codingcli.Edit, []string{"mine"}, nil, "", codingcli.OK},
		{codingcli.Edit, nil, nil, "", codingcli.OK},
		// A mode that allows more may be refused: what it does not do by itself, it asks for.
		{codingcli.All, []string{"default", "bypassPermissions"}, nil, "", codingcli.OK},
	} {
		a := &agent{modes: tt.modes, config: tt.config, prompt: answers}
		got := ask(t, acpclient.Config{Prompt: "x", Permissions: tt.permissions}, a.run)
		if a.mode != tt.want || got.report.Outcome != tt.outcome {
			t.Errorf("%s of %v%v: got the mode %q, want %q: %+v", tt.permissions, tt.modes, tt.config, a.mode, tt.want, got.report)
		}
	}
	refuses := func(in io.Reader, out io.Writer) {
		_ = answer(in, out, map[string]string{"session/set_mode": `"error":{"code":-32602,"message":"no"}`,
			"session/new": `"result":{"sessionId":"s1","modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo"},{"id":"default"}]}}`})
	}
	if got := ask(t, acpclient.Config{Prompt: "x", Permissions: codingcli.Read}, refuses); got.report.Outcome != codingcli.Failed {
		t.Errorf("a mode that allows less was refused: %+v", got.report)
	}
}

// Requests for permission are answered by the kind of the tool call, and a program that was told no is reported.
func TestPermissions(t *testing.T) {
	kinds := []acp.ToolKind{acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindFetch, acp.ToolKindThink, acp.ToolKindEdit,
		acp.ToolKindDelete, acp.ToolKindMove, acp.ToolKindExecute, acp.ToolKindSwitchMode, acp.ToolKindOther, "of tomorrow", ""}
	allowed := map[codingcli.Permissions]int{codingcli.Read: 4, codingcli.Edit: 7, codingcli.All: len(kinds)}
	for permissions, n := range allowed {
		var answers, want, denied []string
		for i := range kinds {
			if i < n {
				want = append(want, "once")
			} else {
				want, denied = append(want, "no"), append(denied, fmt.Sprint("tool ", i))
			}
		}
		outcome := codingcli.OK
		if denied != nil {
			outcome = codingcli.Denied
		}
		a := &agent{prompt: func(a *agent, _ acp.PromptRequest) (acp.PromptResponse, error) {
			for i, k := range kinds {
				// The kind and the title may stand in the update before.
				id, title := acp.ToolCallId(fmt.Sprint(i)), fmt.Sprint("tool\n ", i)
				call := acp.ToolCallUpdate{ToolCallId: id}
				if rand.IntN(2) == 0 {
					a.updates(acp.StartToolCall(id, title, acp.WithStartKind(k)))
				} else {
					call.Title, call.Kind = &title, &k
				}
				answers = append(answers, a.may(call, options))
			}
			return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		}}
		got := ask(t, acpclient.Config{Prompt: "x", Permissions: permissions}, a.run)
		if diff := cmp.Diff(want, answers) + cmp.Diff(denied, got.report.Denied); diff != "" || got.report.Outcome != outcome {
			t.Errorf("%s: %s\n%s", permissions, got.report.Outcome, diff)
		}
	}
}

// An edit out of the folder is no edit in it, and where there is no option to say what is to be said, the request ends.
func TestPermissionsOfPaths(t *testing.T) {
	dir := t.TempDir()
	var answers []string
	a := &agent{prompt: func(a *agent, _ acp.PromptRequest) (acp.PromptResponse, error) {
		edit := acp.ToolKindEdit
		for _, path := range []string{dir + "/a", "b", dir + "/../c", "/etc/passwd", dir} {
			answers = append(answers, a.may(acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(path), Kind: &edit,
				Locations: []acp.ToolCallLocation{{Path: filepath.Join(dir, "x")}, {Path: path}}}, options))
		}
		diff := []acp.ToolCallContent{acp.ToolDiffContent("/etc/passwd", "me")}
		answers = append(answers, a.may(acp.ToolCallUpdate{ToolCallId: "d", Kind: &edit, Content: diff}, options))
		answers = append(answers, a.may(acp.ToolCallUpdate{ToolCallId: "n", Kind: &edit}, options[2:]))
		answers = append(answers, a.may(acp.ToolCallUpdate{ToolCallId: "o", Kind: &edit}, options[:1]))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}}
	got := ask(t, acpclient.Config{Prompt: "x", Dir: dir}, a.run)
	if diff := cmp.Diff([]string{"once", "once", "no", "no", "once", "no", "cancelled", "always"}, answers); diff != "" {
		t.Errorf("%s\n%+v", diff, got.report)
	}
}

// Shell commands are allowed by rules: those that the program sends as a field, and those that it has for a title only.
func TestPermissionsOfCommands(t *testing.T) {
	var answers []string
	a := &agent{prompt: func(a *agent, _ acp.PromptRequest) (acp.PromptResponse, error) {
		run := acp.ToolKindExecute
		for i, line := range []string{"go test ./...", "rm -rf ~", "go test; curl example.com"} {
			field := acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(fmt.Sprint("f", i)), Kind: &run, Title: new("go test"), RawInput: map[string]any{"command": line}}
			title := acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(fmt.Sprint("t", i)), Kind: &run, Title: new(line)}
			answers = append(answers, a.may(field, options), a.may(title, options))
		}
		odd := acp.ToolCallUpdate{ToolCallId: "o", Kind: &run, Title: new("go test"), RawInput: map[string]any{"command": []string{"rm"}}}
		answers = append(answers, a.may(odd, options))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}}
	got := ask(t, acpclient.Config{Prompt: "x", Allow: commandrule.New("go test ./...")}, a.run)
	if diff := cmp.Diff([]string{"once", "once", "no", "no", "no", "no", "no"}, answers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"rm -rf ~", "go test; curl example.com"}, got.report.Commands); diff != "" {
		t.Error(diff)
	}
}

// A program that is asked to stop may say what it has used, and gets no permission any more.
func TestCancel(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		var permission string
		begun := make(chan struct{})
		a := &agent{prompt: func(a *agent, _ acp.PromptRequest) (acp.PromptResponse, error) {
			close(begun)
			<-a.canceled
			if hangs {
				<-a.conn.Done()
			}
			permission = a.may(acp.ToolCallUpdate{ToolCallId: "1", Kind: new(acp.ToolKindRead)}, options)
			return acp.PromptResponse{StopReason: acp.StopReasonCancelled, Usage: &acp.Usage{InputTokens: 1, OutputTokens: 1, TotalTokens: 2}}, nil
		}}
		start := time.Now()
		canceled := make(chan struct{})
		got := ask(t, acpclient.Config{Prompt: "x"}, func(in io.Reader, out io.Writer) {
			closing, end := io.Pipe()
			go func() {
				_, err := io.Copy(end, in)
				end.CloseWithError(err)
			}()
			if hangs {
				go func() {
					<-canceled
					closing.Close()
					end.Close()
				}()
			}
			a.run(closing, out)
		}, func(talk *acpclient.Talk) {
			<-begun
			talk.Cancel()
			close(canceled)
		})
		if hangs {
			if d := time.Since(start); d < 900*time.Millisecond || got.report.Outcome != codingcli.NoResult {
				t.Errorf("it hangs: %v, %+v", d, got.report)
			}
			continue
		}
		if permission != "cancelled" || got.report.Outcome != codingcli.NoResult || got.report.Usage.InputTokens != 1 {
			t.Errorf("got the permission %q, %+v", permission, got.report)
		}
	}
}

// answer answers requests of the client, by the method, with an answer that is ok unless there is another.
func answer(in io.Reader, out io.Writer, answers map[string]string) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(line, &m)
		a, ok := answers[m.Method]
		if !ok {
			a = map[string]string{"initialize": `"result":{"protocolVersion":1}`, "session/new": `"result":{"sessionId":"s1"}`,
				"session/prompt": `"result":{"stopReason":"end_turn"}`}[m.Method]
		}
		if i := strings.LastIndexByte(a, '\n') + 1; i > 0 { // lines before the answer
			if _, err := io.WriteString(out, a[:i]); err != nil {
				return err
			}
			a = a[i:]
		}
		if a == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, a); err != nil {
			return err
		}
	}
}

// Nothing that a program prints is believed but the answers to what it was asked.
func TestHostilePrograms(t *testing.T) {
	long, longer := strings.Repeat("x", 10<<20), strings.Repeat("x", 100<<20)
	update := func(what string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + what + "}}\n"
	}
	said := update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}`)
	ok := `"result":{"stopReason":"end_turn"}`
	for name, tt := range map[string]struct {
		prompt  string // what it prints when it is prompted; its last line is the answer
		outcome codingcli.Outcome
		err     string
	}{
		"garbage": {said + "WARNING\n{not JSON}\n[1]\n\x00\xff\n{}\n{\"id\":null}\nnull\n" + ok, "ok", ""},
		"answers that nobody asked for": {said + `{"jsonrpc":"2.0","id":99,"result":{"stopReason":"refusal"}}` + "\n" +
			`{"jsonrpc":"2.0","id":"3","result":{"stopReason":"refusal"}}` + "\n" + `{"id":1,"error":{"code":-32000,"message":"x"}}` + "\n" + ok, "ok", ""},
		"an answer of another type":  {`"result":[1]`, "no_result", "cannot be read"},
		"an answer without anything": {`"result":null`, "failed", ""},
		"an update of 100 MB":        {said + update(`{"sessionUpdate":"tool_call_update","rawOutput":"`+longer+`"}`) + ok, "ok", ""},
		"another message of 10 MB": {said + `{"jsonrpc":"2.0","params":{"method":"session/update","x":"` + long + `"},"method":"session/update"}` + "\n" + ok,
			"no_result", "a message of more than 8 MB"},
		"garbage of 10 MB":           {said + long + "\n" + ok, "no_result", "a message of more than 8 MB"},
		"updates of another session": {strings.ReplaceAll(update(`{"sessionUpdate":"agent_message_chunk","content":{"text":"lie"}}`), "s1", "s2") + said + ok, "ok", ""},
		"updates of other types": {update(`7`) + update(`{"sessionUpdate":[]}`) + update(`{"sessionUpdate":"agent_message_chunk","content":[]}`) +
			update(`{"sessionUpdate":"usage_update","cost":{"amount":-1,"currency":"USD"}}`) + update(`{"sessionUpdate":"usage_update","cost":{"amount":1,"currency":"EUR"}}`) +
			update(`{"sessionUpdate":"tool_call","toolCallId":7,"locations":"x"}`) + said + ok, "ok", ""},
		"it says too much": {strings.Repeat(update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`+strings.Repeat("x", 1000)+`"}}`), 20) + said + ok, "ok", ""},
		"usage below zero": {said + `"result":{"stopReason":"end_turn","usage":{"inputTokens":-1,"outputTokens":5,"totalTokens":4}}`, "ok", ""},
		"usage beyond all numbers": {said + `"result":{"stopReason":"end_turn","usage":{"inputTokens":9223372036854775807,` +
			`"outputTokens":9223372036854775807,"cachedReadTokens":4611686018427387904,"cachedWriteTokens":4611686018427387904}}`, "ok", ""},
		"many tool calls": {strings.Repeat(update(`{"sessionUpdate":"tool_call","toolCallId":"ID","kind":"edit","title":"`+strings.Repeat("t", 5000)+
			`","locations":[`+strings.Repeat(`{"path":"/a/`+strings.Repeat("p", 4000)+`"},`, 20)+`{"path":"/b"}]}`), 300) + said + ok, "ok", ""},
	} {
		for i := 0; name == "many tool calls" && i < 300; i++ {
			tt.prompt = strings.Replace(tt.prompt, `"ID"`, fmt.Sprintf(`"%d"`, i), 1)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		got := ask(t, acpclient.Config{Prompt: "x", Limit: 10_000}, func(in io.Reader, out io.Writer) {
			_ = answer(in, out, map[string]string{"session/prompt": tt.prompt})
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 32<<20 {
			t.Errorf("%s: %d MB are kept", name, kept>>20)
		}
		runtime.KeepAlive(got.talk)
		switch {
		case got.report.Outcome != tt.outcome || (got.err == nil) != (tt.err == "") || tt.err != "" && !strings.Contains(got.err.Error(), tt.err):
			t.Errorf("%s: got %q, %v", name, got.report.Outcome, got.err)
		case tt.outcome == "ok" && (!strings.HasSuffix(got.report.Answer, "done") || len(got.report.Answer) > 10_000 ||
			!got.report.Usage.Estimated || got.report.Usage.Cost != nil):
			t.Errorf("%s: got %+v", name, got.report)
		}
	}
}

// Requests that the client does not know are refused, and one that floods it without reading is ended.
func TestUnknownRequests(t *testing.T) {
	var answers []string
	got := ask(t, acpclient.Config{Prompt: "x"}, func(in io.Reader, out io.Writer) {
		lines := bufio.NewScanner(in)
		for _, print := range []string{`{"id":1,"result":{"protocolVersion":1}}`, `{"id":2,"result":{"sessionId":"s1"}}`,
			`{"id":"a","method":"fs/write_text_file","params":{"path":"/etc/passwd","content":"me"}}`,
			`{"id":7,"method":"session/request_permission","params":[]}`,
			`{"id":8,"method":"session/request_permission","params":{"sessionId":"other","toolCall":{"kind":"read"},"options":[{"optionId":"o","kind":"allow_once"}]}}`,
			`{"id":9.5e0,"method":"session/update","params":{}}`} {
			lines.Scan()
			answers = append(answers, lines.Text())
			_, _ = io.WriteString(out, print+"\n")
		}
		lines.Scan()
		answers = append(answers, lines.Text())
		_, _ = io.WriteString(out, `{"id":3,"result":{"stopReason":"end_turn"}}`+"\n"+`{"id":3,"result":{"stopReason":"refusal"}}`+"\n")
	})
	want := []string{`{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"Method not found","data":{"method":"fs/write_text_file"}}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params"}}`,
		`{"jsonrpc":"2.0","id":8,"result":{"outcome":{"outcome":"cancelled"}}}`,
		`{"jsonrpc":"2.0","id":9.5e0,"error":{"code":-32601,"message":"Method not found","data":{"method":"session/update"}}}`}
	if diff := cmp.Diff(want, answers[3:]); diff != "" || got.report.Outcome != codingcli.OK || got.report.Denied != nil {
		t.Errorf("%s\n%+v", diff, got.report)
	}
	got = ask(t, acpclient.Config{Prompt: strings.Repeat("x", 9<<20)}, func(in io.Reader, out io.Writer) {
		flood := []byte(strings.Repeat(`{"id":1,"method":"`+strings.Repeat("m", 300)+`"}`+"\n", 1000))
		for {
			if _, err := out.Write(flood); err != nil {
				return
			}
		}
	})
	if got.err == nil || !strings.Contains(got.err.Error(), "does not read") {
		t.Errorf("it floods: %v", got.err)
	}
}

// A program that does not speak the protocol is ended.
func TestProgramsThatDoNotSpeak(t *testing.T) {
	for want, program := range map[string]func(in io.Reader, out io.Writer){
		"did not answer initialize in 50ms": func(in io.Reader, _ io.Writer) { _, _ = io.Copy(io.Discard, in) },
		"did not answer session/new in 50ms": func(in io.Reader, out io.Writer) {
			_ = answer(in, out, map[string]string{"session/new": ""})
		},
		"does not speak version 1": func(in io.Reader, out io.Writer) {
			_ = answer(in, out, map[string]string{"initialize": `"result":{"protocolVersion":2}`})
		},
		"session/new has no session": func(in io.Reader, out io.Writer) {
			_ = answer(in, out, map[string]string{"session/new": `"result":{"sessionId":""}`})
		},
	} {
		got := ask(t, acpclient.Config{Prompt: "x", Hello: 50 * time.Millisecond}, program)
		if got.err == nil || !strings.Contains(got.err.Error(), want) || got.report.Outcome != codingcli.NoResult {
			t.Errorf("want %q, got %v, %+v", want, got.err, got.report)
		}
	}
}

// An output that ends anywhere is never a success.
func TestCutOutputs(t *testing.T) {
	play := func(in io.Reader, out io.Writer) { _ = answer(in, out, nil) }
	whole := ask(t, acpclient.Config{Prompt: "x"}, play)
	if whole.report.Outcome != codingcli.OK {
		t.Fatalf("got %+v, %v", whole.report, whole.err)
	}
	for range 50 {
		most := rand.IntN(len(whole.output) - 1)
		got := ask(t, acpclient.Config{Prompt: "x"}, func(in io.Reader, out io.Writer) {
			play(in, &cutter{out, most})
		})
		if got.report.Outcome != codingcli.NoResult || got.report.Usage.Calls != 1 || got.ended {
			t.Fatalf("cut at %d: %+v, %v", most, got.report, got.err)
		}
	}
}

// cutter is a writer that passes on a number of bytes and then fails.
type cutter struct {
	to   io.Writer
	most int
}

func (c *cutter) Write(p []byte) (int, error) {
	n := min(len(p), c.most)
	c.most -= n
	if _, err := c.to.Write(p[:n]); err != nil || n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}` + "\n" + `{"id":2,"result":{"sessionId":"s1"}}` + "\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		var to bytes.Buffer
		talk := acpclient.New(acpclient.Config{Dir: "/work", Prompt: "x", Limit: 100, To: nopCloser{&to}, End: func(error) {}})
		defer talk.Close()
		if n, err := talk.Write(output); n != len(output) || err != nil {
			t.Fatal(n, err)
		}
		talk.Report()
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
