// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/scripted"
)

func testAnswers(t *testing.T, o Options) {
	count := map[string]any{"name": "bananas", "n": 5.0}
	call := func(id, name string, args map[string]any) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: args}}
	}
	usage := &scripted.Usage{Prompt: 100, Cached: 60, Output: 20, Thoughts: 7}
	for _, tt := range []struct {
		name   string
		answer scripted.Answer
		want   []*genai.Part
		finish genai.FinishReason
	}{
		{"text", scripted.Answer{Text: "Hello, world."}, []*genai.Part{{Text: "Hello, world."}}, ""},
		{"text of many kinds of letters", scripted.Answer{Text: "naïve 日本語 🍌 \"quoted\"\n\tline, and a good deal more of it"}, []*genai.Part{{Text: "naïve 日本語 🍌 \"quoted\"\n\tline, and a good deal more of it"}}, ""},
		{"thought and text", scripted.Answer{Thought: "Hm.", Text: "Yes."}, []*genai.Part{{Text: "Hm.", Thought: true}, {Text: "Yes."}}, ""},
		{"one call", scripted.Answer{Calls: []scripted.Call{{ID: "call_1", Name: "count", Args: count}}}, []*genai.Part{call("call_1", "count", count)}, ""},
		{"a call without arguments", scripted.Answer{Calls: []scripted.Call{{ID: "call_1", Name: "exitLoop"}}}, []*genai.Part{call("call_1", "exitLoop", nil)}, ""},
		{"several calls after text", scripted.Answer{Text: "Counting.", Calls: []scripted.Call{{ID: "call_1", Name: "count", Args: count}, {ID: "call_2", Name: "exitLoop"}, {ID: "call_3", Name: "count", Args: count}}},
			[]*genai.Part{{Text: "Counting."}, call("call_1", "count", count), call("call_2", "exitLoop", nil),
				call("call_3", "count", count)}, ""},
		{"structured", scripted.Answer{JSON: map[string]any{"score": 7}}, []*genai.Part{{Text: `{"score":7}`}}, ""},
		{"cut at the bound of tokens", scripted.Answer{Text: "And then", Finish: "MAX_TOKENS"}, []*genai.Part{{Text: "And then"}}, genai.FinishReasonMaxTokens},
		{"usage", scripted.Answer{Text: "Yes.", Usage: usage}, []*genai.Part{{Text: "Yes."}}, ""},
		{"nothing", scripted.Answer{}, nil, ""},
	} {
		both(t, tt.name, func(t *testing.T, stream bool) {
			llm, _ := o.Open(t, script(tt.answer))
			s := ask(t.Context(), t, llm, userSays("Say it."), stream)
			if s.err != nil {
				t.Fatal(s.err)
			}
			if diff := sameContent(&genai.Content{Role: "model", Parts: tt.want}, s.final.Content); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			if tt.finish == "" {
				tt.finish = genai.FinishReasonStop
			}
			if s.final.FinishReason != tt.finish || s.final.ErrorCode != "" || s.final.ModelVersion != "scripted" {
				t.Errorf("finish reason %q, error %q, version %q", s.final.FinishReason, s.final.ErrorCode,
					s.final.ModelVersion)
			}
			if diff := cmp.Diff(tt.answer.Usage.Metadata(), s.final.UsageMetadata,
				cmpopts.IgnoreFields(genai.GenerateContentResponseUsageMetadata{}, "TrafficType")); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			if stream {
				checkPartials(t, s, tt.want)
			}
		})
	}
}

// checkPartials: the pieces come to the whole.
func checkPartials(t *testing.T, s reply, parts []*genai.Part) {
	t.Helper()
	var text, thought string
	for _, p := range parts {
		if p.Thought {
			thought += p.Text
		} else {
			text += p.Text
		}
	}
	if s.text != text || s.thought != thought {
		t.Errorf("partial responses come to %q and the thought %q", s.text, s.thought)
	}
	if len(text) > 40 && s.partials < 2 {
		t.Errorf("%d partial responses: that is no stream", s.partials)
	}
}

func testRefusal(t *testing.T, o Options) {
	both(t, "refused", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Refusal: "I cannot help with that."}))
		s := ask(t.Context(), t, llm, userSays("Something bad."), stream)
		if s.err != nil {
			t.Fatal(s.err)
		}
		if s.final.ErrorCode == "" || !strings.Contains(s.final.ErrorMessage, "I cannot help with that.") {
			t.Errorf("error code %q, message %q", s.final.ErrorCode, s.final.ErrorMessage)
		}
		if !o.Blocks && s.final.FinishReason != genai.FinishReasonSafety {
			t.Errorf("finish reason %q", s.final.FinishReason)
		}
	})
}
