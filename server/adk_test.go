// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/server"
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
	if one.ID != "s1" || one.AppName != "greeter" || one.UserID != "ana" || one.State["who"] != "Ana" || one.Events == nil ||
		one.LastUpdateTime == 0 {
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
	files := map[string]any{"workspace": map[string]any{"tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "run": ""}}
	s.refused(400, "bad_request", "PATCH", sessions+"/s1", map[string]any{"stateDelta": files})
	s.refused(400, "bad_request", "POST", sessions+"/s3", map[string]any{"state": files})
	s.refused(400, "bad_request", "POST", "/api/run", map[string]any{"appName": "greeter", "userId": "ana", "sessionId": "s1",
		"newMessage": run["newMessage"], "stateDelta": files})
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

// The routes of ADK answer with the fields that its clients know, and with no others.
func TestADKBodies(t *testing.T) {
	files := artifact.InMemoryService()
	s := open(t, map[string]string{
		"greeter.yaml": adkApp,
		"broken.yaml":  "name: broken\nset: {x: 1 / int(state.zero)}\nstate: {zero: 0}\n",
		"asks.yaml":    "name: asks\nmax_iterations: 1\nsub_agents:\n  - {name: boss, question: Shall I?, ask: answer, output_key: may}\n",
	}, func(c *server.Config) { c.ArtifactService = files })
	sessions := "/api/apps/greeter/users/ana/sessions"
	var one map[string]any
	knows := func(what string, got map[string]any, want ...string) {
		t.Helper()
		for key := range got {
			if !slices.Contains(want, key) {
				t.Errorf("%s has the field %q", what, key)
			}
		}
	}
	fields := []string{"id", "appName", "userId", "state", "events", "lastUpdateTime"}
	s.ok("POST", sessions, nil, &one) // an empty body
	knows("a new session", one, fields...)
	s.ok("POST", sessions+"/s1", map[string]any{"state": map[string]any{"who": "Ana"}}, &one)
	s.ok("GET", sessions+"/s1", nil, &one)
	knows("a session", one, fields...)
	for _, key := range fields {
		if _, ok := one[key]; !ok {
			t.Errorf("a session lacks %q", key)
		}
	}
	var list []map[string]any
	s.ok("GET", sessions, nil, &list)
	for _, l := range list {
		knows("a session of the list", l, fields...)
	}
	// Every field of a request is taken, and every frame of a stream is bare.
	frames := func(app, session string) (events []map[string]any, failed string) {
		t.Helper()
		got := s.ok("POST", "/api/run_sse", map[string]any{
			"appName": app, "userId": "ana", "sessionId": session, "streaming": true, "stateDelta": map[string]any{"mood": "good"},
			"functionCallEventId": "", "newMessage": map[string]any{"role": "user", "parts": []any{map[string]any{"text": "hi"}}},
		}, nil)
		if got.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("the stream has %v", got.header)
		}
		for frame := range strings.SplitSeq(strings.TrimSuffix(string(got.body), "\n\n"), "\n\n") {
			if data, ok := strings.CutPrefix(frame, "event: error\ndata: "); ok {
				var e map[string]string
				if err := json.Unmarshal([]byte(data), &e); err != nil || len(e) != 1 {
					t.Errorf("the error is %q, %v", data, err)
				}
				failed = e["error"]
				continue
			}
			data, ok := strings.CutPrefix(frame, "data: ")
			var ev map[string]any
			if err := json.Unmarshal([]byte(data), &ev); !ok || err != nil || strings.Contains(data, "\n") {
				t.Fatalf("a frame is %q, %v", frame, err)
			}
			actions, ok := ev["actions"].(map[string]any)
			if !ok || ev["id"] == "" || ev["invocationId"] == "" || ev["author"] == "" {
				t.Errorf("an event is %v", ev)
			}
			for _, always := range []string{"stateDelta", "artifactDelta"} {
				if m, ok := actions[always].(map[string]any); !ok {
					t.Errorf("the %s of an event is %v", always, m)
				}
			}
			knows("an event's actions", actions, "stateDelta", "artifactDelta", "escalate", "transferToAgent", "skipSummarization",
				"requestedToolConfirmations")
			events = append(events, ev)
		}
		return events, failed
	}
	events, failed := frames("greeter", "s1")
	if n := len(events); n < 2 || failed != "" {
		t.Errorf("%d events, %q", n, failed)
	}
	s.ok("POST", "/api/apps/broken/users/ana/sessions/s2", nil, nil)
	if _, failed := frames("broken", "s2"); !strings.Contains(failed, "division by zero") {
		t.Errorf("the error is %q", failed)
	}
	// An answer is the next message, as a text or as what a function has returned.
	for id, part := range map[string]map[string]any{
		"t": {"text": "by all means"},
		"f": {"functionResponse": map[string]any{"id": "q", "name": "ask", "response": map[string]any{"result": "by all means"}}},
	} {
		s.ok("POST", "/api/apps/asks/users/ana/sessions/"+id, nil, nil)
		run := map[string]any{"appName": "asks", "userId": "ana", "sessionId": id,
			"newMessage": map[string]any{"parts": []any{map[string]any{"text": "go"}}}}
		s.ok("POST", "/api/run", run, nil)
		run["newMessage"] = map[string]any{"role": "user", "parts": []any{part}}
		s.ok("POST", "/api/run", run, nil)
		s.ok("GET", "/api/apps/asks/users/ana/sessions/"+id, nil, &one)
		if state, _ := one["state"].(map[string]any); state["may"] != "by all means" {
			t.Errorf("%s: the answer is %v", id, one)
		}
	}
	// Artifacts, by name and by version.
	for _, text := range []string{"first", "second"} {
		_, err := files.Save(t.Context(), &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: "greeter/ana/s1", FileName: "notes.txt",
			Part: genai.NewPartFromText(text)})
		if err != nil {
			t.Fatal(err)
		}
	}
	at := sessions + "/s1/artifacts"
	var names []string
	s.ok("GET", at, nil, &names)
	if diff := cmp.Diff([]string{"notes.txt"}, names); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{"": "second", "?version=1": "first", "/versions/1": "first", "/versions/2": "second"} {
		var part map[string]any
		if s.ok("GET", at+"/notes.txt"+path, nil, &part); part["text"] != want {
			t.Errorf("%q is %v, want %s", path, part, want)
		}
	}
	s.refused(400, "bad_request", "GET", at+"/notes.txt/versions/none", nil)
	s.ok("DELETE", at+"/notes.txt", nil, nil)
	s.refused(404, "artifact_not_found", "GET", at+"/notes.txt", nil)
	// What is not here says so, and does not break the trace of ADK Web.
	for _, path := range []string{"/api/run_live", "/api/debug/trace/e1", sessions + "/s1/events/e1/graph"} {
		s.refused(501, "not_here", "GET", path, nil)
	}
	var spans []any
	s.ok("GET", "/api/debug/trace/session/s1", nil, &spans)
	s.refused(409, "no_question", "POST", "/api/run", func() map[string]any {
		s.ok("POST", "/api/apps/asks/users/ana/sessions/w", nil, nil)
		run := map[string]any{"appName": "asks", "userId": "ana", "sessionId": "w"}
		s.ok("POST", "/api/run", run, nil)
		return run
	}())
	s.ok("DELETE", sessions+"/none", nil, nil) // as ADK does
}
