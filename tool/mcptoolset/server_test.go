// SPDX-License-Identifier: Apache-2.0

package mcptoolset_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
)

// TestMain is the server too: run as a command with this variable set.
func TestMain(m *testing.M) {
	if os.Getenv("REFRAIN_TEST_MCP") != "" {
		fmt.Fprintln(os.Stderr, "at your service")
		if os.Getenv("REFRAIN_TEST_MCP") == "dead" {
			os.Exit(3)
		}
		if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Total int `json:"total"`
}

type named struct {
	Name string `json:"name"`
}

// newServer is a server with tools of every kind.
func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tester", Version: "v1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds."}, func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, total, error) {
		return nil, total{in.A + in.B}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Title: "Fails."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("no such file: notes.txt")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "env"}, func(_ context.Context, _ *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
		return text(os.Getenv(in.Name)), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "crash"}, crash)
	mcp.AddTool(s, &mcp.Tool{Name: "crash_once", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, crash)
	mcp.AddTool(s, &mcp.Tool{Name: "cut"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Print(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"all is w`)
		os.Exit(0)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	s.AddTool(&mcp.Tool{Name: "show", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "two"}, &mcp.TextContent{Text: "lines"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///a", Text: "inside"}},
			&mcp.ResourceLink{Name: "b", URI: "file:///b"},
		}}, nil
	})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// crash ends the server unless the file of that name is there, and makes it.
func crash(_ context.Context, _ *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
	f, err := os.OpenFile(in.Name, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return text("still here"), nil, nil
	}
	f.Close()
	os.Exit(3)
	return nil, nil, nil
}

// web is a server on HTTP that can forget its sessions and that keeps what it
// was sent.
type web struct {
	server   func() *mcp.Server
	options  *mcp.StreamableHTTPOptions
	stateful bool // does not know the newest protocol, which has no sessions

	mu      sync.Mutex
	servers []*mcp.Server // the last one serves
	handler http.Handler
	lists   int      // tools/list requests
	tokens  []string // Authorization headers
}

func newWeb(t *testing.T, stateful bool) *web {
	return newWebOf(t, &web{stateful: stateful, server: newServer})
}

func newWebOf(t *testing.T, w *web) *web {
	w.restart()
	t.Cleanup(func() { // a server that forgets its sessions does not end them
		for _, s := range w.servers {
			for ss := range s.Sessions() {
				ss.Close()
			}
		}
	})
	return w
}

func (w *web) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.server()
	w.servers = append(w.servers, s)
	w.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, w.options)
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	h := w.handler
	w.tokens = append(w.tokens, r.Header.Get("Authorization"))
	if strings.Contains(string(body), `"tools/list"`) {
		w.lists++
	}
	w.mu.Unlock()
	if w.stateful && strings.Contains(string(body), `"server/discover"`) {
		http.Error(rw, "what?", http.StatusBadRequest)
		return
	}
	h.ServeHTTP(rw, r)
}

// authorizations are the headers of that name that the server got.
func (w *web) authorizations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tokens)
}
