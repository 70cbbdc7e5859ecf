// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/server"
)

// caller is a client of the official SDK.
type caller struct {
	testing.TB
	*mcp.ClientSession

	mu    sync.Mutex
	said  []string // progress
	heard chan struct{}
}

// user answers what a server asks; see mcp.ClientOptions.
type user = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// dialed connects to /mcp in a version of the protocol; the empty one is the newest.
func (s *site) dialed(version string) *caller {
	s.Helper()
	return dial(s, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}, version)
}

// dialAs connects for a user who answers questions: over HTTP in the newest version of the protocol, and beside the client in others.
func (s *site) dialAs(version string, who user) *caller {
	s.Helper()
	if version == "" {
		return dial(s, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}, version, who)
	}
	return s.beside(version, who)
}

func dial(t testing.TB, over mcp.Transport, version string, who ...user) *caller {
	t.Helper()
	who = append(who, nil)
	c := &caller{TB: t, heard: make(chan struct{}, 1000)}
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: who[0],
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.heard <- struct{}{}
			c.said = append(c.said, fmt.Sprintf("%g/%g %s", req.Params.Progress, req.Params.Total, req.Params.Message))
		},
	})
	var err error
	c.ClientSession, err = client.Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// progress waits for the last message, and is what the server has told up to it, but for repetitions.
// A client hears of progress while it reads the result.
func (c *caller) progress(last string) []string {
	c.Helper()
	late := time.After(soon)
	for {
		c.mu.Lock()
		said := slices.Compact(slices.Clone(c.said))
		c.mu.Unlock()
		if len(said) > 0 && said[len(said)-1] == last {
			return said
		}
		select {
		case <-c.heard:
		case <-late:
			c.Fatalf("the progress is %q", said)
		}
	}
}

// outcome is the result of a tool.
type outcome struct {
	Run, Name, Status, Result, Next string
	StopReason                      string `json:"stop_reason"`
	Iteration                       int
	Score                           *float64
	Waits                           []struct {
		ID, Kind, Text string
	}
	Runs        []outcome
	Definitions []struct {
		Name, Problem string
		Valid         bool
		Inputs        []struct {
			Name    string
			Choices []string
		}
	}
	text string
}

// call calls a tool that has to succeed.
func (c *caller) call(tool string, args map[string]any) outcome {
	c.Helper()
	res, err := c.try(c.Context(), tool, args)
	if err != nil {
		c.Fatalf("%s: %v", tool, err)
	}
	text := textOf(res)
	if res.IsError {
		c.Fatalf("%s: %s", tool, text)
	}
	data, err := json.Marshal(res.StructuredContent)
	out := outcome{text: text}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		c.Fatalf("%s: %v: %s", tool, err, data)
	}
	return out
}

func (c *caller) try(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("of " + tool)
	return c.CallTool(ctx, params)
}

// fails calls a tool that has to fail, and say so.
func (c *caller) fails(tool string, args map[string]any, says string) {
	c.Helper()
	res, err := c.try(c.Context(), tool, args)
	if err != nil {
		c.Fatalf("%s: %v", tool, err)
	}
	if text := textOf(res); !res.IsError || !strings.Contains(text, says) || res.StructuredContent != nil {
		c.Errorf("%s answers %q, %v", tool, text, res.StructuredContent)
	}
}

