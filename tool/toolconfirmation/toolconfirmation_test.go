// SPDX-License-Identifier: Apache-2.0

package toolconfirmation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

func ExampleOriginalCallFrom() {
	call := &genai.FunctionCall{ID: "c1", Name: "delete", Args: map[string]any{"files": 12}}
	question := toolconfirmation.Question("q1", call, toolconfirmation.ToolConfirmation{Hint: "Go on?"})
	original, err := toolconfirmation.OriginalCallFrom(question)
	fmt.Println(question.Name, original.Name, original.Args, err)
	// Output: adk_request_confirmation delete map[files:12] <nil>
}

// LOOP 32: the question can be read wherever it was kept: here, in ADK, in a
// store.
func TestOriginalCall(t *testing.T) {
	want := &genai.FunctionCall{ID: "c1", Name: "delete", Args: map[string]any{"file": "a"}}
	ours := toolconfirmation.Question("q1", want, toolconfirmation.ToolConfirmation{Hint: "Sure?"})
	adk := &genai.FunctionCall{ID: "q1", Args: map[string]any{"originalFunctionCall": want}}
	for name, q := range map[string]*genai.FunctionCall{"ours": ours, "stored": stored(t, ours), "ADK's": adk, "ADK's, stored": stored(t, adk)} {
		got, err := toolconfirmation.OriginalCallFrom(q)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", name, diff, err)
		}
	}
	for text, q := range map[string]*genai.FunctionCall{
		"there is no function call":                     nil,
		"the argument originalFunctionCall is missing":  {ID: "q1"},
		`"q1": the argument originalFunctionCall is nu`: {ID: "q1", Args: map[string]any{"originalFunctionCall": nil}},
		`the argument originalFunctionCall is null`:     {ID: "q1", Args: map[string]any{"originalFunctionCall": (*genai.FunctionCall)(nil)}},
		`original call of confirmation "q1": json: `:    {ID: "q1", Args: map[string]any{"originalFunctionCall": "delete"}},
		`unsupported type`:                              {ID: "q1", Args: map[string]any{"originalFunctionCall": make(chan int)}},
	} {
		if got, err := toolconfirmation.OriginalCallFrom(q); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, %v; want %s", got, err, text)
		}
	}
}

func stored(t *testing.T, c *genai.FunctionCall) *genai.FunctionCall {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again := new(genai.FunctionCall)
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	return again
}

func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		response map[string]any
		want     *toolconfirmation.ToolConfirmation
	}{
		{map[string]any{"confirmed": true}, &toolconfirmation.ToolConfirmation{Confirmed: true}},
		{map[string]any{"confirmed": false, "hint": "h", "payload": []any{"x"}}, &toolconfirmation.ToolConfirmation{Hint: "h", Payload: []any{"x"}}},
		{map[string]any{"response": `{"confirmed": true}`}, &toolconfirmation.ToolConfirmation{Confirmed: true}},
		{nil, nil},
		{map[string]any{"confirmed": "yes"}, nil},
		{map[string]any{"confirmed": true, "hint": 3}, nil},
		{map[string]any{"response": `yes`}, nil},
		{map[string]any{"response": `{}`}, nil},
		{map[string]any{"response": true}, nil},
	} {
		got, err := toolconfirmation.AnswerFrom(&genai.FunctionResponse{ID: "q1", Response: tt.response})
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != (tt.want == nil) {
			t.Errorf("%v: %s, %v", tt.response, diff, err)
		}
		if err != nil && !strings.Contains(err.Error(), `"q1"`) {
			t.Errorf("%v does not name the question", err)
		}
	}
	if _, err := toolconfirmation.AnswerFrom(nil); err == nil {
		t.Error("no answer is none")
	}
}

// User code written for ADK asserts these types.
func TestArgumentsOfAQuestionHaveADKsTypes(t *testing.T) {
	call := &genai.FunctionCall{ID: "c1", Name: "delete", Args: map[string]any{"file": "a"}}
	asked := toolconfirmation.ToolConfirmation{Hint: "Sure?", Payload: 3}
	args := toolconfirmation.Question("q1", call, asked).Args
	if got, ok := args["originalFunctionCall"].(*genai.FunctionCall); !ok || cmp.Diff(call, got) != "" {
		t.Errorf("originalFunctionCall is %#v", args["originalFunctionCall"])
	}
	if got, ok := args["toolConfirmation"].(toolconfirmation.ToolConfirmation); !ok || got != asked {
		t.Errorf("toolConfirmation is %#v", args["toolConfirmation"])
	}
}
