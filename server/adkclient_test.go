// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Google's evaluation client writes names as Python does, begins sessions with a conversation, and asks which agents an
// application has.
func TestADKEvaluationClient(t *testing.T) {
	s := open(t, map[string]string{"greeter.yaml": adkApp})
	sessions := "/api/apps/greeter/users/ana/sessions"
	var one struct {
		ID     string
		State  map[string]any
		Events []map[string]any
	}
	said := func(author, text string) map[string]any {
		return map[string]any{"author": author, "invocation_id": "i1", "timestamp": 1.7e9,
			"content": map[string]any{"role": "user", "parts": []any{map[string]any{"text": text}}}}
	}
	last := said("greet", "Hello, Ana.")
	last["actions"] = map[string]any{"state_delta": map[string]any{"my_key": 3}, "transfer_to_agent": "x"}
	s.ok("POST", sessions, map[string]any{"session_id": "s1", "state": map[string]any{"who": "Ana"}, "events": []any{said("user", "I am Ana."), last}}, &one)
	s.ok("GET", sessions+"/s1", nil, &one)
	if len(one.Events) != 2 || one.Events[0]["author"] != "user" || one.Events[1]["invocationId"] != "i1" || one.Events[1]["timestamp"] != 1.7e9 ||
		one.State["my_key"] != 3.0 || one.State["who"] != "Ana" {
		t.Errorf("the session is %+v", one)
	}
	if actions, _ := json.Marshal(one.Events[1]["actions"]); strings.Contains(string(actions), "transfer") {
		t.Errorf("a client acts for an agent: %s", actions)
	}
	run := map[string]any{"app_name": "greeter", "user_id": "ana", "session_id": "s1", "streaming": false,
		"state_delta": map[string]any{"a_key": map[string]any{"b_c": 1}},
		"new_message": map[string]any{"role": "user", "parts": []any{map[string]any{"inline_data": map[string]any{"mime_type": "text/csv", "data": "YSxi"}}, map[string]any{"text": "hi"}}}}
	var events []map[string]any
	s.ok("POST", "/api/run", run, &events)
	if text, _ := json.Marshal(events); !strings.Contains(string(text), "Hello Ana, you said hi.") {
		t.Errorf("the events are %s", text)
	}
	run["unknown_field"] = 1
	s.refused(400, "bad_request", "POST", "/api/run_sse", run)
	var all []struct {
		ID    string
		State map[string]any
	}
	s.ok("GET", sessions, nil, &all)
	if len(all) != 1 || all[0].State["who"] != "Ana" || all[0].State["greeting"] == nil {
		t.Errorf("the list is %+v", all)
	}
	if inner, _ := all[0].State["a_key"].(map[string]any); inner["b_c"] != 1.0 {
		t.Errorf("the names in the state are %v", all[0].State)
	}
	for key := range all[0].State {
		if strings.Contains(key, "refrain") {
			t.Errorf("the list has the key %s", key)
		}
	}
	var app struct {
		Name, RootAgentName string
		Agents              map[string]struct {
			Name      string
			SubAgents []string
		}
	}
	s.ok("GET", "/api/apps/greeter/app-info", nil, &app)
	if root := app.Agents[app.RootAgentName]; app.Name != "greeter" || !slices.Equal(root.SubAgents, []string{"greet"}) || app.Agents["greet"].Name != "greet" {
		t.Errorf("the application is %+v", app)
	}
	s.refused(404, "definition_not_found", "GET", "/api/apps/none/app-info", nil)
	s.refused(501, "not_here", "GET", "/api/dev/apps/greeter/builder", nil)
}

// An evaluation client learns of the tools that a definition names.
func TestADKAppInfoHasTools(t *testing.T) {
	s := open(t, map[string]string{"helper.yaml": `name: helper
model: scripted/script.yaml
instructions: Help.
tools:
  - {agent: {name: asks, description: Asks another., model: scripted/script.yaml, instructions: Ask.}}
  - mcp: {url: "http://127.0.0.1:1/mcp", only: [find], prefix: books_}
`, "script.yaml": "answers: [{text: hello}]\n"})
	var app struct {
		Agents map[string]struct {
			Tools []struct {
				FunctionDeclarations []struct{ Name, Description string }
			}
		}
	}
	s.ok("GET", "/api/apps/helper/app-info", nil, &app)
	var got []string
	for _, tool := range app.Agents["helper"].Tools {
		for _, d := range tool.FunctionDeclarations {
			got = append(got, d.Name+": "+d.Description)
		}
	}
	if want := []string{"asks: Asks another.", "books_find: "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a client gives as a conversation does not act for an agent, and has limits.
func TestADKEventsOfAClient(t *testing.T) {
	s := open(t, map[string]string{"greeter.yaml": adkApp})
	for name, ev := range map[string]any{
		"no author":    map[string]any{"content": map[string]any{"parts": []any{map[string]any{"text": "x"}}}},
		"no event":     3,
		"confirmation": map[string]any{"author": "greet", "content": map[string]any{"parts": []any{map[string]any{"functionCall": map[string]any{"name": "adk_request_confirmation", "id": "1"}}}}},
		"files":        map[string]any{"author": "greet", "actions": map[string]any{"stateDelta": map[string]any{"workspace": map[string]any{"tree": "x"}}}},
		"log":          map[string]any{"author": "greet", "actions": map[string]any{"stateDelta": map[string]any{"refrain:run": 1}}},
	} {
		if got := s.do("POST", "/api/apps/greeter/users/ana/sessions/s1", map[string]any{"events": []any{ev}}); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	s.refused(404, "run_not_found", "GET", "/api/apps/greeter/users/ana/sessions/s1", nil)
}
