// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/server"
)

var update = flag.Bool("update", false, "write the golden files")

// crew is a server with a person of each role. It returns the file of people and the header of each person, by their names: ann reads,
// oto operates and ada is an author.
func crew(t *testing.T, definitions map[string]string, change ...func(*server.Config)) (*site, *access.File, map[string]string) {
	t.Helper()
	people := access.At(filepath.Join(t.TempDir(), "people.json"))
	tokens := map[string]string{}
	for name, role := range map[string]access.Role{"ann": access.Reader, "oto": access.Operator, "ada": access.Author} {
		token, err := people.Add(access.Person{Name: name, Role: role}, true)
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = "Bearer " + token
	}
	return open(t, definitions, append(change, func(cfg *server.Config) { cfg.People = people })...), people, tokens
}

// fromLoopback makes the tests' clients proxies.
func fromLoopback(cfg *server.Config) {
	cfg.Proxy.From = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
}

var placeholder = regexp.MustCompile(`\{([a-z]+)(\.\.\.)?\}`)

// Every route of every protocol has a role: below it a person is refused, and from it on the request is carried out. Without a token
// only the checks of health are. The golden file shows who may do what.
func TestEveryRouteHasARole(t *testing.T) {
	s, _, tokens := crew(t, map[string]string{"counting.yaml": counting}, fromLoopback)
	roles := []string{"", "ann", "oto", "ada"} // by access.Role
	var table []string
	for _, r := range server.Routes(s.Server) {
		table = append(table, fmt.Sprintf("%-8s  %-6s  %s", r.Role, r.Method, r.Path))
		path := placeholder.ReplaceAllStringFunc(r.Path, func(name string) string {
			switch name {
			case "{definition}", "{app}", "{name}":
				return "counting"
			}
			return "x"
		})
		for role, name := range roles {
			status, kind := s.try(r.Method, path, tokens[name])
			want := http.StatusForbidden
			switch {
			case access.Role(role) >= r.Role:
				want = 0
			case name == "":
				want = http.StatusUnauthorized
			}
			refused := status == http.StatusUnauthorized || kind == "not_permitted"
			if want == 0 && refused || want != 0 && (status != want || !refused) {
				t.Errorf("%s %s, which is for the role %s, answers %q with %d %s", r.Method, path, r.Role, name, status, kind)
			}
		}
	}
	slices.Sort(table)
	got, golden := strings.Join(table, "\n")+"\n", "testdata/roles.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the roles of routes have changed; -update writes %s:\n%s", golden, diff)
	}
	if strings.Count(got, "none ") != 2 {
		t.Errorf("only the two checks of health are for everybody:\n%s", got)
	}
}

// try sends a request without a body, and returns the status and the kind of problem.
func (s *site) try(method, path, authorization string) (status int, kind string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), soon)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	s.clients++
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.1.%d.%d", s.clients/256, s.clients%256)) // each may be without a token
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	var p struct{ Type string }
	_ = json.NewDecoder(resp.Body).Decode(&p) // what is not JSON has no type
	return resp.StatusCode, strings.TrimPrefix(p.Type, "urn:refrain:")
}

// A tool needs a role too, and only those that a person may call are listed.
func TestEveryToolHasARole(t *testing.T) {
	s, _, tokens := crew(t, map[string]string{"counting.yaml": counting})
	as := func(name string) *caller {
		token := strings.TrimPrefix(tokens[name], "Bearer ")
		return dial(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}}, "")
	}
	names := func(c *caller) (all []string) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			all = append(all, tool.Name)
		}
		return all
	}
	ann, oto, ada := as("ann"), as("oto"), as("ada")
	reads := []string{"list_definitions", "list_runs", "watch"}
	if diff := cmp.Diff(reads, names(ann)); diff != "" {
		t.Errorf("a reader sees other tools: %s", diff)
	}
	all := names(oto)
	call := func(c *caller, tool string, args map[string]any) string {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		if !res.IsError {
			return ""
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	ids := map[string]map[string]any{"run": {"definition": "counting"}, "list_definitions": {}, "list_runs": {}, "answer": {"run": "x", "value": true}}
	for _, tool := range all {
		args := ids[tool]
		if args == nil {
			args = map[string]any{"run": "x"}
		}
		if got := call(ann, tool, args); strings.Contains(got, "needs the role operator") == slices.Contains(reads, tool) {
			t.Errorf("a reader calls %s: %q", tool, got)
		}
		if got := call(oto, tool, args); strings.Contains(got, "needs the role") {
			t.Errorf("an operator calls %s: %q", tool, got)
		}
	}
	text := map[string]any{"text": counting}
	if got := call(oto, "run", text); !strings.Contains(got, "needs the role author") {
		t.Errorf("an operator runs a text: %q", got)
	}
	if got := call(ada, "run", text); got != "" {
		t.Errorf("an author runs a text: %q", got)
	}
}

// A definition in a request of an operator is refused, wherever it stands.
func TestOperatorsSendNoDefinitions(t *testing.T) {
	s, _, tokens := crew(t, map[string]string{"counting.yaml": counting})
	oto := []string{"Authorization", tokens["oto"]}
	s.refused(403, "not_permitted", "POST", "/api/v1/runs", map[string]any{"text": counting}, oto...)
	run := s.run(map[string]any{"definition": "counting"}, oto...)
	s.wait(run.Run)
	at := "/api/v1/runs/" + run.Run
	s.refused(403, "not_permitted", "POST", at+":resume", map[string]any{"text": counting, "add_iterations": 1}, oto...)
	s.refused(403, "not_permitted", "POST", at+":fork", map[string]any{"text": counting, "resume": true}, oto...)
	s.ok("POST", at+":fork", map[string]any{"text": counting, "resume": true}, nil, "Authorization", tokens["ada"])
}

// Methods of A2A's JSON-RPC share one route, and each of them that changes something needs the role of an operator.
func TestMethodsOfA2AHaveRoles(t *testing.T) {
	s, _, tokens := crew(t, map[string]string{"counting.yaml": counting})
	message := map[string]any{"kind": "message", "messageId": "m", "role": "user", "parts": []any{map[string]any{"kind": "text", "text": "go"}}}
	push := map[string]any{"taskId": "x", "pushNotificationConfig": map[string]any{"url": "http://example.org"}}
	for method, params := range map[string]any{
		"message/send": map[string]any{"message": message}, "message/stream": map[string]any{"message": message},
		"tasks/cancel": map[string]any{"id": "x"}, "tasks/pushNotificationConfig/set": push,
		"tasks/pushNotificationConfig/get": map[string]any{"id": "x"}, "tasks/pushNotificationConfig/list": map[string]any{"id": "x"},
		"tasks/pushNotificationConfig/delete": map[string]any{"id": "x", "pushNotificationConfigId": "y"},
	} {
		call := map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
		if got := s.do("POST", "/a2a/counting", call, "Authorization", tokens["ann"]); !strings.Contains(string(got.body), "needs the role operator") {
			t.Errorf("a reader calls %s: %d %s", method, got.status, got.body)
		}
		if got := s.do("POST", "/a2a/counting", call, "Authorization", tokens["oto"]); strings.Contains(string(got.body), "needs the role") {
			t.Errorf("an operator calls %s: %d %s", method, got.status, got.body)
		}
	}
	var list struct{ Runs []listed }
	if s.ok("GET", "/api/v1/runs", nil, &list, "Authorization", tokens["ann"]); len(list.Runs) != 1 {
		t.Errorf("%d runs, want that of the operator's message, which is the same in both methods", len(list.Runs))
	}
}
