// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/server"
)

// A form of an MCP server has a field of the right kind for each value, and the server gets the values in their types.
func TestFormOfAServer(t *testing.T) {
	tools := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	form := map[string]any{"type": "object", "required": []string{"day", "seats"}, "properties": map[string]any{
		"day":   map[string]any{"type": "string", "title": "On which day?", "enum": []string{"monday", "friday"}},
		"seats": map[string]any{"type": "integer", "minimum": 1, "maximum": 9, "description": "At most nine."},
		"quiet": map[string]any{"type": "boolean", "default": true},
		"name":  map[string]any{"type": "string"},
		"food":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"soup", "bread"}}},
	}}
	mcp.AddTool(tools, &mcp.Tool{Name: "reserve"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["x"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"x": &mcp.ElicitParams{Message: "Which seats?", RequestedSchema: form}}}, nil, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, " ", answer.Content)}}}, nil, nil
	})
	desk := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(desk.Close)
	s := serve(t, map[string]string{
		"desk.yaml": "name: desk\nmodel: scripted/script.yaml\ninstructions: Reserve.\ntools: [{mcp: {url: '" + desk.URL + "'}}]\n",
		"script.yaml": "answers:\n  - calls: [{name: reserve}]\n  - {match_request: 'accept map.day:friday quiet:true seats:2', text: It has the values.}\n" +
			"  - {match_request: 'decline', text: It is declined.}\n",
	}, func(cfg *server.Config) { cfg.AllowPrivate = true })
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "desk"))
	p.sees("Which seats?")
	p.accessible("form")
	p.press("Send")
	p.sees(`Fill in "On which day?".`)
	p.choose("On which day? *", "friday")
	p.fill("seats *", "12")
	p.press("Send")
	p.sees("seats: 12 does not fit")
	p.fill("seats *", "2")
	p.press("Send")
	p.sees("It has the values.")

	p.visit("/runs/" + s.start(t, "desk"))
	p.sees("Which seats?")
	p.press("Decline")
	p.sees("It is declined.")
}