func textOf(res *mcp.CallToolResult) string {
	var all []string
	for _, part := range res.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// climbing is a definition whose score climbs, with a question in each iteration.
const climbing = `name: climbing
max_iterations: 2
inputs:
  from: {type: int, default: 5}
state: {height: 0}
score: {key: height, target: 50.0}
sub_agents:
  - {name: climb, set: {height: int(state.from) + iteration}}
  - {name: ask, question: "On from {{height}}?"}
  - {name: say, text: "At {{height}}.", output_key: said}
`

// versions are versions of the protocol: the newest, which has no handshake, and an old one.
var versions = []string{"", "2025-06-18"}

// G9: a client of the official SDK runs a definition from start to answer, with a question in the
// middle, and is told of each iteration. The log has who answered.
func TestMCPFromStartToAnswer(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s := open(t, map[string]string{"climbing.yaml": climbing, "broken.yaml": "name: broken\nsub_agents: 3\n",
				"mode.yaml": "name: mode\ninputs: {mode: {choices: [fast, slow]}}\ntext: hi {{mode}}\n"})
			c := s.dialed(version)
			all := c.call("list_definitions", nil)
			if len(all.Definitions) != 3 || fmt.Sprint(all.Definitions[2].Inputs[0].Choices) != "[fast slow]" || all.Definitions[0].Valid ||
				all.Definitions[0].Problem == "" ||
				all.Definitions[1].Name != "climbing" || all.Definitions[1].Inputs[0].Name != "from" {
				t.Errorf("the definitions are %+v", all.Definitions)
			}
			asked := c.call("run", map[string]any{"definition": "climbing", "state": map[string]any{"from": 6}})
			if asked.Status != "waiting" || len(asked.Waits) != 1 || asked.Waits[0].Text != "On from 7?" ||
				!strings.Contains(asked.text, "On from 7?") || !strings.Contains(asked.Next, "true or false") {
				t.Fatalf("the run tells %+v", asked)
			}
			id := map[string]any{"run": asked.Run}
			if again := c.call("watch", id); again.Status != "waiting" || again.Waits[0].ID != asked.Waits[0].ID {
				t.Errorf("the watch tells %+v", again)
			}
			c.fails("answer", map[string]any{"run": asked.Run, "value": "perhaps"}, "true or false")
			next := c.call("answer", map[string]any{"run": asked.Run, "value": true, "reason": "the view is good"})
			if next.Status != "waiting" || next.Waits[0].Text != "On from 8?" {
				t.Errorf("the first answer tells %+v", next)
			}
			done := c.call("answer", map[string]any{"run": asked.Run, "question": next.Waits[0].ID, "value": true})
			if done.Status != "completed" || done.StopReason != "max_iterations" || done.Iteration != 2 ||
				done.Result != "At 8." || done.Score == nil || *done.Score != 8 || !strings.Contains(done.text, "At 8.") {
				t.Errorf("the second answer tells %+v", done)
			}
			if told := c.progress("2/2 iteration 2 of 2, best 8"); len(told) != 2 || told[0] != "1/2 iteration 1 of 2, best 7" {
				t.Errorf("the progress is %q", told)
			}
			if log := fmt.Sprint(string(s.ok("GET", "/api/v1/runs/"+asked.Run+"/events", nil, nil).body)); !strings.Contains(log, " over MCP") {
				t.Errorf("the log does not have who answered: %s", log)
			}
			c.fails("answer", map[string]any{"run": asked.Run, "value": true}, "no such question")
			c.fails("resume", id, "add_iterations")
			more := c.call("resume", map[string]any{"run": asked.Run, "add_iterations": 1})
			if more.Status != "waiting" || more.Waits[0].Text != "On from 9?" {
				t.Errorf("resumed, the run tells %+v", more)
			}
			if runs := c.call("list_runs", map[string]any{"status": "waiting"}).Runs; len(runs) != 1 || runs[0].Run != asked.Run {
				t.Errorf("the runs are %+v", runs)
			}
		})
	}
}

