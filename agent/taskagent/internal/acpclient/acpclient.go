// SPDX-License-Identifier: Apache-2.0

// Package acpclient gives one prompt to a program that speaks the Agent Client Protocol, over its standard input and
// output: https://agentclientprotocol.com.
//
//	talk := acpclient.New(acpclient.Config{Dir: dir, Prompt: prompt, Permissions: codingcli.Edit, To: stdin, End: end})
//	cmd.Stdout = talk
//	…
//	report := talk.Report()
//
// The program is not trusted. One goroutine reads its messages in order. A message has at most 8 MB, the kept data is
// bounded, and nothing waits for the program to read. Therefore the package uses the types of the protocol's Go SDK but not
// its connection, which starts a goroutine for each request of the program and ends when it gets too many updates.
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

// Bounds of the data of a program that this process keeps. A length is in bytes.
const (
	longestMessage = 8 << 20 // a request for permission can have a whole file in it
	mostUnread     = 8 << 20 // bytes sent that the program has not read, without the prompt
	longestName    = 200     // an ID, or the title of a tool call
	longestPath    = 4096
	mostCalls      = 200 // tool calls that are not done
	mostPaths      = 50  // the paths of one tool call
	mostDenied     = 100 // the names of denied tools
	longestCommand = 16 << 10
)

// Time limits.
const (
	// Hello is how long a program may take until its session has begun. Some programs install files at their first start.
	Hello = 2 * time.Minute
	// goodbye is how long a program may take to answer after it was canceled.
	goodbye = time.Second
)

// Config describes the prompt and the conversation for [New].
type Config struct {
	// Dir is the absolute path of the folder in which the program works.
	Dir string
	// Prompt is the text for the program.
	Prompt string
	// Continues requires a conversation that can be continued later. If Conversation is not empty, the program continues it.
	// A program that can copy conversations continues a copy. A program that can only load them continues the conversation
	// itself, if its prompts are exactly those of Asked; otherwise it may contain later prompts that failed or were undone.
	// A program that cannot continue Conversation begins a new one, and Report.Renewed gives the reason. A program that can
	// neither copy nor load conversations gets no prompt, and Report.Unable is true.
	Continues bool
	// Conversation is the ID of the conversation to continue, and Asked the Report.Asked of its last prompt.
	Conversation, Asked string
	// Permissions choose the program's mode, and the answers to its requests for permission.
	Permissions codingcli.Permissions
	// Allow has the shell commands that the program may run in addition; nil allows none.
	Allow *commandrule.Rules
	// Limit is the number of bytes that are kept of the program's last message, from its end.
	Limit int64
	// To is the program's standard input.
	To io.WriteCloser
	// Hello replaces the time limit [Hello]; 0 means [Hello].
	Hello time.Duration
	// Heard is called at each output of the program; nil is allowed.
	Heard func()
	// Doing is called with the title of each tool call and the message before it, which may be empty; nil is allowed.
	Doing func(words string)
	// Script gets the messages and tool calls; nil is allowed.
	Script *codingcli.Transcript
	// End is called once, when the conversation ends. Its argument is nil if the program has answered, and otherwise the
	// reason for which the caller must end the program. End must not block.
	End func(error)
}

// Talk is one conversation with a program. It is also the writer for the program's standard output.
type Talk struct {
	cfg   Config
	out   *outbox
	hello *time.Timer

	mu       sync.Mutex
	line     line
	request  request
	session  acp.SessionId
	loaded   bool      // the conversation is the one that Config names, and not a copy
	prompts  hash.Hash // the hash of the prompts in the conversation; nil if they are not known
	canceled bool
	done     chan struct{} // closed at the end
	ended    bool
	broken   bool // the program has reported an error of its conversation
	report   codingcli.Report

	folder codingcli.Folder
	calls  map[acp.ToolCallId]*toolCall
	tools  bool // there was a tool call
	last   lastMessage
	usage  reportedUsage
}

// line is the line that is being read and is not complete yet.
type line struct {
	text    []byte
	tooLong bool // the rest is dropped
}

// request is the last request to the program.
type request struct {
	id     int
	method string
	then   func(result json.RawMessage, failed *acp.RequestError) // gets the answer; nil after that
}

// lastMessage is the last message of the agent.
type lastMessage struct {
	id       string // many programs give none
	text     limited.Tail
	complete bool // the next text begins a new message
}

