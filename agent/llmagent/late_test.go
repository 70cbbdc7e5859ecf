// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// nameless is a model whose calls have no IDs, as Gemini's have none. It makes the
// given turns one after another: a call by its tool's name, or "=" and a text.
func nameless(turns ...[]string) fake {
	return func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		c := &genai.Content{Role: genai.RoleModel}
		for _, s := range turns[0] {
			if text, ok := cutText(s); ok {
				c.Parts = append(c.Parts, &genai.Part{Text: text})
			} else {
				c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{Name: s}})
			}
		}
		turns = turns[1:]
		yield(&model.LLMResponse{Content: c}, nil)
	}
}

func cutText(s string) (string, bool) {
	if s[0] == '=' {
		return s[1:], true
	}
	return "", false
}

// pending is a tool whose answer comes later.
func pending(t *testing.T, name string) tool.Tool {
	t.Helper()
	made, err := functiontool.New(functiontool.Config{Name: name, IsLongRunning: true},
		func(tool.Context, struct{}) (map[string]any, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// callIDs are the IDs of calls and answers in the i-th request.
func (r *recorder) callIDs(i int) []string {
	var ids []string
	for _, c := range r.requests[i].Contents {
		for _, p := range c.Parts {
			if p.FunctionCall != nil {
				ids = append(ids, p.FunctionCall.ID)
			}
			if p.FunctionResponse != nil {
				ids = append(ids, p.FunctionResponse.ID)
			}
		}
	}
	return ids
}

// As in ADK: the answer to a long-running call stands last in the request, right
// behind its call; what was said while it was pending comes back behind it later.
// The ID that the log needs never reaches a model that gave none.
func TestLateAnswerStandsLast(t *testing.T) {
	rec := record(nameless([]string{"order"}, []string{"=meanwhile"}, []string{"=arrived"}, []string{"=bye"}))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{pending(t, "order")}}))
	th.must("buy")
	th.must("and?")
	var id string
	for ev := range th.session().Events().All() {
		if len(ev.LongRunningToolIDs) > 0 {
			id = ev.LongRunningToolIDs[0]
		}
	}
	arrived := &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "order", Response: map[string]any{"box": 1}}}
	if _, err := th.send(arrived); err != nil {
		t.Fatal(err)
	}
	want := []string{"user: buy", "model: call order", "user: answer order map[box:1]"}
	if diff := cmp.Diff(want, rec.heard(2)); diff != "" {
		t.Error(diff)
	}
	th.must("thanks")
	want = append(want, "user: and?", "model: meanwhile", "model: arrived", "user: thanks")
	if diff := cmp.Diff(want, rec.heard(3)); diff != "" {
		t.Error(diff)
	}
	for i := range rec.requests {
		for _, id := range rec.callIDs(i) {
			if id != "" {
				t.Errorf("request %d has the ID %q", i, id)
			}
		}
	}
}

// What the user says together with a person's answer is in the request.
func TestLateAnswerKeepsTheMessageOfTheInvocation(t *testing.T) {
	rec := record(script(t, calls("delete"), says("done")))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Toolsets: []tool.Toolset{guarded(t, "delete")}}))
	q := th.asked(1)[0]
	if _, err := th.send(responds(q, map[string]any{"confirmed": false}), &genai.Part{Text: "keep it"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"user: go", "model: call delete", `user: answer delete map[error:error tool "delete" call is rejected]`, "user: keep it"}
	if diff := cmp.Diff(want, rec.heard(1)); diff != "" {
		t.Error(diff)
	}
}

// Calls of one name that are not answered in order keep their IDs: without them the
// answers could be taken for one another's. An ID that the model gave is its own.
func TestCallsThatOnlyIDsTellApartKeepThem(t *testing.T) {
	rec := record(nameless([]string{"look", "look"}, []string{"=seen"}))
	look := function(t, "look", func(tool.Context) (map[string]any, error) { return map[string]any{"n": 1}, nil })
	newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{look}})).must("go")
	if diff := cmp.Diff([]string{"", "", "", ""}, rec.callIDs(1)); diff != "" {
		t.Error(diff)
	}

	rec = record(nameless([]string{"order", "order"}, []string{"=one is here"}))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{pending(t, "order")}}))
	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	id := evs[0].LongRunningToolIDs[1]
	if _, err := th.send(&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "order", Response: map[string]any{"n": 2}}}); err != nil {
		t.Fatal(err)
	}
	if ids := rec.callIDs(1); len(ids) != 3 || ids[1] != id || ids[2] != id {
		t.Errorf("got %q, want the second call's ID at its answer", ids)
	}

	rec = record(script(t, calls("look"), says("seen")))
	newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{look}})).must("go")
	if diff := cmp.Diff([]string{"call_a_1_1", "call_a_1_1"}, rec.callIDs(1)); diff != "" {
		t.Error(diff)
	}
}
