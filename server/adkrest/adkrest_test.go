// SPDX-License-Identifier: Apache-2.0

package adkrest_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/server/adkrest"
	"github.com/refrain-dev/refrain/session"
)

// A Go agent answers clients of ADK's REST API.
func Example() {
	root, err := agent.New(agent.Config{Name: "greeter", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Content = genai.NewContentFromText("Hello to you.", genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := adkrest.NewServer(adkrest.ServerConfig{
		SessionService: session.InMemoryService(), AgentLoader: agent.NewSingleLoader(root),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Shutdown(context.Background())
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", api))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	post := func(path, body string) string {
		resp, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, strings.Contains(string(text), "Hello to you."), err)
	}
	fmt.Println(post("/api/apps/greeter/users/ana/sessions/s1", "{}"))
	fmt.Println(post("/api/run", `{"appName":"greeter","userId":"ana","sessionId":"s1","newMessage":{"role":"user","parts":[{"text":"Hi"}]}}`))
	fmt.Println(post("/api/v1/runs", `{"definition":"greeter"}`))
	// Output:
	// 200 false <nil>
	// 200 true <nil>
	// 404 false <nil>
}
