// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func script(t *testing.T, answers ...scripted.Answer) *scripted.Model {
	t.Helper()
	m, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func llm(t *testing.T, cfg llmagent.Config) agent.Agent {
	t.Helper()
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A12, D18: an agent with schemas is a function: it is given an object of one
// shape and answers with one of the other.
func TestSchemas(t *testing.T) {
	trip := &genai.Schema{Type: genai.TypeObject, Required: []string{"city"}, Properties: map[string]*genai.Schema{
		"city": {Type: genai.TypeString}, "days": {Type: genai.TypeInteger},
	}}
	plan := &genai.Schema{Type: genai.TypeObject, Required: []string{"price"}, Properties: map[string]*genai.Schema{"price": {Type: genai.TypeNumber}}}
	var asked []string
	planner := func(answer string) agent.Agent {
		return llm(t, llmagent.Config{
			Name: "planner", Model: script(t, scripted.Answer{Text: answer}, scripted.Answer{Text: answer}), InputSchema: trip, OutputSchema: plan,
			BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
				asked = append(asked, ctx.UserContent().Parts[0].Text)
				return nil, nil
			}},
		})
	}
	ctx := func() tool.Context {
		return agent.NewToolContext(drive.NewInvocation(t.Context(), drive.Invocation{Session: view()}), "call-1", nil, nil)
	}
	f := function(t, planner(`{"price": 120}`), nil)

	d := f.Declaration()
	in, err := json.Marshal(d.ParametersJsonSchema)
	if err != nil || !strings.Contains(string(in), `"required":["city"]`) || !strings.Contains(string(in), `"additionalProperties":false`) {
		t.Errorf("parameters: %s, %v", in, err)
	}
	if out, err := json.Marshal(d.ResponseJsonSchema); err != nil || !strings.Contains(string(out), `"price"`) {
		t.Errorf("response: %s, %v", out, err)
	}

	res, err := tool.Call(ctx(), f, map[string]any{"city": "Rome", "days": 3})
	if err != nil || len(res) != 1 || res["price"] != 120.0 {
		t.Errorf("got %v, %v", res, err)
	}
	if len(asked) != 1 || asked[0] != `{"city":"Rome","days":3}` {
		t.Errorf("asked %q", asked)
	}

	_, err = tool.Call(ctx(), f, map[string]any{"days": "three", "town": "Rome"})
	wrong, ok := errors.AsType[*functiontool.ArgumentsError](err)
	want := `invalid arguments for planner: city: is missing, expected a string; town: is unknown, expected only city, days; days: expected an integer, got the string "three"`
	if !ok || wrong.Error() != want || len(asked) != 1 {
		t.Errorf("got %v, asked %q", err, asked)
	}

	_, err = tool.Call(ctx(), function(t, planner("cheap"), nil), map[string]any{"city": "Rome"})
	if _, ok := errors.AsType[*llmagent.OutputError](err); !ok {
		t.Errorf("got %v", err)
	}
	silent := llm(t, llmagent.Config{Name: "silent", Model: script(t, scripted.Answer{}), OutputSchema: plan, BeforeAgentCallbacks: []agent.BeforeAgentCallback{
		func(ctx agent.Context) (*genai.Content, error) {
			return genai.NewContentFromText("not JSON", genai.RoleModel), nil
		},
	}})
	if _, err = tool.Call(ctx(), function(t, silent, nil), map[string]any{"request": "go"}); err == nil ||
		!strings.Contains(err.Error(), `the answer of agent "silent" is not JSON`) {
		t.Errorf("got %v", err)
	}
}

// A list as an answer is found under one name, as with any function.
func TestAnswerThatIsNoObject(t *testing.T) {
	list := &genai.Schema{Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeString}}
	f := function(t, llm(t, llmagent.Config{Name: "lister", Model: script(t, scripted.Answer{Text: `["a"]`}), OutputSchema: list}), nil)
	ctx := agent.NewToolContext(drive.NewInvocation(t.Context(), drive.Invocation{Session: view()}), "call-1", nil, nil)
	res, err := tool.Call(ctx, f, map[string]any{"request": "go"})
	if all, ok := res["result"].([]any); err != nil || !ok || len(all) != 1 || all[0] != "a" {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestNewPanicsWithABrokenTree(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "unique") {
			t.Errorf("got %v", r)
		}
	}()
	twin := func() agent.Agent { return custom(t, "twin", nil) }
	root, err := agent.New(agent.Config{Name: "root", SubAgents: []agent.Agent{twin(), twin()}})
	if err != nil {
		t.Fatal(err)
	}
	agenttool.New(root, nil)
}
