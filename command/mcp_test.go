// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpProcess is refrain mcp in a process of its own, with a client of the official SDK.
type mcpProcess struct {
	*mcp.ClientSession
	testing.TB
	cmd *exec.Cmd
	in  io.Closer
	out *seen // all that it has written
	err *said
}

// said is what a process has written to its standard error.
type said struct {
	mu   sync.Mutex
	all  bytes.Buffer
	more chan struct{} // closed with the next piece
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return s.all.Write(b)
}

// says waits until the process has said something.
func (p *mcpProcess) says(what string) {
	for {
		p.err.mu.Lock()
		all, more := p.err.all.String(), p.err.more
		p.err.mu.Unlock()
		if strings.Contains(all, what) {
			return
		}
		<-more
	}
}

// seen is a reader of which all that was read is kept.
type seen struct {
	io.ReadCloser
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *seen) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(b[:n])
	return n, err
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

func startMCP(t *testing.T, dir string, tell func(string)) *mcpProcess {
	t.Helper()
	p := &mcpProcess{TB: t, cmd: exec.Command("refrain", "mcp", "--dir", dir, "--store", "sqlite:"+filepath.Join(dir, "runs.db"))}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out, p.err = in, &seen{ReadCloser: out}, &said{more: make(chan struct{})}
	p.cmd.Stderr = p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			if tell != nil {
				tell(req.Params.Message)
			}
		},
	})
	p.ClientSession, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: p.out, Writer: in}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, &p.err.all)
	}
	return p
}

// mcpResult is what a tool tells of a run.
type mcpResult struct {
	Run, Status, Result string
	StopReason          string `json:"stop_reason"`
	Waits               []struct{ ID, Text string }
	Runs                []mcpResult
	refused             string
}

func (p *mcpProcess) call(tool string, args map[string]any) (out mcpResult) {
	p.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("token")
	res, err := p.CallTool(p.Context(), params)
	if err != nil {
		p.Fatalf("%s: %v", tool, err)
	}
	if res.IsError {
		out.refused = res.Content[0].(*mcp.TextContent).Text
		return out
	}
	data, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		p.Fatalf("%s: %v: %s", tool, err, data)
	}
	return out
}

// leave ends the client, and expects the server to end too, having written nothing but the protocol.
func (p *mcpProcess) leave() {
	p.Helper()
	_ = p.in.Close() // unless the client has done so
	if err := p.Wait(); err != nil {
		p.Logf("the client ends with %v", err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("refrain mcp: %v: %s", err, &p.err.all)
	}
	for line := range strings.Lines(p.out.String()) {
		var msg struct{ JSONRPC string }
		if err := json.Unmarshal([]byte(line), &msg); err != nil || msg.JSONRPC != "2.0" {
			p.Errorf("standard output has %q", line)
		}
	}
}

// slow is a definition whose first iteration lasts as long as a test wants.
type slow struct {
	testing.TB
	dir string
}

func makeSlow(t *testing.T, dir string) slow {
	write(t, filepath.Join(dir, "slow.yaml"), `name: slow
max_iterations: 2
state: {n: 0}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: work, command: [sh, work.sh], env: {N: "{{n}}"}}
  - {name: say, text: "{{n}} times"}
`)
	write(t, filepath.Join(dir, "work.sh"), "[ $N = 1 ] || exit 0\necho > began\nread x < go\n")
	for _, name := range []string{"began", "go"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return slow{t, dir}
}

// began waits until the first iteration is under way.
func (s slow) began() {
	if _, err := os.ReadFile(filepath.Join(s.dir, "began")); err != nil {
		s.Fatal(err)
	}
}

// goOn lets it end.
func (s slow) goOn() { write(s.TB.(*testing.T), filepath.Join(s.dir, "go"), "\n") }

// G8, G9: a client of the official SDK drives a run over standard input and output, from start to answer.
// The run goes on in the next process when the client has left in the middle, and whatever a definition
// prints is not on standard output.
func TestMCPOverStandardInputAndOutput(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "letter.yaml"), `name: letter
max_iterations: 2
state: {height: 0}
score: {key: height, target: 50.0}
sub_agents:
  - {name: write, command: [sh, -c, "echo draft; echo noise >&2"], output_key: draft}
  - {name: rate, set: {height: iteration * 3}}
  - {name: editor, question: "Shall {{draft}} go out?"}
  - {name: say, text: "It is {{draft}}."}
`)
	slow := makeSlow(t, dir)
	told := make(chan string, 100)
	p := startMCP(t, dir, func(message string) { told <- message })
	asked := p.call("run", map[string]any{"definition": "letter"})
	if asked.Status != "waiting" || len(asked.Waits) != 1 || asked.Waits[0].Text != "Shall draft go out?" {
		t.Fatalf("the run tells %+v", asked)
	}
	if refused := p.call("run", map[string]any{"text": "name: a\ncommand: [touch, here]\n"}).refused; !strings.Contains(refused, "--allow-commands") {
		t.Errorf("a program that a client sends: %q", refused)
	}
	if refused := p.call("run", map[string]any{"definition": "../letter"}).refused; !strings.Contains(refused, "cannot be the name") {
		t.Errorf("a path: %q", refused)
	}
	if refused := p.call("run", map[string]any{"text": strings.Repeat("x", 5<<20)}).refused; !strings.Contains(refused, "the limit is 4194304 bytes") {
		t.Errorf("much: %q", refused)
	}
	p.leave()

	p = startMCP(t, dir, func(message string) { told <- message })
	if next := p.call("answer", map[string]any{"run": asked.Run, "value": true}); next.Status != "waiting" {
		t.Fatalf("answered, the run tells %+v", next)
	}
	done := p.call("answer", map[string]any{"run": asked.Run, "value": true})
	if done.Status != "completed" || done.StopReason != "max_iterations" || done.Result != "It is draft." {
		t.Errorf("answered twice, the run tells %+v", done)
	}
	for message := range told {
		if message == "iteration 2 of 2, best 6" {
			break
		} else if message != "iteration 1 of 2, best 3" {
			t.Fatalf("the progress is %q", message)
		}
	}
	run := p.call("run", map[string]any{"definition": "slow", "wait": false}).Run
	waits := make(chan mcpResult, 1)
	go func() { // the client goes away while it waits
		res, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch", Arguments: map[string]any{"run": run}})
		waits <- mcpResult{refused: fmt.Sprint(res, err)}
	}()
	slow.began()
	slow.goOn()
	p.leave()
	<-waits

	p = startMCP(t, dir, nil)
	if done := p.call("watch", map[string]any{"run": run}); done.Status != "completed" || done.Result != "2 times" {
		t.Errorf("in the end the run tells %+v", done)
	}
	if runs := p.call("list_runs", nil).Runs; len(runs) != 2 {
		t.Errorf("the runs are %+v", runs)
	}
	p.leave()
}

