// SPDX-License-Identifier: Apache-2.0

// Package acpclient asks a program that speaks the Agent Client Protocol to do one thing, over its standard input and
// output: https://agentclientprotocol.com.
//
//	talk := acpclient.New(acpclient.Config{Dir: dir, Prompt: prompt, Permissions: codingcli.Edit, To: stdin, End: end})
//	cmd.Stdout = talk
//	…
//	report := talk.Report()
//
// The program is not trusted. It is read in one goroutine, message by message; a message has at most 8 MB, what is kept
// of them is bounded, and nothing waits for the program to read. So the types of the protocol's Go SDK are used here
// and not its connection, which begins a goroutine for each request of the program and ends at a flood of updates.
package acpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/values/limited"
)

// Bounds of what a program can make this process keep, in bytes and numbers.
const (
	longestMessage = 8 << 20 // a request for permission can have a whole file in it
	mostUnread     = 8 << 20 // that the program has not read, besides the prompt
	longestName    = 200     // an ID, or the title of a tool call
	longestPath    = 4096
	mostCalls      = 200 // tool calls that are not done
	mostPaths      = 50  // of one of them
	mostDenied     = 100
	longestCommand = 16 << 10
)

// Waits.
const (
	// Hello is how long a program may take until its session has begun; the first start of some installs things.
	Hello = 2 * time.Minute
	// goodbye is how long it may take to answer that it was canceled.
	goodbye = time.Second
)

// Config says what to ask.
type Config struct {
	// Dir is the absolute path of the folder in which the program works.
	Dir string
	// Prompt is what it is asked to do.
	Prompt string
	// Continues lets the program go on with Conversation, if that is not empty, and else lets only one begin that can be
	// gone on with. Of a program that copies conversations, it is a copy. Of one that can only load them, it is the
	// conversation itself, if the prompts in it are those of Asked and no others: it may have prompts since then that were
	// undone, or failed. A program that does not have it begins a new one, and Report.Renewed says why. One that can do
	// neither is not asked, and Report.Unable is true.
	Continues bool
	// Conversation is the ID, and Asked the Report.Asked, of the conversation to go on with.
	Conversation, Asked string
	// Permissions choose the program's mode, and answer its requests for permission.
	Permissions codingcli.Permissions
	// Allow are the shell commands that the program may run besides; nil is none.
	Allow *commandrule.Rules
	// Limit is how many bytes of what it says after its last tool call are kept, from the end.
	Limit int64
	// To is the program's standard input.
	To io.WriteCloser
	// Hello replaces [Hello]; 0 is that.
	Hello time.Duration
	// Heard is called at each output; nil is allowed.
	Heard func()
	// Doing is called with the title of each tool call; nil is allowed.
	Doing func(words string)
	// End is called once, and may not wait: with nil when the program has answered, or with the reason why it has to be
	// ended.
	End func(error)
}

// Talk is one conversation. It is the writer for the program's standard output.
type Talk struct {
	cfg   Config
	out   *outbox
	hello *time.Timer

	mu       sync.Mutex
	line     []byte // that has begun
	long     bool   // it is too long, and the rest of it is dropped
	id       int    // of the last request
	answered func(result json.RawMessage, failed *acp.RequestError)
	asked    string // the method of that request, until it is answered
	session  acp.SessionId
	loaded   bool      // the conversation is the one that Config names, and no copy
	prompts  hash.Hash // of the prompts in the conversation; nil if they are not known
	canceled bool
	done     chan struct{} // closed at the end
	ended    bool
	report   codingcli.Report

	folder  codingcli.Folder
	calls   map[acp.ToolCallId]*toolCall
	tools   bool         // there was a tool call
	said    limited.Tail // the last message
	next    bool         // what it says next is a new message
	message string       // ID of that message; "" of many

	each     usage // of the requests to its model, where it reports each
	opencode bool  // what it reports of its usage is less than it says
	costs    bool  // the cost that it reports is that of its process, and not that of the conversation
	broken   bool  // it has said that its conversation is in error
}

// toolCall is what is known of a tool call that is not done.
type toolCall struct {
	kind    acp.ToolKind
	title   string
	command string // of a call that runs one
	paths   []string
	outside bool // one of the paths leads out of the folder
}

// New begins the conversation.
func New(cfg Config) *Talk {
	if cfg.Hello == 0 {
		cfg.Hello = Hello
	}
	t := &Talk{
		cfg: cfg, done: make(chan struct{}), said: limited.Tail{Most: cfg.Limit}, calls: make(map[acp.ToolCallId]*toolCall),
		report: codingcli.Report{Outcome: codingcli.NoResult, Usage: budget.Usage{Calls: 1, Estimated: true}},
	}
	t.folder = codingcli.NewFolder(cfg.Dir)
	t.out = newOutbox(cfg.To, mostUnread+int64(len(cfg.Prompt)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hello = time.AfterFunc(cfg.Hello, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.end(fmt.Errorf("it did not answer %s in %s; does it need an option to speak the Agent Client Protocol?", t.asked, cfg.Hello))
	})
	t.call(acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "refrain", Version: "1"},
	}, t.initialized)
	return t
}

