// SPDX-License-Identifier: Apache-2.0

package mcptoolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

func call(ctx context.Context) tool.Context {
	return agent.NewToolContext(drive.NewInvocation(ctx, drive.Invocation{
		ID: "e-1", Session: session.NewView(session.ViewConfig{}),
	}), "call-1", nil, nil)
}

func toolset(t *testing.T, cfg mcptoolset.Config) *mcptoolset.Toolset {
	t.Helper()
	s, err := mcptoolset.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// tools are the tools of a set as a request has them.
func tools(t *testing.T, s *mcptoolset.Toolset) map[string]tool.Function {
	t.Helper()
	all, err := s.Tools(call(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	req := &model.LLMRequest{}
	for _, it := range all {
		if err := tool.Process(call(t.Context()), req, it); err != nil {
			t.Fatal(err)
		}
	}
	byName := make(map[string]tool.Function)
	for name, it := range req.Tools {
		byName[name] = it.(tool.Function)
	}
	return byName
}

// inMemory is a config for a server in this process.
func inMemory(t *testing.T, s *mcp.Server) mcptoolset.Config {
	t.Helper()
	client, server := mcp.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Close() })
	return mcptoolset.Config{Transport: client}
}

// command is a config for a server in a process of its own.
func command(env ...string) mcptoolset.Config {
	return mcptoolset.Config{Command: []string{os.Args[0]}, Env: append(env, "REFRAIN_TEST_MCP=1", "GORACE=atexit_sleep_ms=0")}
}

func endpoint(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// A12: the tools of an MCP server, over every transport.
func TestToolsOfAServer(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  func(t *testing.T) mcptoolset.Config
	}{
		{"in memory", func(t *testing.T) mcptoolset.Config { return inMemory(t, newServer()) }},
		{"stdio", func(*testing.T) mcptoolset.Config { return command() }},
		{"http", func(t *testing.T) mcptoolset.Config { return mcptoolset.Config{URL: endpoint(t, newWeb(t, false))} }},
		{"http with sessions", func(t *testing.T) mcptoolset.Config { return mcptoolset.Config{URL: endpoint(t, newWeb(t, true))} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := toolset(t, tt.cfg(t))
			all := tools(t, s)
			if s.Name() != "mcp" || len(all) != 8 {
				t.Fatalf("got %q, %v", s.Name(), all)
			}
			for _, c := range []struct {
				tool string
				args map[string]any
				want string
			}{
				{"add", map[string]any{"a": 2, "b": 3}, `{"total":5}`},
				{"show", nil, `{"result":"two\nlines\n[image, image/png, 3 bytes]\ninside\n[resource b: file:///b]"}`},
			} {
				res, err := tool.Call(call(t.Context()), all[c.tool], c.args)
				if got, _ := json.Marshal(res); err != nil || string(got) != c.want {
					t.Errorf("%s: got %s, %v; want %s", c.tool, got, err, c.want)
				}
			}
			for _, c := range []struct {
				tool string
				args map[string]any
				want string
			}{
				{"fail", nil, `tool "fail": no such file: notes.txt`},
				{"add", map[string]any{"a": "two"}, `tool "add": `},
			} {
				if _, err := tool.Call(call(t.Context()), all[c.tool], c.args); err == nil || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%s: got %v, want %s", c.tool, err, c.want)
				}
			}
		})
	}
}