// reportedUsage is what a program says about its usage before the end, and what its numbers mean.
type reportedUsage struct {
	sum           usage // of the single requests to the model, if the program reports it
	onlyLast      bool  // the usage at the end is that of the last request only
	costOfProcess bool  // the cost is that of the process, and not that of the conversation
}

// toolCall has the known facts about a tool call that is not done.
type toolCall struct {
	kind    acp.ToolKind
	title   string
	command string // the shell command, if the call runs one
	paths   []string
	outside bool // one of the paths leads out of the folder

	announced bool // it is in the transcript
}

// New sends the first request to the program and returns the conversation.
func New(cfg Config) *Talk {
	if cfg.Hello == 0 {
		cfg.Hello = Hello
	}
	t := &Talk{
		cfg: cfg, done: make(chan struct{}), last: lastMessage{text: limited.Tail{Most: cfg.Limit}}, calls: make(map[acp.ToolCallId]*toolCall),
		report: codingcli.Report{Outcome: codingcli.NoResult, Usage: budget.Usage{Calls: 1, Estimated: true}},
	}
	t.folder = codingcli.NewFolder(cfg.Dir)
	t.out = newOutbox(cfg.To, mostUnread+int64(len(cfg.Prompt)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hello = time.AfterFunc(cfg.Hello, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.end(fmt.Errorf("it did not answer %s in %s; does it need an option to speak the Agent Client Protocol?", t.request.method, cfg.Hello))
	})
	t.call(acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "refrain", Version: "1"},
	}, t.onInitialize)
	return t
}

// Report returns a report of what the program has sent so far.
func (t *Talk) Report() codingcli.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	if r.Answer == "" {
		r.Answer = t.last.text.String()
	}
	return r
}

// Close ends the conversation. Call it when the program has ended.
func (t *Talk) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.hello.Stop()
	t.out.close()
}

// Cancel asks the program to stop, and waits up to one second for its answer. It does nothing before the prompt.
func (t *Talk) Cancel() {
	t.mu.Lock()
	waits := t.request.method == acp.AgentMethodSessionPrompt && !t.ended && !t.canceled
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

// end ends the conversation and calls Config.End with err. t.mu must be locked.
func (t *Talk) end(err error) {
	if t.ended {
		return
	}
	t.ended, t.request.then = true, nil
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
	if err != nil { // cannot happen: the protocol's types can be encoded
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

// call sends a request, and calls then with its answer.
func (t *Talk) call(method string, params any, then func(json.RawMessage, *acp.RequestError)) {
	t.request.id++
	t.request.method, t.request.then = method, then
	t.send(message{ID: encode(t.request.id), Method: method, Params: encode(params)})
}

// Write reads the program's output. It never returns an error, because Config.End ends the program after a mistake.
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
		if t.line.tooLong = t.line.tooLong || len(t.line.text)+len(part) > longestMessage; !t.line.tooLong {
			t.line.text = append(t.line.text, part...)
		}
		if !whole {
			break
		}
		t.read(t.line.text, t.line.tooLong)
		t.line.text, t.line.tooLong = t.line.text[:0], false
		if cap(t.line.text) > longestMessage/8 {
			t.line.text = nil
		}
	}
	return n, nil
}

// read handles a line of output; long reports that its end is missing. It ignores a line that is not a message, because
// programs print other text too.
func (t *Talk) read(line []byte, long bool) {
	if long {
		if methodOf(line) != acp.ClientMethodSessionUpdate {
			t.end(fmt.Errorf("it sent a message of more than %d MB", longestMessage>>20))
		}
		if t.request.method == acp.AgentMethodSessionLoad {
			t.hashPrompt("a prompt that is too long") // the line may be a prompt, so the hash must differ
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
		t.update(m.Params)
	case m.Method != "" && id && len(m.ID) <= longestName:
		t.answerRequest(m)
	case m.Method == "" && id && t.request.then != nil && bytes.Equal(m.ID, encode(t.request.id)):
		then := t.request.then
		t.request.then = nil
		then(m.Result, m.Error)
	}
}

// methodOf returns the method of a message whose end is missing. It returns "" if the method is in the missing part.
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

// outbox writes to the program in a goroutine of its own, so that no caller waits for the program.
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

// send adds data to the unread data. It reports whether there was room for it.
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

// close lets the outbox close the program's standard input after it has written all data.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
}

// run writes the data to the program until the outbox is closed or a write fails.
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
		if _, err := to.Write(data); err != nil { // the program has ended; its caller notices this
			return
		}
	}
}
