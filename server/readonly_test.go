// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
)

// A server that is only read changes nothing, whichever route, tool or method of any protocol is called: no operation that changes
// something is offered, and none works.
func TestReadOnlyChangesNothingOverAnyProtocol(t *testing.T) {
	s := open(t, map[string]string{"asks.yaml": "name: asks\nquestion: Is it so?\n"})
	id := s.run(map[string]any{"definition": "asks"}).Run
	s.wait(id)
	var open struct{ Waits []struct{ ID string } }
	s.ok("GET", "/api/v1/runs/"+id, nil, &open)
	var api struct {
		Paths map[string]map[string]any
	}
	s.ok("GET", "/api/v1/openapi.json", nil, &api)
	tools, err := s.dialed("").ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.start(func(c *server.Config) { c.ReadOnly = true })
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	standing := func() []string {
		t.Helper()
		got, err := s.store.List(t.Context(), &session.ListRequest{AppName: "app", UserID: "ana"})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, one := range got.Sessions {
			all = append(all, one.ID())
		}
		for _, ev := range s.log(id) {
			all = append(all, ev.ID)
		}
		return all
	}
	before := standing()
	if len(before) < 3 {
		t.Fatalf("the store has %q", before)
	}

	// REST: what the API describes, with the requests that worked before.
	bodies := map[string]any{
		"/runs": map[string]any{"definition": "asks"}, "/runs/{id}:answer": map[string]any{"value": true, "by": "ana"},
		"/runs/{id}:fork": map[string]any{"iteration": 0, "resume": true}, "/runs:backtest": map[string]any{"runs": []string{id}},
	}
	reads := 0
	for path, ops := range api.Paths {
		for method := range ops {
			method = strings.ToUpper(method)
			if method == "GET" {
				continue
			}
			body := bodies[path]
			if body == nil {
				body = map[string]any{}
			}
			got := s.do(method, "/api/v1"+strings.NewReplacer("{id}", id, "{name}", "asks").Replace(path), body)
			switch {
			case path == "/runs:backtest":
				reads++
			case got.status != http.StatusForbidden || !strings.Contains(string(got.body), "urn:refrain:read_only"):
				t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
			}
		}
	}
	if reads != 1 {
		t.Error("the API does not describe POST /runs:backtest")
	}

	// ADK and A2A, in both versions and bindings.
	message := map[string]any{"messageId": "m1", "role": "user", "parts": []any{map[string]any{"kind": "text", "text": "yes"}}, "taskId": id}
	for _, r := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/api/run", map[string]any{"appName": "asks", "userId": "u", "sessionId": "s", "newMessage": map[string]any{"parts": []any{map[string]any{"text": "x"}}}}},
		{"POST", "/api/run_sse", map[string]any{"appName": "asks", "userId": "u", "sessionId": "s"}},
		{"POST", "/api/apps/asks/users/u/sessions", map[string]any{}},
		{"POST", "/api/apps/asks/users/u/sessions/s", map[string]any{}},
		{"PATCH", "/api/apps/asks/users/u/sessions/s", map[string]any{"stateDelta": map[string]any{"a": 1}}},
		{"DELETE", "/api/apps/asks/users/u/sessions/s", nil},
		{"DELETE", "/api/apps/asks/users/u/sessions/s/artifacts/a", nil},
		{"POST", "/a2a/asks", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": map[string]any{"message": message}}},
		{"POST", "/a2a/v1/asks", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{"message": message}}},
		{"POST", "/a2a/asks/v1/message:send", map[string]any{"message": message}},
		{"POST", "/a2a/v1/asks/message:send", map[string]any{"message": message}},
		{"POST", "/a2a/v1/asks/tasks/" + id + ":cancel", nil},
		{"POST", "/a2a/asks/v1/tasks/" + id + ":cancel", nil},
	} {
		if got := s.do(r.method, r.path, r.body); got.status < 400 {
			t.Errorf("%s %s: %d %s", r.method, r.path, got.status, got.body)
		}
	}

	// MCP: the tools that change something are neither listed nor work, nor does a tool that reads answer a question.
	c := s.dialed("")
	offered, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range offered.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("the tool %s is offered", tool.Name)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"list_definitions", "list_runs", "watch"}) {
		t.Errorf("the tools are %q", names)
	}
	args := map[string]any{"run": id, "value": true, "wait": false}
	for _, tool := range tools.Tools {
		given := maps.Clone(args)
		if tool.Name == "run" {
			given = map[string]any{"definition": "asks", "wait": false}
		}
		if slices.Contains(names, tool.Name) {
			continue
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: given}); err == nil {
			t.Errorf("the tool %s works", tool.Name)
		}
	}
	for _, tool := range names {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"run": id, "wait": false}, RequestState: "1 " + id,
			InputResponses: mcp.InputResponseMap{open.Waits[0].ID: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approved": true}}}})
		if tool == "watch" && err == nil && !res.IsError {
			t.Errorf("watch answers a question: %v", res)
		}
	}
	if w := c.call("watch", map[string]any{"run": id, "wait": false}); w.Next != "" || w.Status != "waiting" {
		t.Errorf("watch says %+v", w)
	}
	if got := c.InitializeResult().Instructions; strings.Contains(got, "run runs") {
		t.Errorf("the instructions are %q", got)
	}
	if after := standing(); !slices.Equal(before, after) {
		t.Errorf("the store had %q and has %q", before, after)
	}
}