func TestDeclarationPassesOnTheSchemas(t *testing.T) {
	cfg := inMemory(t, newServer())
	cfg.Prefix = "my_"
	all := tools(t, toolset(t, cfg))
	add := all["my_add"].Declaration()
	got, err := json.Marshal([]any{add.Name, add.Description, add.ParametersJsonSchema, add.ResponseJsonSchema})
	if err != nil {
		t.Fatal(err)
	}
	const want = `["my_add","Adds.",` +
		`{"additionalProperties":false,"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"type":"object"},` +
		`{"additionalProperties":false,"properties":{"total":{"type":"integer"}},"required":["total"],"type":"object"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	show, err := json.Marshal(all["my_show"].Declaration().ParametersJsonSchema)
	if err != nil || string(show) != `{"properties":{},"type":"object"}` || all["my_fail"].Description() != "Fails." {
		t.Errorf("got %s, %v, %q", show, err, all["my_fail"].Description())
	}
	if res, err := tool.Call(call(t.Context()), all["my_add"], map[string]any{"a": 1, "b": 1}); err != nil || res["total"] != 2.0 {
		t.Errorf("the server knows its tools without the prefix: got %v, %v", res, err)
	}
}

func TestFilterAndConfirmation(t *testing.T) {
	cfg := inMemory(t, newServer())
	cfg.ToolFilter = tool.StringPredicate([]string{"add", "fail"})
	cfg.RequireConfirmationProvider = func(name string, _ any) bool { return name == "fail" }
	all := tools(t, toolset(t, cfg))
	if len(all) != 2 {
		t.Fatalf("got %v", all)
	}
	if _, err := tool.Call(call(t.Context()), all["add"], map[string]any{"a": 1, "b": 1}); err != nil {
		t.Error(err)
	}
	if _, err := tool.Call(call(t.Context()), all["fail"], nil); !errors.Is(err, tool.ErrConfirmationRequired) {
		t.Errorf("got %v", err)
	}
}

func TestNewRefusesWhatIsNoServer(t *testing.T) {
	for _, tt := range []struct {
		cfg  mcptoolset.Config
		want string
	}{
		{mcptoolset.Config{Name: "files"}, `mcp toolset "files": give one of Command, URL and Transport`},
		{mcptoolset.Config{URL: "http://x", Command: []string{"x"}}, `mcp toolset "mcp": give one of Command, URL and Transport`},
		{mcptoolset.Config{URL: "localhost:80"}, `mcp toolset "mcp": the URL "localhost:80" is not one of a web server, such as https://host/mcp`},
		{mcptoolset.Config{Command: []string{"nice", "sh"}}, `mcp toolset "mcp": the Command gets what a model says on its standard input: sh runs its standard input as code; give it a script`},
		{mcptoolset.Config{Command: []string{""}}, `mcp toolset "mcp": the Command is empty`},
	} {
		if _, err := mcptoolset.New(tt.cfg); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// A server that wants a token is an error that says how to give it one, without the secrets that the configuration has.
func TestUnauthorizedSaysWhatToDo(t *testing.T) {
	const token = "correct-horse-battery-9"
	for _, tt := range []struct {
		headers   http.Header
		challenge string
		want      []string
	}{
		{nil, "", []string{"wants a token (401 Unauthorized)", `headers: {Authorization: "Bearer ${TOKEN}"}`}},
		{http.Header{"Authorization": {"Bearer ${SHELF_TOKEN}"}}, "", []string{"refuses the token", "get a new one"}},
		{nil, `Bearer resource_metadata="http://x/.well-known/oauth-protected-resource"`, []string{"wants a token", "OAuth, which definitions cannot do"}},
	} {
		url := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", tt.challenge)
			http.Error(w, "no", http.StatusUnauthorized)
		}))
		cfg := mcptoolset.Config{URL: url + "/${SHELF_TOKEN}", Env: []string{"SHELF_TOKEN=" + token}, Headers: tt.headers}
		_, err := toolset(t, cfg).Tools(call(t.Context()))
		for _, want := range append(tt.want, "/${SHELF_TOKEN}: ") {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := toolset(t, mcptoolset.Config{URL: gone.URL + "/${SHELF_TOKEN}", Env: []string{"SHELF_TOKEN=" + token}}).Tools(call(t.Context()))
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("a server that is gone: %v", err)
	}
}

