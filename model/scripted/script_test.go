// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

func Example() {
	script, err := scripted.Parse([]byte(`
answers:
  - agent: critic
    text: Too long.
  - agent: critic
    calls: [{name: exitLoop, args: {reason: it is good}}]
  - match: (?i)hello
    text: Hello yourself.
    usage: {prompt: 12, output: 3}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	llm, err := scripted.New(script)
	if err != nil {
		fmt.Println(err)
		return
	}
	for resp, err := range llm.GenerateContent(context.Background(), from("writer", "Hello!"), false) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Content.Parts[0].Text, resp.UsageMetadata.TotalTokenCount, resp.CustomMetadata["scripted"])
	}
	// Output: Hello yourself. 15 true
}

// from is a request of an agent's, as ADK writes it.
func from(agent, text string) *model.LLMRequest {
	return &model.LLMRequest{
		Contents: []*genai.Content{genai.NewContentFromText(text, genai.RoleUser)},
		Config: &genai.GenerateContentConfig{
			SystemInstruction: genai.NewContentFromText(fmt.Sprintf("You are an agent. Your internal name is %q.", agent), genai.RoleUser),
		},
	}
}

func parse(t testing.TB, text string) *scripted.Model {
	t.Helper()
	script, err := scripted.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := scripted.New(script)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// say is what the model says: its text, its calls or its error.
func say(t testing.TB, m model.LLM, req *model.LLMRequest) string {
	t.Helper()
	for resp, err := range m.GenerateContent(t.Context(), req, false) {
		if err != nil {
			return err.Error()
		}
		if resp.ModelVersion != "scripted" || resp.CustomMetadata["scripted"] != true {
			t.Errorf("it does not say that it is scripted: %+v", resp)
		}
		var out []string
		for _, p := range resp.Content.Parts {
			if p.FunctionCall != nil {
				out = append(out, fmt.Sprintf("%s(%v)#%s", p.FunctionCall.Name, p.FunctionCall.Args, p.FunctionCall.ID))
			} else {
				out = append(out, p.Text)
			}
		}
		return strings.Join(out, " ")
	}
	return ""
}

func TestAnswersAreChosen(t *testing.T) {
	const script = `
repeat_last: true
answers:
  - {agent: critic, turn: 2, text: by turn}
  - {match: '^stop', text: by the last text, repeat: true}
  - {match_request: 'call count \{"n":5\}', text: by the whole request}
  - {agent: critic, text: the critic's first}
  - {agent: critic, text: the critic's next}
  - {agent: refiner, calls: [{name: count, args: {n: 5}}, {name: exitLoop, id: mine}]}
  - {text: anybody's}
`
	m := parse(t, script)
	called := from("writer", "go on")
	called.Contents = append(called.Contents, &genai.Content{Role: "model", Parts: []*genai.Part{
		{FunctionCall: &genai.FunctionCall{Name: "count", Args: map[string]any{"n": 5}}},
	}})
	for i, tt := range []struct {
		req  *model.LLMRequest
		want string
	}{
		{from("critic", "go on"), "the critic's first"},
		{from("critic", "go on"), "by turn"},
		{from("critic", "go on"), "the critic's next"},
		{from("refiner", "go on"), "count(map[n:5])#call_refiner_1_1 exitLoop(map[])#mine"},
		{from("writer", "stop now"), "by the last text"},
		{from("critic", "stop now"), "by the last text"},
		{called, "by the whole request"},
		{from("critic", "go on"), "anybody's"},
		{from("critic", "go on"), "anybody's"},
		{from("refiner", "go on"), "anybody's"},
	} {
		if got := say(t, m, tt.req); got != tt.want {
			t.Errorf("request %d: got %q, want %q", i+1, got, tt.want)
		}
	}
	if got := say(t, m.Fresh(), from("critic", "go on")); got != "the critic's first" {
		t.Errorf("a fresh one begins with %q", got)
	}
}

func TestScriptRunsOut(t *testing.T) {
	m := parse(t, `answers: [{agent: critic, text: once}]`)
	say(t, m, from("critic", "go on"))
	if got := say(t, m, from("critic", "go on")); !strings.Contains(got, `no answer for turn 2 of agent "critic"`) {
		t.Errorf("got %q", got)
	}
	if got := say(t, m, &model.LLMRequest{}); !strings.Contains(got, "turn 1 of an agent that does not say its name") {
		t.Errorf("got %q", got)
	}
}

func TestWhoeverGetsArgumentsMayChangeThem(t *testing.T) {
	m := parse(t, `{"answers": [{"repeat": true, "calls": [{"name": "f", "args": {"list": [1, {"a": 2}]}}]}]}`)
	for range 2 {
		for resp, err := range m.GenerateContent(t.Context(), &model.LLMRequest{}, false) {
			if err != nil {
				t.Fatal(err)
			}
			args := resp.Content.Parts[0].FunctionCall.Args
			if diff := cmp.Diff(map[string]any{"list": []any{1.0, map[string]any{"a": 2.0}}}, args); diff != "" {
				t.Error(diff)
			}
			args["list"].([]any)[1].(map[string]any)["a"] = "changed"
		}
	}
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, `answers: [{delay: 2s, pace: 500ms, chunks: [one, two, three]}]`)
		start, at := time.Now(), []time.Duration(nil)
		for _, err := range m.GenerateContent(t.Context(), &model.LLMRequest{}, true) {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(start))
		}
		want := []time.Duration{2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 3 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
	})
}

func TestParseSaysWhere(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "script:1:1: a script needs answers"},
		{"answers: []", "script:1:1: a script needs answers"},
		{"answers:\n  - text: a\n  - txet: b\n", `script:3:5: unknown field "txet"; did you mean "text"?`},
		{"nam: a\nanswers: [{text: a}]\n", `script:1:1: unknown field "nam"; did you mean "name"?`},
		{"- text: a\n", "script:1:1: here stands a list; write a map, such as {answers: [{text: Hello}]}"},
		{"answers: hello\n", "script:1:10: here stands a text: hello; write a list, such as answers: [{text: Hello}]"},
		{"answers:\n  - text: a\n  - [b]\n", "script:3:5: here stands a list; write a map, such as {text: Hello}"},
		{"answers:\n  - text: [a]\n", "script:2:11: here stands a list; write a text"},
		{"answers:\n  - calls: lookup\n", "script:2:12: here stands a text: lookup; write a list, such as calls: "},
		{"answers:\n  - text: [a\n", "script:3:1:"},
		{"answers:\n  - turn: often\n", "script:2:11:"},
		{"answers:\n  - text: a\n  - match: '('\n", "script:3:5: pattern \"(\""},
		{"answers:\n  - {text: a, chunks: [b]}\n", "script:2:5: chunks come to"},
		{"answers:\n  - {text: a, json: {b: 1}}\n", "script:2:5: text and json"},
		{"answers:\n  - {calls: [{args: {}}]}\n", "script:2:5: call 1 has no name"},
		{"answers:\n  - {text: a, error: {status: 500}}\n", "script:2:5: both an error and an answer"},
		{"answers:\n  - {delay: -1s}\n", "script:2:5: a time is negative"},
		{"answers:\n  - {turn: -1}\n", "script:2:5: turn is -1"},
	} {
		_, err := scripted.Parse([]byte(tt.text))
		if _, ok := errors.AsType[*scripted.SyntaxError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestPiecesComeToTheText(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("naïve words 🍌 ", 20), strings.Repeat("x", 200), " \n ",
		"ends with a space "} {
		pieces := scripted.Answer{Text: text}.Pieces()
		if got := strings.Join(pieces, ""); got != text {
			t.Errorf("%q comes out as %q", text, got)
		}
		for _, p := range pieces {
			if p == "" {
				t.Errorf("%q has an empty piece", text)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("answers: [{text: a, usage: {prompt: 1}}]\nrepeat_last: true\n")
	f.Add(`{"answers": [{"error": {"status": 429, "retry_after": "2s"}}]}`)
	f.Add("answers:\n- &a {match: x}\n- *a\n- json: {b: [1, ~, 2.5]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		script, err := scripted.Parse([]byte(text))
		if err != nil {
			if _, ok := errors.AsType[*scripted.SyntaxError](err); !ok {
				t.Errorf("%v is no SyntaxError", err)
			}
			return
		}
		if _, err := scripted.New(script); err != nil {
			t.Errorf("parsed, but no model: %v", err)
		}
	})
}
