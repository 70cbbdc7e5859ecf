// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// desk returns definitions of an agent with an MCP server whose tool asks for a day and a number of seats.
func desk(t *testing.T) map[string]string {
	tools := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	form := map[string]any{"type": "object", "required": []string{"day", "seats"}, "properties": map[string]any{
		"day":   map[string]any{"type": "string", "enum": []string{"monday", "friday"}},
		"seats": map[string]any{"type": "integer", "minimum": 1, "maximum": 9},
	}}
	mcp.AddTool(tools, &mcp.Tool{Name: "reserve"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["x"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"x": &mcp.ElicitParams{Message: "Which seats?", RequestedSchema: form}}}, nil, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, answer.Content)}}}, nil, nil
	})
	at := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(at.Close)
	return map[string]string{
		"desk.yaml": "name: desk\nmodel: scripted/script.yaml\ninstructions: Reserve.\ntools: [{mcp: {url: '" + at.URL + "'}}]\n",
		"script.yaml": "answers:\n  - calls: [{name: reserve}]\n  - {match_request: 'acceptmap.day:friday seats:2.', text: reserved}\n" +
			"  - {match_request: 'declinemap', text: declined}\n  - text: something else\n",
	}
}

// A form of a tool's server is answered over REST, MCP and A2A, with values of its types.
func TestFormOfAServerIsAnswered(t *testing.T) {
	files := desk(t)
	values := map[string]any{"day": "friday", "seats": 2}
	t.Run("REST", func(t *testing.T) {
		s := open(t, files, private)
		run := s.run(map[string]any{"definition": "desk"})
		s.wait(run.Run)
		answer := func(value any) map[string]any { return map[string]any{"value": value} }
		for _, bad := range []any{values, true, map[string]any{"action": "accept", "content": map[string]any{"day": "friday", "seats": "2"}}} {
			s.refused(http.StatusUnprocessableEntity, "bad_answer", "POST", "/api/v1/runs/"+run.Run+":answer", answer(bad))
		}
		s.ok("POST", "/api/v1/runs/"+run.Run+":answer", answer(map[string]any{"action": "accept", "content": values}), nil)
		if status := s.wait(run.Run); status != "completed" {
			t.Errorf("the run is %s", status)
		}
		if log := string(s.ok("GET", "/api/v1/runs/"+run.Run+"/events", nil, nil).body); !strings.Contains(log, `"text":"reserved"`) {
			t.Errorf("the log is %s", log)
		}
	})
	for _, tt := range []struct {
		action, want string
		asked        int
	}{{"accept", "reserved", 1}, {"decline", "declined", 1}} {
		t.Run("MCP, "+tt.action, func(t *testing.T) {
			s := open(t, files, private)
			asked := 0
			c := dial(t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}, "", func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				if schema := fmt.Sprint(req.Params.RequestedSchema); !strings.Contains(schema, "monday") || !strings.Contains(req.Params.Message, "Which seats?") {
					t.Errorf("the form is %s: %s", req.Params.Message, schema)
				}
				res := &mcp.ElicitResult{Action: tt.action}
				if tt.action == "accept" {
					res.Content = values
				}
				return res, nil
			})
			if got := c.call("run", map[string]any{"definition": "desk"}); got.Status != "completed" || got.Result != tt.want || asked != tt.asked {
				t.Errorf("after %d questions the run tells %+v", asked, got)
			}
		})
	}
	t.Run("A2A", func(t *testing.T) {
		s := open(t, files, private)
		p := s.peer("desk", speeches[0])
		for _, tt := range []struct {
			what any
			want string
		}{{values, "reserved"}, {map[string]any{"action": "accept", "content": values}, "reserved"}, {"no", "declined"}} {
			task := p.send(words("go"))
			if task.Status.State != a2a.TaskStateInputRequired {
				t.Fatalf("the task is %s", task.Status.State)
			}
			task = p.send(to(task, map[string]any{"day": "sunday"}))
			if said := task.Status.Message.Parts[0].Text(); task.Status.State != a2a.TaskStateInputRequired || !strings.Contains(said, "fields of the form") {
				t.Errorf("a wrong answer: %s, %s", task.Status.State, said)
			}
			task = p.send(to(task, tt.what))
			if len(task.Artifacts) != 1 || task.Artifacts[0].Parts[0].Text() != tt.want {
				t.Errorf("after %v the task is %s %v", tt.what, task.Status.State, task.Artifacts)
			}
		}
	})
}