func TestServerThatCannotBeReached(t *testing.T) {
	gone := httptest.NewServer(newWeb(t, false))
	gone.Close()
	for _, tt := range []struct {
		cfg  mcptoolset.Config
		want string
	}{
		{mcptoolset.Config{Command: []string{"refrain-no-such-program"}}, `connect to MCP server "refrain-no-such-program": `},
		{mcptoolset.Config{Command: []string{os.Args[0]}, Env: []string{"REFRAIN_TEST_MCP=dead", "GORACE=atexit_sleep_ms=0"}}, "it said: at your service"},
		{mcptoolset.Config{URL: gone.URL + "/mcp?key=secret"}, "connect to MCP server " + gone.URL + "/mcp: "},
		{mcptoolset.Config{URL: endpoint(t, http.HandlerFunc(slow)), ConnectTimeout: 50 * time.Millisecond}, "the server did not answer in 50ms: "},
	} {
		_, err := toolset(t, tt.cfg).Tools(call(t.Context()))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), `list the tools of mcp toolset "mcp": `) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// slow reads a request and never answers it.
func slow(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// A command gets what it needs, and not this process's secrets.
func TestEnvironmentOfACommand(t *testing.T) {
	t.Setenv("REFRAIN_SECRET", "hidden")
	t.Setenv("SHELF_PLACE", "fourth")
	env := func(cfg mcptoolset.Config, name string) any {
		res, err := tool.Call(call(t.Context()), tools(t, toolset(t, cfg))["env"], map[string]any{"name": name})
		if err != nil {
			t.Error(err)
		}
		return res["result"]
	}
	if got := env(command(), "REFRAIN_SECRET"); got != "" {
		t.Errorf("got %q", got)
	}
	if got := env(command(), "PATH"); got != os.Getenv("PATH") {
		t.Errorf("got %q", got)
	}
	if got := env(command("TOKEN=t"), "TOKEN"); got != "t" {
		t.Errorf("got %q", got)
	}
	all := command()
	all.InheritEnv = true
	if got := env(all, "SHELF_PLACE"); got != "fourth" {
		t.Errorf("got %q", got)
	}
	if got := env(all, "REFRAIN_SECRET"); got != "" {
		t.Errorf("got %q", got)
	}
	if got := env(command("SHELF_TOKEN=tk-4711-4711"), "SHELF_TOKEN"); got != "[secret]" {
		t.Errorf("got %q", got)
	}
}

// A broken session is made again; what may have taken effect is not done twice.
func TestServerThatDies(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "crashed")
	all := tools(t, toolset(t, command()))
	_, err := tool.Call(call(t.Context()), all["crash"], map[string]any{"name": marker})
	if err == nil || !strings.HasPrefix(err.Error(), `tool "crash": the connection was lost, and it is unknown whether the call took effect: `) {
		t.Errorf("got %v", err)
	}
	if res, err := tool.Call(call(t.Context()), all["crash"], map[string]any{"name": marker}); err != nil || res["result"] != "still here" {
		t.Errorf("the next call starts the server again, got %v, %v", res, err)
	}
	res, err := tool.Call(call(t.Context()), all["crash_once"], map[string]any{"name": marker + "2"})
	if err != nil || res["result"] != "still here" {
		t.Errorf("what only reads is done again, got %v, %v", res, err)
	}
}

