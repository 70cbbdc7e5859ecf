// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// TestMain is an MCP server too: run as a command with this variable set.
func TestMain(m *testing.M) {
	if os.Getenv("REFRAIN_TEST_MCP") != "" {
		if err := newShelf().Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newShelf is a server with three tools.
func newShelf() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
	text := func(s string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "find", Description: "Finds a book."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Title string }) (*mcp.CallToolResult, any, error) {
			return text(in.Title + " is on shelf 4")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "burn", Description: "Burns a book."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Title string }) (*mcp.CallToolResult, any, error) {
			return text(in.Title + " is gone")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "env", Description: "Reads a variable."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Name string }) (*mcp.CallToolResult, any, error) {
			return text(os.Getenv(in.Name))
		})
	return server
}

// shelfURL serves newShelf to those who know the header.
func shelfURL(t *testing.T) string {
	t.Helper()
	server := newShelf()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Shelf") != "fiction" {
			http.Error(w, "no shelf", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close) // after the session has ended
	return srv.URL
}

// closing ends the servers with the test.
func closing(t *testing.T, cfg definition.BuildConfig) definition.BuildConfig {
	cfg.Cleanup = func(end func() error) {
		t.Cleanup(func() {
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
	return cfg
}

// A12: the tools of an MCP server, asked with the file's headers: those that the
// file chooses, under names with its prefix.
func TestToolsOfAnMCPServer(t *testing.T) {
	d := parse(t, "name: a\ninstructions: a\ntools: [{mcp: {url: '"+shelfURL(t)+"', headers: {X-Shelf: fiction}, only: [env, find], prefix: shelf_}}]")
	rec, cfg := record(t, call("", "shelf_find", map[string]any{"Title": "Emma"}), call("", "shelf_burn", map[string]any{"Title": "Emma"}),
		scripted.Answer{MatchRequest: "(?s)Emma is on shelf 4.*there is no tool .*shelf_burn", Text: "Shelf 4."})
	if words, _ := run(t, d, closing(t, cfg), nil); words != "Shelf 4." || len(rec.requests) != 3 {
		t.Errorf("got %q after %d requests", words, len(rec.requests))
	}
	if got := declared(rec.requests[0].Config); got != "shelf_env shelf_find" {
		t.Errorf("declared: %s", got)
	}
}

// A token is in the environment alone: the server gets it, the file and the log have its name.
func TestTokenOfAnMCPServerIsAVariable(t *testing.T) {
	text := "name: a\ninstructions: a\ntools: [{mcp: {url: '" + shelfURL(t) + "/${SHELF}', headers: {X-Shelf: '${WORD}tion', X-Token: '${SHELF_TOKEN}'}, " +
		"inherit: [WORD, SHELF, SHELF_TOKEN], only: [find]}}]"
	const token = "t0ken-of-the-shelf"
	values := map[string]string{"WORD": "fic", "SHELF": "here", "SHELF_TOKEN": token}
	d := parse(t, text)
	rec, cfg := record(t, call("", "find", map[string]any{"Title": token}), scripted.Answer{Text: "Shelf 4."})
	cfg.Getenv = func(name string) string { return values[name] }
	evs, err := events(t, d, closing(t, cfg))
	if err != nil || len(rec.requests) != 2 {
		t.Fatalf("%d requests, %v", len(rec.requests), err)
	}
	if got := fmt.Sprint(answers(rec.requests[1])["find"]); got != "map[result:[secret] is on shelf 4]" {
		t.Errorf("the server that repeats the token answers %s: %s", got, asJSON(t, evs))
	}
	delete(values, "SHELF_TOKEN")
	if _, err := d.Build(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "needs SHELF_TOKEN, which is not set") {
		t.Errorf("without the variable: %v", err)
	}
	if _, err := definition.Parse("x.yaml", []byte(strings.Replace(text, "[WORD, SHELF, SHELF_TOKEN]", "[WORD, SHELF]", 1)), definition.Options{}); err == nil ||
		!strings.Contains(err.Error(), "the header X-Token: the variable SHELF_TOKEN is not given: add it to inherit") {
		t.Errorf("a variable that inherit does not name: %v", err)
	}
}

// A tool that the file chooses and the server does not have is an error: an
// agent that does without it would not be noticed.
func TestChosenToolsAreThere(t *testing.T) {
	d := parse(t, "name: a\ninstructions: a\ntools: [{mcp: {url: '"+shelfURL(t)+"', headers: {X-Shelf: fiction}, only: [fnid]}}]")
	_, cfg := record(t)
	evs, err := events(t, d, closing(t, cfg))
	if err == nil || !strings.Contains(err.Error(), `only: the server has no tool "fnid" (did you mean "find"?)`) {
		t.Errorf("got %d events, %v", len(evs), err)
	}
}

// LOOP 32: the tools that need a person's consent are not called without, and
// the others are.
func TestToolsThatNeedConsent(t *testing.T) {
	for confirm, asks := range map[string]string{"true": "find burn", "[burn]": "burn", "false": ""} {
		d := parse(t, "name: a\ninstructions: a\ntools: [{mcp: {url: '"+shelfURL(t)+"', headers: {X-Shelf: fiction}, prefix: my_, confirm: "+confirm+"}}]")
		for _, name := range []string{"find", "burn"} {
			_, cfg := record(t, call("", "my_"+name, map[string]any{"Title": "Emma"}), scripted.Answer{Text: "Done."})
			evs, err := events(t, d, closing(t, cfg))
			if err != nil {
				t.Fatal(err)
			}
			asked, called := false, false
			for _, ev := range evs {
				asked = asked || len(ev.Actions.RequestedToolConfirmations) > 0
				called = called || strings.Contains(asJSON(t, ev), "Emma is")
			}
			if want := strings.Contains(asks, name); asked != want || called == want {
				t.Errorf("confirm: %s: %s: asked %v, called %v", confirm, name, asked, called)
			}
		}
	}
}

// events are what is said in one run, up to an error.
func events(t *testing.T, d *definition.Definition, cfg definition.BuildConfig) (evs []*session.Event, err error) {
	t.Helper()
	built, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("test", built)
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return evs, err
		}
		evs = append(evs, ev)
	}
	return evs, nil
}

// A server that is a command sees the variables that the file gives or passes on
// by name, and no key of another service.
func TestEnvironmentOfAnMCPServer(t *testing.T) {
	t.Setenv("SECRET_KEY", "of another service")
	t.Setenv("SHELF_TOKEN", "taken from Getenv instead")
	d := parse(t, `name: a
instructions: a
tools: [{mcp: {command: ["`+os.Args[0]+`"], env: [REFRAIN_TEST_MCP=1, GORACE=atexit_sleep_ms=0, SHELF_TOKEN]}}]
`)
	names := []string{"SECRET_KEY", "SHELF_TOKEN", "REFRAIN_TEST_MCP"}
	var script []scripted.Answer
	for _, name := range names {
		script = append(script, call("", "env", map[string]any{"Name": name}))
	}
	rec, cfg := record(t, append(script, scripted.Answer{Text: "Done."})...)
	cfg.Getenv = func(name string) string { return map[string]string{"SHELF_TOKEN": "t0ken"}[name] }
	run(t, d, closing(t, cfg), nil)
	var got []string
	for _, req := range rec.requests[1:] {
		got = append(got, fmt.Sprint(answers(req)["env"]))
	}
	if diff := cmp.Diff([]string{"map[result:]", "map[result:t0ken]", "map[result:1]"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMCPServersAreEnded(t *testing.T) {
	d := parse(t, `name: a
instructions: a
tools:
  - mcp: {command: [serve, -v], env: {MODE: test}}
  - mcp: {url: "http://localhost:1/mcp", headers: {Authorization: Bearer x}}
`)
	ended := 0
	built, err := d.Build(t.Context(), definition.BuildConfig{Model: noModel, DefaultModel: "any", Cleanup: func(end func() error) {
		ended++
		if err := end(); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(built.(*llmagent.Agent).Config().Toolsets); n != 2 || ended != 2 {
		t.Errorf("%d toolsets, %d ended", n, ended)
	}
}