// G8: a client that cancels its call, or goes away, ends its wait, and not the run.
func TestMCPCancellation(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g := newGate(t)
			s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
			c := s.dialed(version)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() {
				_, err := c.try(ctx, "run", map[string]any{"definition": "gated"})
				left <- err
			}()
			<-g.came
			leave()
			if err := <-left; err == nil {
				t.Error("the canceled call has a result")
			}
			runs := c.call("list_runs", nil).Runs
			if len(runs) != 1 || runs[0].Status != "running" {
				t.Fatalf("the runs are %+v", runs)
			}
			id := map[string]any{"run": runs[0].Run}
			if now := c.call("watch", map[string]any{"run": runs[0].Run, "wait": false}); now.Status != "running" || now.Next == "" {
				t.Errorf("the watch tells %+v", now)
			}
			c.fails("resume", id, "watch follows it")
			c.call("pause", map[string]any{"run": runs[0].Run, "reason": "lunch"})
			g.let <- struct{}{}
			if now := c.call("watch", id); now.Status != "paused" {
				t.Errorf("paused, the run tells %+v", now)
			}
			c.fails("pause", id, "resume continues it")
			if now := c.call("resume", map[string]any{"run": runs[0].Run, "wait": false}); now.Status != "running" {
				t.Errorf("resumed, the run tells %+v", now)
			}
			<-g.came
			c.call("cancel", id)
			if now := c.call("watch", id); now.Status != "canceled" {
				t.Errorf("canceled, the run tells %+v", now)
			}
		})
	}
}

// beside connects a client to a server as refrain mcp does.
func (s *site) beside(version string, who user) *caller {
	s.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeMCP(in, out) }()
	s.Cleanup(func() {
		if err := <-served; err != nil {
			s.Error(err)
		}
	})
	return dial(s, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, version, who)
}

// G9: the client itself asks the user, where it can: one call runs from start to answer. The log has who answered.
func TestMCPAsksTheUser(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing, "each.yaml": asking(`{name: q, question: "Which?", ask: answer, options: [a, b]}
  - {name: r, question: "Change?", ask: edit, keys: [draft]}
  - {name: say, text: "It is {{draft}}.", output_key: said}`)})
	var asked []string
	answers := func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = append(asked, req.Params.Message)
		fields := fmt.Sprint(req.Params.RequestedSchema)
		form := map[string]any{"approved": true, "reason": "a good view"}
		switch {
		case strings.Contains(fields, "enum"):
			form = map[string]any{"answer": "b"}
		case strings.Contains(fields, "draft"):
			form = map[string]any{"draft": "new"}
		}
		return &mcp.ElicitResult{Action: "accept", Content: form}, nil
	}
	c := dial(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}, "", answers)
	done := c.call("run", map[string]any{"definition": "climbing"})
	if done.Status != "completed" || done.Result != "At 7." || fmt.Sprint(asked) != "[On from 6? On from 7?]" {
		t.Errorf("after %q the run tells %+v", asked, done)
	}
	log := string(s.ok("GET", "/api/v1/runs/"+done.Run+"/events", nil, nil).body)
	if !strings.Contains(log, "tester over MCP") || !strings.Contains(log, "a good view") {
		t.Errorf("the log does not have who answered, and why: %s", log)
	}
	if got := c.call("run", map[string]any{"definition": "each"}); got.Status != "completed" || got.Result != "It is new." {
		t.Errorf("after %q the run tells %+v", asked, got)
	}
	if runs := c.call("list_runs", nil).Runs; len(runs) != 2 {
		t.Errorf("the runs are %+v", runs)
	}
	// An older protocol asks once for each call.
	c = s.beside("2025-06-18", answers)
	next := c.call("run", map[string]any{"definition": "climbing"})
	if next.Status != "waiting" || next.Waits[0].Text != "On from 7?" || !strings.Contains(next.Next, "call answer") {
		t.Fatalf("the run tells %+v", next)
	}
	if done := c.call("watch", map[string]any{"run": next.Run}); done.Status != "completed" {
		t.Errorf("watched, the run tells %+v", done)
	}
	c.Close()
	// Who does not want to answer is told how the run stands; a call that does not wait asks nothing.
	declines := 0
	c = dial(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}, "", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		declines++
		return &mcp.ElicitResult{Action: "decline"}, nil
	})
	left := c.call("run", map[string]any{"definition": "climbing"})
	if left.Status != "waiting" || declines != 1 || left.Waits[0].Text != "On from 6?" {
		t.Errorf("after %d times the run tells %+v", declines, left)
	}
	if now := c.call("watch", map[string]any{"run": left.Run, "wait": false}); now.Status != "waiting" || declines != 1 {
		t.Errorf("after %d times the run tells %+v", declines, now)
	}
	// What a client makes up about an earlier call leads nowhere.
	for state, says := range map[string]string{"5 none": "no run", "1 ../../x": "no run"} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch", Arguments: map[string]any{"run": left.Run},
			RequestState: state, InputResponses: mcp.InputResponseMap{"x": &mcp.ElicitResult{Action: "accept"}}})
		if err != nil || !strings.Contains(textOf(res), says) {
			t.Errorf("state %q: %v, %+v", state, err, res)
		}
	}
}

