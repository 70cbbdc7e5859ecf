// SPDX-License-Identifier: Apache-2.0

package adkrest_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/server/adkrest"
	"github.com/refrain-dev/refrain/session"
)

// serve serves an agent, and returns a function that asks it.
func serve(t *testing.T, cfg adkrest.ServerConfig) func(method, path, body string) (status int, text string) {
	t.Helper()
	api, err := adkrest.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(api)
	t.Cleanup(func() {
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := api.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return func(method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
}

const hi = `{"appName":"slow","userId":"ana","sessionId":"s1","newMessage":{"role":"user","parts":[{"text":"Hi"}]}}`

// A stream ends after its time, and the run goes on.
func TestStreamEndsBeforeItsRun(t *testing.T) {
	open := make(chan struct{})
	slow, err := agent.New(agent.Config{Name: "slow", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			select {
			case <-open:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Content = genai.NewContentFromText("Here I am.", genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ask := serve(t, adkrest.ServerConfig{AgentLoader: agent.NewSingleLoader(slow), SSEWriteTimeout: 50 * time.Millisecond})
	if status, text := ask("POST", "/apps/slow/users/ana/sessions/s1", "{}"); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := ask("POST", "/run_sse", hi); status != 200 || strings.Contains(text, "Here I am.") {
		t.Errorf("the stream: %d %s", status, text)
	}
	close(open)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, text := ask("GET", "/apps/slow/users/ana/sessions/s1", "")
		if strings.Contains(text, "Here I am.") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the run has not gone on: %s", text)
		}
	}
}