// A signal ends the server in order, with the wait of its client: the run is paused.
func TestMCPIsStopped(t *testing.T) {
	dir := t.TempDir()
	slow := makeSlow(t, dir)
	p := startMCP(t, dir, nil)
	waits := make(chan mcpResult, 1)
	go func() {
		res, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"definition": "slow"}})
		waits <- mcpResult{refused: fmt.Sprint(res, err)}
	}()
	slow.began()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.says("Pausing the runs after their running steps")
	slow.goOn()
	<-waits
	p.says("Stopped. The runs that are paused now go on")
	p.leave()
}

// G9: a line that is no message is answered, as JSON-RPC says, and ends nothing.
func TestMCPGoesOnAfterWhatIsNoMessage(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("refrain", "mcp", "--dir", dir, "--store", "sqlite:"+filepath.Join(dir, "runs.db"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 1<<20)
	for _, tt := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"tester","version":"1"}}}`, `"id":1,"result":`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{"starting up...", `"id":null,"error":{"code":-32700,"message":"the line is not JSON`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/li`, `"id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"} {}`, `"id":null,"error":{"code":-32700,`},
		{"", ""},
		{" \t\r", ""},
		{strings.Repeat("x", 17<<20), `"id":null,"error":{"code":-32700,"message":"the line is too long: the limit is 16777216 bytes"`},
		{`{"a":"` + strings.Repeat("x", 33<<20) + `"}`, `"id":null,"error":{"code":-32700,"message":"the line is too long`},
		{`{"jsonrpc":"1.0","id":2,"method":"tools/list"}`, `"id":null,"error":{"code":-32600,`},
		{`[]`, `"id":null,"error":{"code":-32600,`},
		{strings.Repeat("[", 20_000), `"id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}`, ""},
		{`[{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `"id":3,"result":{}`},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/list"}` + "\r", `"name":"list_definitions"`},
	} {
		if _, err := io.WriteString(in, tt.line+"\n"); err != nil {
			t.Fatalf("%.80s: %v: %s", tt.line, err, &stderr)
		}
		if tt.want != "" && (!answers.Scan() || !strings.Contains(answers.Text(), tt.want)) {
			t.Fatalf("%.80s is answered with %.200s, want %s", tt.line, answers.Text(), tt.want)
		}
	}
	// A line that the end cuts is not acted on.
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":5,"method":"pi`); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if !answers.Scan() || !strings.Contains(answers.Text(), `"code":-32700`) || answers.Scan() {
		t.Errorf("a cut line is answered with %s", answers.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("refrain mcp: %v: %s", err, &stderr)
	}
}
