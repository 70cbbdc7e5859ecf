// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/scripted"
)

// LOOP 30: a new model that is told what an earlier one has said goes on behind it.
func TestRecall(t *testing.T) {
	m, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Agent: "critic", Text: "bad"}, {Agent: "critic", Turn: 2, Text: "better"}, {Agent: "critic", Calls: []scripted.Call{{Name: "exit_loop"}}},
		{Agent: "writer", Text: "one"}, {Agent: "writer", Text: "two"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Recall("critic", genai.NewContentFromText("bad", genai.RoleModel))
	m.Recall("writer", genai.NewContentFromText("one", genai.RoleModel))
	m.Recall("writer", genai.NewContentFromText("something else", genai.RoleModel))
	for _, want := range []struct{ agent, text string }{{"critic", "better"}, {"writer", "two"}} {
		a, err := m.Take(from(want.agent, "go"))
		if err != nil || a.Text != want.text {
			t.Errorf("%s says %q, %v; want %q", want.agent, a.Text, err, want.text)
		}
	}
	m.Recall("critic", &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "exit_loop"}}}})
	if a, err := m.Take(from("critic", "go")); err == nil {
		t.Errorf("the script has no more for the critic, and it says %q", a.Text)
	}
}

// LOOP 30: answers that call one function are told apart by what they call it with,
// whatever types the numbers in a log have.
func TestRecallTellsCallsApart(t *testing.T) {
	pay := func(args map[string]any) scripted.Answer {
		return scripted.Answer{Agent: "clerk", Calls: []scripted.Call{{Name: "pay", Args: args}}}
	}
	m, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		pay(map[string]any{"to": "ana", "amount": 10}), pay(map[string]any{"to": "bob", "amount": 20}), pay(nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []map[string]any{{"amount": int64(20), "to": "bob"}, {}} {
		m.Recall("clerk", &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "pay", Args: args}}}})
	}
	a, err := m.Take(from("clerk", "go"))
	if err != nil || len(a.Calls) != 1 || a.Calls[0].Args["to"] != "ana" {
		t.Errorf("the clerk calls %+v, %v; want the payment to ana", a.Calls, err)
	}
}
