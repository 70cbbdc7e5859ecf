// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session/mark"
)

const adkApp = `name: greeter
inputs:
  who: {default: nobody}
max_iterations: 2
sub_agents:
  - name: greet
    text: "Hello {{who}}, you said {{user_input}}."
    output_key: greeting
`

// Clients of ADK get what they expect, in their words and in no others.
func TestADK(t *testing.T) {
	s := open(t, map[string]string{"greeter.yaml": adkApp})
	var apps []string
	s.ok("GET", "/api/list-apps", nil, &apps)
	if diff := cmp.Diff([]string{"greeter"}, apps); diff != "" {
		t.Errorf("apps: %s", diff)
	}
	type adkSession struct {
		ID, AppName, UserID string
		State               map[string]any
		Events              []map[string]any
		LastUpdateTime      float64
	}
	var one adkSession
	sessions := "/api/apps/greeter/users/ana/sessions"
	s.ok("POST", sessions+"/s1", map[string]any{"state": map[string]any{"who": "Ana"}, "events": []any{}}, &one)
	if one.ID != "s1" || one.AppName != "greeter" || one.UserID != "ana" || one.State["who"] != "Ana" || one.Events == nil || one.LastUpdateTime == 0 {
		t.Errorf("made %+v", one)
	}
	s.refused(409, "run_exists", "POST", sessions+"/s1", map[string]any{"who": "Eva"})
	s.ok("POST", sessions, map[string]any{"who": "Eva"}, &one) // the state itself, as in Python's manual
	if one.ID == "" || one.State["who"] != "Eva" {
		t.Errorf("made %+v", one)
	}
	message := map[string]any{"role": "user", "parts": []any{map[string]any{"text": "hi"}}}
	run := map[string]any{"appName": "greeter", "userId": "ana", "sessionId": "s1", "newMessage": message, "streaming": false,
		"stateDelta": map[string]any{"mood": "good"}}
	var events []map[string]any
	s.ok("POST", "/api/run", run, &events)
	var said strings.Builder
	for _, ev := range events {
		for key := range ev {
			switch key {
			case "id", "invocationId", "author", "branch", "partial", "longRunningToolIds", "content", "usageMetadata", "turnComplete",
				"errorCode", "errorMessage", "finishReason", "modelVersion", "actions", "customMetadata", "timestamp":
			default:
				t.Errorf("an event has the field %q", key)
			}
		}
		if _, ok := ev["timestamp"].(float64); !ok {
			t.Errorf("the timestamp is %v", ev["timestamp"])
		}
		text, _ := json.Marshal(ev)
		said.WriteString(string(text) + "\n")
	}
	if !strings.Contains(said.String(), `"text":"Hello Ana, you said hi."`) || !strings.Contains(said.String(), `"loop_iteration":1`) ||
		!strings.Contains(said.String(), `"greeting":"Hello Ana, you said hi."`) || strings.Contains(said.String(), mark.KeyPrefix) {
		t.Errorf("the events are\n%s", said.String())
	}
	s.ok("GET", sessions+"/s1", nil, &one)
	if one.State["mood"] != "good" || one.State["greeting"] != "Hello Ana, you said hi." || len(one.Events) < 3 {
		t.Errorf("the session is %+v", one)
	}
	for key := range one.State {
		if strings.HasPrefix(key, mark.KeyPrefix) {
			t.Errorf("the state has %s", key)
		}
	}
	s.ok("PATCH", sessions+"/s1", map[string]any{"stateDelta": map[string]any{"who": "Bea"}}, &one)
	if one.State["who"] != "Bea" {
		t.Errorf("the state is %v", one.State)
	}
	s.ok("POST", "/api/run", run, &events) // the conversation goes on
	if text, _ := json.Marshal(events); !strings.Contains(string(text), "Hello Bea") {
		t.Errorf("the second run says %s", text)
	}
	var all []adkSession
	s.ok("GET", sessions, nil, &all)
	if len(all) != 2 {
		t.Errorf("%d sessions", len(all))
	}
	s.ok("GET", "/api/apps/greeter/users/eva/sessions", nil, &all)
	if len(all) != 0 {
		t.Errorf("another user has %d sessions", len(all))
	}
	s.ok("GET", sessions+"/s1/artifacts", nil, nil)
	s.refused(404, "artifact_not_found", "GET", sessions+"/s1/artifacts/none", nil)
	s.ok("DELETE", sessions+"/s1", nil, nil)
	s.refused(404, "run_not_found", "GET", sessions+"/s1", nil)
	s.refused(404, "run_not_found", "POST", "/api/run", run)
	run["unknown"] = 1
	s.refused(400, "bad_request", "POST", "/api/run", run)
	s.refused(501, "not_here", "GET", "/api/run_live", nil)
	s.refused(404, "definition_not_found", "POST", "/api/apps/none/users/ana/sessions", nil)
}

// LOOP 30: a run that a client of ADK has started goes on when the client leaves.
func TestADKStream(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(2)}, private)
	s.ok("POST", "/api/apps/gated/users/ana/sessions/s1", nil, nil)
	ask := func(ctx context.Context) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/api/run_sse",
			strings.NewReader(`{"appName":"gated","userId":"ana","sessionId":"s1","newMessage":{"role":"user","parts":[{"text":"go"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp := ask(ctx)
	<-g.came
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %v", resp.Header)
	}
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "data: {") {
		t.Errorf("the first line is %q, %v", line, err)
	}
	cancel()
	resp.Body.Close()
	g.let <- struct{}{}
	g.let <- struct{}{}
	if got := s.wait("gated/ana/s1"); got != "completed" {
		t.Fatalf("the run is %s", got)
	}
	var row struct{ Runs []listed }
	s.ok("GET", "/api/v1/runs?q=gated/ana", nil, &row)
	if len(row.Runs) != 1 {
		t.Errorf("the runs are %+v", row.Runs)
	}
	s.ok("GET", "/api/v1/runs/gated%2Fana%2Fs1", nil, nil)
	s.ok("GET", "/api/v1/runs/gated%2Fana%2Fs1/state", nil, nil)
}
