// SPDX-License-Identifier: Apache-2.0

package adkrest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model/scripted"
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

// With streaming, /run_sse has the pieces of each answer before the answer, and behind what came earlier.
func TestStreamHasThePiecesOfAnswers(t *testing.T) {
	llm, err := scripted.New(scripted.Script{Name: "script", Answers: []scripted.Answer{
		{Text: "Hello to you.", Chunks: []string{"Hello ", "to ", "you."}, Repeat: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	says, err := llmagent.New(llmagent.Config{Name: "says", Description: "Says it.", Model: llm})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "slow", SubAgents: []agent.Agent{says}}, MaxIterations: 20})
	if err != nil {
		t.Fatal(err)
	}
	ask := serve(t, adkrest.ServerConfig{AgentLoader: agent.NewSingleLoader(slow)})
	texts := func(session, path, streaming string) (got []string) {
		t.Helper()
		if status, text := ask("POST", "/apps/slow/users/ana/sessions/"+session, "{}"); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		body := strings.Replace(strings.Replace(hi, "s1", session, 1), "{", `{"streaming":`+streaming+`,`, 1)
		status, text := ask("POST", path, body)
		if status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		ids := make(map[string]bool)
		for line := range strings.Lines(text) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok {
				continue
			}
			var ev struct {
				ID        string
				Timestamp float64
				Partial   bool
				Content   *genai.Content
			}
			if err := json.Unmarshal([]byte(data), &ev); err != nil || ev.ID == "" || ids[ev.ID] || ev.Timestamp <= 0 {
				t.Errorf("event %s: %v", data, err)
			}
			ids[ev.ID] = true
			if ev.Content != nil && len(ev.Content.Parts) > 0 && ev.Content.Parts[0].Text != "" {
				got = append(got, fmt.Sprint(ev.Partial, " ", ev.Content.Parts[0].Text))
			}
		}
		return got
	}
	var want, whole []string
	for range 20 {
		want = append(want, "true Hello ", "true to ", "true you.", "false Hello to you.")
		whole = append(whole, "false Hello to you.")
	}
	if got := texts("s2", "/run_sse", "true"); !slices.Equal(got, want) {
		t.Errorf("with streaming: %q", got)
	}
	if got := texts("s3", "/run_sse", "false"); !slices.Equal(got, whole) {
		t.Errorf("without: %q", got)
	}
	if status, text := ask("POST", "/apps/slow/users/ana/sessions/s4", "{}"); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	body := strings.Replace(strings.Replace(hi, "s1", "s4", 1), "{", `{"streaming":true,`, 1)
	if _, text := ask("POST", "/run", body); strings.Contains(text, `"partial":true`) {
		t.Errorf("/run answers with pieces: %s", text)
	}
}