// A state that no result has given is an error of the protocol, and starts no run.
func TestMCPStateThatNoResultHasGiven(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	c := s.dialed("")
	for _, state := range []string{"garbage", "-1 x", "0 x", "9 x", "1", "1 ", "1 a b", "accept ", "accept garbage", "accept " + strings.Repeat("g", 64)} {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"definition": "counting"}, RequestState: state})
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wire.Message, "requestState") {
			t.Errorf("state %q: %v", state, err)
		}
	}
	if runs := c.call("list_runs", nil).Runs; len(runs) != 0 {
		t.Errorf("the runs are %+v", runs)
	}
}

// No shared cache may keep what clients read, which is behind the token.
func TestMCPResultsArePrivate(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	id := s.run(map[string]any{"definition": "counting"}).Run
	s.wait(id)
	c := s.dialed("")
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || tools.CacheScope != "private" {
		t.Errorf("tools/list: %+v, %v", tools, err)
	}
	list, err := c.ListResources(t.Context(), nil)
	if err != nil || list.CacheScope != "private" {
		t.Errorf("resources/list: %+v, %v", list, err)
	}
	read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "refrain://runs/" + id})
	if err != nil || read.CacheScope != "private" {
		t.Errorf("resources/read: %+v, %v", read, err)
	}
}

// A method of a feature that the server does not declare is refused.
func TestMCPRefusesWhatItDoesNotDeclare(t *testing.T) {
	s := open(t, nil)
	for method, params := range map[string]any{"prompts/list": nil, "prompts/get": map[string]any{"name": "x"},
		"logging/setLevel":      map[string]any{"level": "info"},
		"completion/complete":   map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": "x"}, "argument": map[string]any{"name": "a", "value": "b"}},
		"resources/subscribe":   map[string]any{"uri": "refrain://runs/x"},
		"resources/unsubscribe": map[string]any{"uri": "refrain://runs/x"}} {
		got := s.do("POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-06-18")
		if !strings.Contains(string(got.body), `"code":-32601`) {
			t.Errorf("%s: %s", method, got.body)
		}
	}
}

// A run that asks without an end does so no more than a few times in one call.
func TestMCPAsksTheUserNotForEver(t *testing.T) {
	s := open(t, map[string]string{"long.yaml": "name: long\nmax_iterations: 20\nsub_agents:\n  - {name: ask, question: \"On?\"}\n"})
	asked := 0
	c := dial(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}, "", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approved": true}}, nil
	})
	now := c.call("run", map[string]any{"definition": "long"})
	for calls := 1; now.Status == "waiting" && calls < 20; calls++ {
		now = c.call("watch", map[string]any{"run": now.Run})
	}
	if now.Status != "completed" || asked != 20 {
		t.Errorf("after %d questions the run tells %+v", asked, now)
	}
}