// The log has who answered as the server knows it; what the client says stands apart. Each change leaves a line in the server's log.
func TestAnswerIsBySomebodyTheServerKnows(t *testing.T) {
	const token = "0123456789abcdef0123"
	s := open(t, map[string]string{"asks.yaml": "name: asks\nquestion: Is it so?\n"}, func(c *server.Config) { c.Token = token })
	auth := []string{"Authorization", "Bearer " + token}
	var run struct{ Run string }
	s.ok("POST", "/api/v1/runs", map[string]any{"definition": "asks"}, &run, auth...)
	path := "/api/v1/runs/" + run.Run
	deadline := 0
	for {
		var head struct{ Status string }
		if s.ok("GET", path, nil, &head, auth...); head.Status == "waiting" {
			break
		}
		if deadline++; deadline > 10_000 {
			t.Fatal("the run does not ask")
		}
	}
	s.refused(http.StatusUnauthorized, "no_token", "POST", path+":answer", map[string]any{"value": true, "by": "the boss"})
	s.ok("POST", path+":answer", map[string]any{"value": true, "by": "the boss"}, nil, auth...)
	got := string(s.ok("GET", path+"/events?limit=500", nil, nil, append(auth, "Accept", "application/json")...).body)
	if !strings.Contains(got, `"by":"token"`) || !strings.Contains(got, `"claimed_by":"the boss"`) || strings.Contains(got, `"by":"the boss"`) {
		t.Errorf("the log has %s", got)
	}
	logs := s.logs.String()
	for _, want := range []string{"change=start of=" + run.Run + " by=token from=127.0.0.1", "change=answer of=" + run.Run + " by=token from=127.0.0.1"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the server's log has no %q:\n%s", want, logs)
		}
	}
	if n := strings.Count(logs, "change="); n != 2 {
		t.Errorf("%d changes are logged:\n%s", n, logs)
	}
}

// However long a read-only server is up, and whoever has left a run unfinished, it continues none: Recover starts no
// look for such runs. A server that may change runs continues the same one.
func TestReadOnlyContinuesNothing(t *testing.T) {
	s := open(t, map[string]string{"asks.yaml": "name: asks\nquestion: Is it so?\ndeadline: 1s\ndefault: true\n"})
	id := s.run(map[string]any{"definition": "asks"}).Run
	s.wait(id)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(s.log(id))
	s.start(func(c *server.Config) { c.ReadOnly, c.LeaseTTL = true, 300*time.Millisecond })
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond) // the deadline, and a few ticks
	if now := len(s.log(id)); now != before {
		t.Errorf("the log had %d events, and has %d", before, now)
	}
	s.start(func(c *server.Config) { c.LeaseTTL = 300 * time.Millisecond })
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := s.wait(id); status != "completed" || len(s.log(id)) == before {
		t.Errorf("then the run is %s", status)
	}
}