// doc/security.md: the half of a line that a server has written when it ends is no answer.
func TestHalfALineIsNoAnswer(t *testing.T) {
	res, err := tool.Call(call(t.Context()), tools(t, toolset(t, command()))["cut"], nil)
	if err == nil || !strings.HasPrefix(err.Error(), `tool "cut": the connection was lost, and it is unknown whether the call took effect: `) ||
		!strings.HasSuffix(err.Error(), "unexpected EOF") {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestServerThatForgetsItsSessions(t *testing.T) {
	for _, stateful := range []bool{true, false} {
		w := newWeb(t, stateful)
		s := toolset(t, mcptoolset.Config{URL: endpoint(t, w)})
		all := tools(t, s)
		w.restart()
		if res, err := tool.Call(call(t.Context()), all["add"], map[string]any{"a": 1, "b": 2}); err != nil || res["total"] != 3.0 {
			t.Errorf("got %v, %v", res, err)
		}
		if _, err := s.Tools(call(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// A transport that is good for one connection is not a reason to hang.
func TestTransportThatConnectsOnce(t *testing.T) {
	client, server := mcp.NewInMemoryTransports()
	ss, err := newServer().Connect(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := toolset(t, mcptoolset.Config{Transport: client, ConnectTimeout: time.Second})
	all := tools(t, s)
	if err := ss.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Call(call(t.Context()), all["add"], map[string]any{"a": 1, "b": 2}); err == nil {
		t.Error("there is nobody left to answer")
	}
}

func TestListIsKeptUntilItChanges(t *testing.T) {
	w := newWeb(t, false)
	s := toolset(t, mcptoolset.Config{URL: endpoint(t, w)})
	for range 3 {
		tools(t, s)
	}
	w.mu.Lock()
	lists := w.lists
	w.mu.Unlock()
	if lists != 1 {
		t.Errorf("the server was asked %d times", lists)
	}
	w.servers[0].RemoveTools("crash")
	for deadline := time.Now().Add(time.Minute); len(tools(t, s)) != 7; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the list does not change")
		}
	}
}

// Headers and requests go to the server that was named, and to nobody that it points
// to.
func TestRequestsStayWithTheirServer(t *testing.T) {
	other := newWeb(t, false)
	to := endpoint(t, other)
	here := newWeb(t, false)
	var redirect atomic.Value
	redirect.Store("")
	url := endpoint(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if where := redirect.Load().(string); where != "" {
			http.Redirect(rw, r, where, http.StatusTemporaryRedirect)
			return
		}
		here.ServeHTTP(rw, r)
	}))
	headers := http.Header{"authorization": {"Bearer secret"}}
	tools(t, toolset(t, mcptoolset.Config{URL: url, Headers: headers}))
	for _, where := range []string{to, "/elsewhere"} {
		redirect.Store(where)
		_, err := toolset(t, mcptoolset.Config{URL: url, Headers: headers}).Tools(call(t.Context()))
		if err == nil || !strings.Contains(err.Error(), "it redirects the POST request to") {
			t.Errorf("redirected to %s: %v", where, err)
		}
	}
	redirect.Store("") // the sessions are closed at the end
	for _, got := range here.authorizations() {
		if got != "Bearer secret" {
			t.Errorf("a request without its header: %q", got)
		}
	}
	if got := other.authorizations(); len(got) != 0 {
		t.Errorf("another server was asked %d times", len(got))
	}
}

func TestCancellationAndClose(t *testing.T) {
	s := toolset(t, command())
	all := tools(t, s)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	if _, err := tool.Call(call(ctx), all["hang"], nil); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if _, err := tool.Call(call(t.Context()), all["add"], map[string]any{"a": 1, "b": 2}); err != nil {
		t.Errorf("one call's end is not the session's: %v", err)
	}
	if _, err := s.Tools(call(ctx)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	hung := make(chan error)
	go func() {
		_, err := tool.Call(call(t.Context()), all["hang"], nil)
		hung <- err
	}()
	time.AfterFunc(50*time.Millisecond, func() { s.Close() })
	if err := <-hung; err == nil {
		t.Error("Close ends calls")
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if _, err := s.Tools(call(t.Context())); !errors.Is(err, mcptoolset.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := tool.Call(call(t.Context()), all["add"], nil); !errors.Is(err, mcptoolset.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// Many agents share a toolset: they get one session.
func TestConcurrentUse(t *testing.T) {
	s := toolset(t, command())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			all, err := s.Tools(call(t.Context()))
			if err != nil {
				t.Error(err)
				return
			}
			for _, it := range all {
				if f, ok := it.(tool.Function); ok && it.Name() == "add" {
					if _, err := f.Run(call(t.Context()), map[string]any{"a": 1, "b": 2}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}