// The same call with the same key is the same run, and one that waits for a time has an end.
func TestMCPRepeatsAndTimeLimits(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
	c := s.dialed("")
	args := map[string]any{"definition": "gated", "key": "k1", "wait": false}
	first := c.call("run", args)
	if again := c.call("run", args); again.Run != first.Run {
		t.Errorf("run again is %s, not %s", again.Run, first.Run)
	}
	args["input"] = "other"
	c.fails("run", args, "was used already")
	<-g.came
	if now := c.call("watch", map[string]any{"run": first.Run, "seconds": 1}); now.Status != "running" {
		t.Errorf("after a second the run tells %+v", now)
	}
	waits := make(chan outcome, 1)
	go func() { waits <- c.call("watch", map[string]any{"run": first.Run}) }()
	g.let <- struct{}{}
	<-g.came
	g.let <- struct{}{}
	g.let <- struct{}{}
	if now := <-waits; now.Status != "completed" {
		t.Errorf("in the end the run tells %+v", now)
	}
}

// Definitions and runs can be read, and are listed page by page.
func TestMCPResources(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	c := s.dialed("")
	ids := map[string]bool{}
	for range 55 {
		ids["refrain://runs/"+s.run(map[string]any{"definition": "counting"}).Run] = true
	}
	odd := s.run(map[string]any{"definition": "counting", "id": "ana@example.org"}).Run
	ids["refrain://runs/ana%40example.org"] = true
	s.wait(odd)
	pages, cursor := 0, ""
	for first := true; first || cursor != ""; first = false {
		page, err := c.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Resources {
			if !ids[r.URI] && r.URI != "refrain://definitions/counting" {
				t.Errorf("there is %s, once too often or not at all", r.URI)
			}
			delete(ids, r.URI)
		}
		pages, cursor = pages+1, page.NextCursor
	}
	if len(ids) != 0 || pages != 2 {
		t.Errorf("%d pages lack %v", pages, ids)
	}
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 2 {
		t.Errorf("the templates are %+v: %v", templates, err)
	}
	read := func(uri string) string {
		got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		return got.Contents[0].Text
	}
	if text := read("refrain://definitions/counting"); text != counting {
		t.Errorf("the definition is %q", text)
	}
	var run struct {
		Run, Status string
		Tree        struct{ Root struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(read("refrain://runs/ana%40example.org")), &run); err != nil || run.Run != odd ||
		run.Status != "completed" || run.Tree.Root.Name != "counting" {
		t.Errorf("the run is %+v: %v", run, err)
	}
	for _, uri := range []string{
		"refrain://definitions/none", "refrain://definitions/..%2F..%2Fetc%2Fpasswd", "refrain://definitions/../counting",
		"refrain://runs/none", "refrain://runs/%zz", "refrain://other/x", "file:///etc/passwd",
	} {
		if got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s has %q", uri, got.Contents[0].Text)
		}
	}
	if _, err := c.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "nonsense"}); err == nil {
		t.Error("a cursor that is none has a page")
	}
}

