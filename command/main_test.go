// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(withState{m}, map[string]func(){
		"refrain": func() {
			code := Main()
			if name := os.Getenv("REFRAIN_TEST_STATUS"); name != "" { // what Linux tells of the process, such as its peak of memory
				text, _ := os.ReadFile("/proc/self/status")
				_ = os.WriteFile(name, text, 0o600)
			}
			os.Exit(code)
		},
		"shelf": shelf,
		"desk":  desk,
	})
}

// withState gives the commands of all tests a state folder of their own.
type withState struct{ *testing.M }

func (m withState) Run() int {
	dir, err := os.MkdirTemp("", "refrain-state-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.Setenv("XDG_STATE_HOME", dir)
	return m.M.Run()
}

// stateOnly is an environment that has nothing but the state folder: a store that a command made belongs to the next one.
func stateOnly(name string) string {
	if name == "XDG_STATE_HOME" {
		return os.Getenv(name)
	}
	return ""
}

// shelf is an MCP server over standard input and output, with two tools.
func shelf() {
	s := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Finds a book."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, map[string]any{"where": "on shelf 4"}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "burn", Description: "Burns a book."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, map[string]any{}, os.WriteFile("burnt", nil, 0o600)
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
	}
}

// desk is an MCP server whose tool asks the user for the day and the number of seats.
func desk() {
	s := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	form := map[string]any{"type": "object", "required": []string{"day", "seats"}, "properties": map[string]any{
		"day":   map[string]any{"type": "string", "title": "On which day?", "enum": []string{"monday", "friday"}},
		"seats": map[string]any{"type": "integer", "minimum": 1, "maximum": 9},
		"quiet": map[string]any{"type": "boolean", "default": true},
	}}
	mcp.AddTool(s, &mcp.Tool{Name: "reserve", Description: "Reserves seats."}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["seats"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
				"seats": &mcp.ElicitParams{Message: "Which seats?", RequestedSchema: form}}}, nil, nil
		}
		text := fmt.Sprintf("%s %v, %s", answer.Action, answer.Content, req.Params.RequestState)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
