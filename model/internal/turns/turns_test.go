// SPDX-License-Identifier: Apache-2.0

package turns_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/internal/turns"
)

func user(parts ...*genai.Part) *genai.Content { return &genai.Content{Role: "user", Parts: parts} }

func said(parts ...*genai.Part) *genai.Content { return &genai.Content{Role: "model", Parts: parts} }

func text(s string) *genai.Part { return &genai.Part{Text: s} }

func call(id, name string) *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name}}
}

func answer(id, name string, n int) *genai.Part {
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: map[string]any{"n": n}}}
}

func TestPrepare(t *testing.T) {
	unanswered := &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "b", Name: "g", Response: map[string]any{"error": "this call was not answered"}}}
	for _, tt := range []struct {
		name     string
		in, want []*genai.Content
	}{
		{"neighbours are joined and empty parts dropped", []*genai.Content{nil, user(text("a"), nil, text("")), user(text("b")), said(), {Parts: []*genai.Part{text("c")}}},
			[]*genai.Content{user(text("a"), text("b"), text("c"))}},
		{"missing IDs are numbered and matched by name, in order", []*genai.Content{user(text("a")), said(call("", "f"), call("", "g"), call("", "f")), user(text("b"), answer("", "f", 1), answer("", "f", 2), answer("", "g", 3))},
			[]*genai.Content{user(text("a")), said(call("call_1", "f"), call("call_2", "g"), call("call_3", "f")), user(answer("call_1", "f", 1), answer("call_3", "f", 2), answer("call_2", "g", 3), text("b"))}},
		{"a call that was not answered", []*genai.Content{said(call("a", "f"), call("b", "g")), user(answer("a", "f", 1))},
			[]*genai.Content{said(call("a", "f"), call("b", "g")), user(answer("a", "f", 1), unanswered)}},
		{"a last call that was not answered", []*genai.Content{user(text("x")), said(call("b", "g"))},
			[]*genai.Content{user(text("x")), said(call("b", "g")), user(unanswered)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := json.Marshal(tt.in)
			got, err := turns.Prepare(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if after, _ := json.Marshal(tt.in); string(before) != string(after) {
				t.Errorf("the contents were changed:\n%s\n%s", before, after)
			}
		})
	}
}

func TestPrepareRefusesAnswersToNothing(t *testing.T) {
	for _, in := range [][]*genai.Content{
		{user(answer("a", "f", 1))},
		{said(call("a", "f")), user(answer("b", "f", 1))},
		{said(call("a", "f")), user(answer("a", "f", 1), answer("a", "f", 2))},
	} {
		if got, err := turns.Prepare(in); err == nil {
			t.Errorf("got %v", got)
		}
	}
}

// However a conversation is put together, what comes out alternates, ends with
// the user and answers each call at once.
func FuzzPrepare(f *testing.F) {
	f.Add([]byte("uTmCCuAA"))
	f.Add([]byte("mCuTmTuT"))
	f.Fuzz(func(t *testing.T, program []byte) {
		out, err := turns.Prepare(conversation(program))
		if err != nil {
			return
		}
		var open []string
		for i, c := range out {
			if len(c.Parts) == 0 || i > 0 && out[i-1].Role == c.Role {
				t.Fatalf("content %d: %+v", i, c)
			}
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					if len(open) == 0 {
						t.Fatalf("content %d answers nothing", i)
					}
					open = open[1:]
				}
			}
			if len(open) > 0 {
				t.Fatalf("content %d: calls %q are not answered", i, open)
			}
			for _, p := range c.Parts {
				if p.FunctionCall != nil {
					open = append(open, p.FunctionCall.ID)
				}
			}
		}
		if len(open) > 0 || len(out) == 0 || out[len(out)-1].Role != "user" {
			t.Fatalf("it ends with %q, calls open: %q", out[len(out)-1].Role, open)
		}
	})
}

// conversation reads one from bytes: u and m begin a turn, T is a text, C a
// call and A an answer to the next call.
func conversation(program []byte) []*genai.Content {
	var out []*genai.Content
	add := func(p *genai.Part) {
		if len(out) > 0 {
			out[len(out)-1].Parts = append(out[len(out)-1].Parts, p)
		}
	}
	for _, b := range program {
		switch b {
		case 'u':
			out = append(out, user())
		case 'm':
			out = append(out, said())
		case 'T':
			add(text("t"))
		case 'C':
			if len(out) > 0 && out[len(out)-1].Role == "model" {
				add(call("", "f"))
			}
		case 'A':
			if len(out) > 0 && out[len(out)-1].Role == "user" {
				add(answer("", "f", 1))
			}
		}
	}
	return out
}