// What a client sends is not trusted: no path, no program, no key, nothing large; and it needs the token.
func TestMCPHostileClient(t *testing.T) {
	const key = "sk-ant-REDACTED"
	s := open(t, map[string]string{"counting.yaml": counting,
		"leaks.yaml": "name: leaks\ntext: The key is " + key + "\n"}, func(c *server.Config) { c.MaxBody = 100_000 })
	c := s.dialed("")
	for _, name := range []string{"../counting", "/etc/passwd", "..", "counting.yaml/../counting", "", "a\x00b", strings.Repeat("a", 5000)} {
		res, err := c.try(t.Context(), "run", map[string]any{"definition": name})
		if err != nil || !res.IsError {
			t.Errorf("definition %.20q: %v, %v", name, err, res)
		}
	}
	c.fails("run", map[string]any{"definition": "none"}, "list_definitions lists the names")
	c.fails("run", map[string]any{"text": "name: a\ncommand: [sh, -c, 'touch here']\n"}, "starts no programs")
	c.fails("run", map[string]any{"text": "name: a\nsub_agents: 3\n"}, "definition.yaml:2:")
	c.fails("run", map[string]any{"text": "name: a\ntext: " + key + "\n"}, "contains a key")
	c.fails("run", map[string]any{"definition": "counting", "model": "scripted/../../secret.yaml"}, "not one of the server's folder")
	c.fails("run", map[string]any{"definition": "counting", "limits": map[string]any{"timeout": "soon"}}, "limits.timeout")
	c.fails("run", map[string]any{"definition": "counting", "id": "x"}, "id")
	c.fails("run", map[string]any{"definition": 3}, "definition")
	c.fails("watch", map[string]any{"run": "../../x"}, "list_runs lists the runs")
	c.fails("list_runs", map[string]any{"limit": -1}, "limit")
	large := s.dialed("") // its session ends with the refusal, which comes while the client still sends, and may get lost by that
	if _, err := large.try(t.Context(), "run", map[string]any{"text": strings.Repeat("# much\n", 50_000)}); err == nil ||
		!slices.ContainsFunc([]string{"Request Entity Too Large", "connection reset", "broken pipe"},
			func(why string) bool { return strings.Contains(err.Error(), why) }) {
		t.Errorf("a large call: %v", err)
	}
	if _, err := c.try(t.Context(), "delete_everything", nil); err == nil {
		t.Error("there is a tool of any name")
	}
	leaks := c.call("run", map[string]any{"definition": "leaks"})
	if all := fmt.Sprint(leaks); strings.Contains(all, key) || !strings.Contains(leaks.Result, "The key is [") {
		t.Errorf("the run tells %s", all)
	}
	for _, uri := range []string{"refrain://definitions/leaks", "refrain://runs/" + leaks.Run} {
		got, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || strings.Contains(got.Contents[0].Text, key) || !strings.Contains(got.Contents[0].Text, "The key is [") {
			t.Errorf("%s: %v, %+v", uri, err, got)
		}
	}
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	both := []string{"Accept", "application/json, text/event-stream"}
	s.refused(421, "wrong_host", "POST", "/mcp", body, append(both, "Host", "evil.example")...)
	s.refused(403, "cross_origin", "POST", "/mcp", body, append(both, "Origin", "https://evil.example")...)
	s.refused(415, "wrong_type", "POST", "/mcp", "text", both...)
	if got := s.do("GET", "/mcp", nil, both...); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET /mcp: %d", got.status)
	}
	s.ok("POST", "/mcp", body, nil, append(both, "Origin", s.url)...)
}

// A client needs the token, where there is one.
func TestMCPToken(t *testing.T) {
	const token = "correct-horse-battery"
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.Token = token })
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
	for _, given := range []string{"", "Bearer wrong-horse-battery", "Basic " + token} {
		s.refused(401, "no_token", "POST", "/mcp", body, "Accept", "*/*", "Authorization", given)
	}
	c := dial(t, &mcp.StreamableClientTransport{
		Endpoint:   s.url + "/mcp",
		HTTPClient: &http.Client{Transport: bearer(token)},
	}, "")
	if got := c.call("run", map[string]any{"definition": "counting"}); got.Status != "completed" || got.Iteration != 40 {
		t.Errorf("the run tells %+v", got)
	}
}

// bearer sends a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// Each tool says what it takes and gives, and whether it changes anything.
func TestMCPTools(t *testing.T) {
	s := open(t, nil)
	c := s.dialed("")
	got, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range got.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Title == "" || tool.InputSchema == nil || tool.OutputSchema == nil || tool.Annotations == nil {
			t.Errorf("tool %s lacks something: %+v", tool.Name, tool)
		}
		if reads := strings.HasPrefix(tool.Name, "list_") || tool.Name == "watch"; tool.Annotations.ReadOnlyHint != reads {
			t.Errorf("tool %s only reads: %v", tool.Name, tool.Annotations.ReadOnlyHint)
		}
	}
	slices.Sort(names)
	if want := "answer cancel list_definitions list_runs pause resume run watch"; strings.Join(names, " ") != want {
		t.Errorf("the tools are %q", names)
	}
	if init := c.InitializeResult(); init == nil || init.ServerInfo.Name != "refrain" || !strings.Contains(init.Instructions, "list_definitions") {
		t.Errorf("the server says %+v", init)
	}
}