// Report is what the program has reported by now.
func (t *Talk) Report() codingcli.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	if r.Said == "" {
		r.Said = t.said.String()
	}
	return r
}

// Close ends the conversation when the program has ended.
func (t *Talk) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.hello.Stop()
	t.out.close()
}

// Cancel asks the program to stop, and waits a moment for its answer.
func (t *Talk) Cancel() {
	t.mu.Lock()
	waits := t.asked == acp.AgentMethodSessionPrompt && !t.ended && !t.canceled
	if waits {
		t.canceled = true
		t.send(message{Method: acp.AgentMethodSessionCancel, Params: encode(acp.CancelNotification{SessionId: t.session})})
	}
	t.mu.Unlock()
	if waits {
		select {
		case <-t.done:
		case <-time.After(goodbye):
		}
	}
}

// end is the end of the conversation. t.mu is locked.
func (t *Talk) end(err error) {
	if t.ended {
		return
	}
	t.ended, t.answered = true, nil
	t.hello.Stop()
	close(t.done)
	t.out.close()
	t.cfg.End(err)
}

// message is a message of JSON-RPC.
type message struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *acp.RequestError `json:"error,omitempty"`
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil { // the types are the protocol's
		panic(err)
	}
	return data
}

func (t *Talk) send(m message) {
	m.Version = "2.0"
	if !t.out.send(append(encode(m), '\n')) {
		t.end(errors.New("it does not read what it is sent"))
	}
}

// call sends a request. then gets its answer.
func (t *Talk) call(method string, params any, then func(json.RawMessage, *acp.RequestError)) {
	t.id++
	t.asked, t.answered = method, then
	t.send(message{ID: encode(t.id), Method: method, Params: encode(params)})
}

// Write takes what the program prints. It returns no error: the program is ended by End.
func (t *Talk) Write(p []byte) (int, error) {
	if t.cfg.Heard != nil {
		t.cfg.Heard()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for len(p) > 0 && !t.ended {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		p = rest
		if t.long = t.long || len(t.line)+len(part) > longestMessage; !t.long {
			t.line = append(t.line, part...)
		}
		if !whole {
			break
		}
		t.read(t.line, t.long)
		t.line, t.long = t.line[:0], false
		if cap(t.line) > longestMessage/8 {
			t.line = nil
		}
	}
	return n, nil
}

// read takes a line. What is no message is passed over: programs print other things too.
func (t *Talk) read(line []byte, long bool) {
	if long {
		if methodOf(line) != acp.ClientMethodSessionUpdate {
			t.end(fmt.Errorf("it sent a message of more than %d MB", longestMessage>>20))
		}
		if t.asked == acp.AgentMethodSessionLoad {
			t.asks("a prompt that is too long") // it may be one
		}
		return
	}
	var m message
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return
	}
	id := len(m.ID) > 0 && !bytes.Equal(m.ID, []byte("null"))
	switch {
	case m.Method == acp.ClientMethodSessionUpdate && !id:
		t.updated(m.Params)
	case m.Method != "" && id && len(m.ID) <= longestName:
		t.request(m)
	case m.Method == "" && id && t.answered != nil && bytes.Equal(m.ID, encode(t.id)):
		then := t.answered
		t.answered = nil
		then(m.Result, m.Error)
	}
}

// methodOf is the method of a message whose end is missing; empty if it stands there.
func methodOf(line []byte) string {
	dec := json.NewDecoder(bytes.NewReader(line))
	depth, key := 0, ""
	for {
		token, err := dec.Token()
		if err != nil {
			return ""
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
			key = ""
		case string:
			switch {
			case depth == 1 && key == "method":
				return v
			case depth == 1 && key == "":
				key = v
			default:
				key = ""
			}
		default:
			key = ""
		}
	}
}

// outbox writes to the program without waiting for it.
type outbox struct {
	most int64

	mu     sync.Mutex
	more   *sync.Cond
	unread []byte
	closed bool
}

func newOutbox(to io.WriteCloser, most int64) *outbox {
	o := &outbox{most: most}
	o.more = sync.NewCond(&o.mu)
	go o.run(to)
	return o
}

// send reports whether there was room.
func (o *outbox) send(data []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int64(len(o.unread)+len(data)) > o.most {
		return false
	}
	o.unread = append(o.unread, data...)
	o.more.Signal()
	return true
}

// close closes the program's standard input after what was sent.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

func (o *outbox) run(to io.WriteCloser) {
	defer to.Close()
	for {
		o.mu.Lock()
		for len(o.unread) == 0 && !o.closed {
			o.more.Wait()
		}
		data := o.unread
		o.unread = nil
		o.mu.Unlock()
		if len(data) == 0 {
			return
		}
		if _, err := to.Write(data); err != nil { // it has ended, and says so by its output
			return
		}
	}
}
